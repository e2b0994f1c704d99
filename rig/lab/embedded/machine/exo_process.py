"""Starts and stops the node's exo main process, as launchd or systemd would, and notes in the ledger what became of
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import psutil

from rig.lab.embedded.lifeline import Lifeline
from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.reap import record_session
from rig.lab.embedded.settings import NodeSettings
from rig.lab.ledger import Ledger, ProcessExited, ProcessSignalled, ProcessStarted

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.01


class ExoMain:
    """At most one main runs: the pid file's lock sees to that, not this class, which starts what it is told to."""

    def __init__(self, settings: NodeSettings, ledger: Ledger) -> None:
        self.settings = settings
        self.ledger = ledger
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline = Lifeline()  # one for all: the orphans of an earlier main hold it as well
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Of the main process that this machine started last, while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> str | None:
        """Start a main process; returns when it holds the pid file, or why it does not."""
        log = Path(self.settings.folder) / "exo.out"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                self.settings.python,
                *("-m", "rig.lab.embedded.process", self.settings.folder, "--lifeline", str(self._lifeline.read_fd)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.settings.home,
                env=node_environment(self.settings),
                pass_fds=(self._lifeline.read_fd,),
                start_new_session=True,
            )
        self._watch(process)
        pid_file = Path(self.settings.exo_home) / "exo.pid"
        ended = asyncio.create_task(process.wait())
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while not ended.done():
                    if _read_pid(pid_file) == process.pid:
                        self._process = process
                        return None
                    await asyncio.wait({ended}, timeout=POLL_S)
        except TimeoutError:
            self._signal(process, signal.SIGKILL)
            return f"exo did not start within {START_TIMEOUT_S:g} s"
        finally:
            ended.cancel()
        with contextlib.suppress(OSError):
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            return last[0] if last else f"exo ended with status {process.returncode}"
        return f"exo ended with status {process.returncode}"

    async def stop(self) -> bool:
        """SIGTERM, and wait. Whether it has ended."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        with contextlib.suppress(ProcessLookupError):
            self._signal(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        """Noted first, to be told from a kill by somebody else. Raises ProcessLookupError."""
        self.ledger.write(
            ProcessSignalled(t=self.ledger.now(), node=self.settings.name, role="main", pid=process.pid, signal=number)
        )
        process.send_signal(number)

    def _watch(self, process: asyncio.subprocess.Process) -> None:
        record_session(self.settings.folder, process.pid)
        with contextlib.suppress(psutil.Error):
            start = psutil.Process(process.pid).create_time()
            self.ledger.write(
                ProcessStarted(t=self.ledger.now(), node=self.settings.name, role="main", pid=process.pid, start=start)
            )

        async def wait() -> None:
            status = await process.wait()
            self.ledger.write(
                ProcessExited(t=self.ledger.now(), node=self.settings.name, role="main", pid=process.pid, status=status)
            )

        task = asyncio.create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
