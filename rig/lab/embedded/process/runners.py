"""Main's side of its runner processes: start, command, read the reports, notice the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import rig
from rig.lab.embedded.settings import NodeSettings
from rig.lab.exo.effects import RunnerCommand, StartRunner, StopRunner
from rig.lab.exo.runner import RunnerReport
from rig.lab.ledger import Ledger, ProcessExited, ProcessSignalled, ProcessStarted

STOP_GRACE_S = 1.0
MAX_LINE = 4096
ROOT = str(Path(rig.__file__).parent.parent)


@dataclass
class _Running:
    process: asyncio.subprocess.Process
    transport: asyncio.Transport
    ring: str | None


class _Reports(asyncio.Protocol):
    """Lines of a runner, as reports. A runner is trusted to send only what `runner_process` writes."""

    def __init__(self, runner_id: str, on_reports: Callable[[str, list[RunnerReport]], None]) -> None:
        self._runner_id = runner_id
        self._on_reports = on_reports
        self._partial = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        reports: list[RunnerReport] = []
        for line in lines:
            kind, task, n, total, finish, text = line.decode().split("\t")
            reports.append(RunnerReport(kind, task, text, int(n), int(total), finish))
        if reports:
            self._on_reports(self._runner_id, reports)


class Runners:
    """All runner processes of one main, by runner id, and the resource tracker beside them."""

    def __init__(
        self,
        settings: NodeSettings,
        ledger: Ledger,
        lifeline_fd: int,
        *,
        orphans: bool,
        spin: bool,
        on_reports: Callable[[str, list[RunnerReport]], None],
        on_exit: Callable[[str, int], None],
    ) -> None:
        self.settings = settings
        self.ledger = ledger
        self.lifeline_fd = lifeline_fd
        self.orphans = orphans
        self.spin = spin
        self.on_reports = on_reports
        self.on_exit = on_exit
        self.running: dict[str, _Running] = {}
        self._tracker: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start_tracker(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await self._spawn(
                "tracker_main",
                f"tracker_main({theirs.fileno()})",
                ["multiprocessing.resource_tracker"],
                theirs.fileno(),
            )
        self._tracker = ours
        self._watch("tracker", "", process, lambda _: None)

    def start(self, effect: StartRunner) -> None:
        self._task(self._start(effect))

    def command(self, effect: RunnerCommand) -> None:
        running = self.running.get(effect.runner_id)
        if running is not None and not running.transport.is_closing():  # it may have died just now
            words = effect.kind, effect.task_id, effect.prompt_tokens, effect.max_tokens, effect.answer
            running.transport.write("\t".join(map(str, words)).encode() + b"\n")

    def stop(self, effect: StopRunner) -> None:
        self._task(self._stop(effect))

    async def all_ended(self) -> None:
        """Wait until no runner is left."""
        for running in list(self.running.values()):
            await running.process.wait()

    async def _start(self, effect: StartRunner) -> None:
        ours, theirs = socket.socketpair()
        ring = self.settings.listener(effect.port) if effect.world_size > 1 else None
        if ring is not None and self.settings.hosts == "namespaces":
            ring = str(effect.port)
        times = ",".join(str(float(number)) for number in effect.times)
        arguments = [f"times={times}"] + ([] if ring is None else [f"ring={ring}"])
        call = f"spawn_main(tracker_fd={self._tracker_fd()}, pipe_handle={theirs.fileno()})"
        with theirs:
            process = await self._spawn("spawn_main", call, ["--multiprocessing-fork", *arguments], theirs.fileno())
        ours.setblocking(False)  # noqa: FBT003 (its only form)
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _Reports(effect.runner_id, self.on_reports), sock=ours
        )
        self.running[effect.runner_id] = _Running(process=process, transport=transport, ring=ring)
        detail = f"{effect.runner_id} {effect.model_id} rank {effect.rank} of {effect.world_size} port {effect.port}"
        self._watch("runner", detail, process, lambda status: self._ended(effect.runner_id, status))

    def _tracker_fd(self) -> int:
        return -1 if self._tracker is None else self._tracker.fileno()

    async def _spawn(self, name: str, call: str, arguments: list[str], handle: int) -> asyncio.subprocess.Process:
        module = "rig.lab.embedded.process.runner_process"
        code = f"import sys; sys.path.insert(0, {ROOT!r}); from {module} import {name}; {call}"
        flags = f"orphan={self.orphans:d}", f"spin={self.spin:d}"
        return await asyncio.create_subprocess_exec(
            self.settings.python,
            *("-S", "-E", "-B", "-c", code, *arguments, f"lifeline={self.lifeline_fd}", *flags),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(handle, self.lifeline_fd),
        )

    async def _stop(self, effect: StopRunner) -> None:
        running = self.running.get(effect.runner_id)
        if running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if not effect.kill:
                self._signal(running.process, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STOP_GRACE_S):
                        await running.process.wait()
                        return
            self._signal(running.process, signal.SIGKILL)

    def _signal(self, process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        """Noted first, to be told from a kill by somebody else. Raises ProcessLookupError."""
        self.ledger.write(
            ProcessSignalled(
                t=self.ledger.now(), node=self.settings.name, role="runner", pid=process.pid, signal=number
            )
        )
        process.send_signal(number)

    def _ended(self, runner_id: str, status: int) -> None:
        running = self.running.pop(runner_id, None)
        if running is not None:
            running.transport.close()
            if running.ring is not None and not running.ring.isdigit():
                with contextlib.suppress(OSError):
                    os.unlink(running.ring)
        self.on_exit(runner_id, status)

    def _watch(self, role: str, detail: str, process: asyncio.subprocess.Process, ended: Callable[[int], None]) -> None:
        with contextlib.suppress(psutil.Error):
            self.ledger.write(
                ProcessStarted(
                    t=self.ledger.now(),
                    node=self.settings.name,
                    role=role,
                    pid=process.pid,
                    start=psutil.Process(process.pid).create_time(),
                    detail=detail,
                )
            )

        async def wait() -> None:
            status = await process.wait()
            self.ledger.write(
                ProcessExited(t=self.ledger.now(), node=self.settings.name, role=role, pid=process.pid, status=status)
            )
            ended(status)

        self._task(wait())

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
