"""launchd of a virtual Mac: the daemons in /Library/LaunchDaemons, and `launchctl` over them.

As on a Mac: RunAtLoad, KeepAlive (at most one start in ten seconds), StartInterval; `bootout` ends the job and forgets
it, so that KeepAlive does not bring it back; a job that is loaded cannot be bootstrapped again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import plistlib
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rig.lab.embedded.machine.answering import Answer
from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.settings import NodeSettings
from rig.lab.hosts.places import JOB
from rig.lab.hosts.root import tree

FOLDER = "/Library/LaunchDaemons"
POLL_S = 0.1
THROTTLE_S = 10.0  # between two starts of a job; divided by the pace
RESPAWN_S = 0.3  # between a job's end and its next start
STOP_S = 5.0  # SIGTERM, then SIGKILL (20 s on a Mac)
NO_SERVICE = 113
DEFAULT_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


class Service(Protocol):
    """What a job runs."""

    @property
    def pid(self) -> int | None: ...
    async def start(self) -> str | None: ...
    async def stop(self) -> bool: ...


class Program:
    """ProgramArguments in the node's root folder, in a session of its own."""

    def __init__(self, settings: NodeSettings, content: Mapping[str, Any]) -> None:
        self._settings = settings
        self._content = content
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> str | None:
        content = self._content
        environment = {
            **node_environment(self._settings),
            "PATH": DEFAULT_PATH,
            "HOME": "/var/root",
            **{str(key): str(value) for key, value in content.get("EnvironmentVariables", {}).items()},
        }
        words = [str(word) for word in content.get("ProgramArguments", [content.get("Program", "")])]
        root = tree(self._settings)
        out, err = (_open(root, content.get(key)) for key in ("StandardOutPath", "StandardErrorPath"))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *("chroot", str(root), *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        finally:
            os.close(out)
            os.close(err)
        return None

    async def stop(self) -> bool:
        process = self._process
        if process is None or process.returncode is not None:
            return True
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await process.wait()
                    return True
        return False


def _open(root: Path, path: object) -> int:
    inside = f"{root}{path}" if isinstance(path, str) and path.startswith("/") else os.devnull
    return os.open(inside, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def _read_plist(root: Path, path: str) -> Mapping[str, Any] | None:
    """A daemon's file; None when it is none."""
    try:
        content: Mapping[str, Any] = plistlib.loads(Path(f"{root}{path}").read_bytes())
    except (OSError, plistlib.InvalidFileException, ValueError):
        return None
    return content if isinstance(content.get("Label"), str) else None


def _daemons(root: Path) -> list[str]:
    return [f"{FOLDER}/{path.name}" for path in sorted(Path(f"{root}{FOLDER}").glob("*.plist"))]


@dataclass
class Job:
    label: str
    path: str
    content: Mapping[str, Any]
    service: Service
    started: float = float("-inf")
    ended: float = float("-inf")
    due: float = float("inf")  # of the next start by StartInterval
    wanted: bool = False  # to be started at the next look, whatever else
    task: asyncio.Task[str | None] | None = None

    @property
    def busy(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def keep_alive(self) -> bool:
        return self.content.get("KeepAlive") is True


class Launchd:
    def __init__(self, settings: NodeSettings, exo: ExoMain) -> None:
        self.settings = settings
        self.exo = exo
        self.jobs: dict[str, Job] = {}
        self.disabled: set[str] = set()
        self.throttle_s = THROTTLE_S / settings.pace

    async def boot(self) -> str | None:
        """Load every daemon there is; returns when exo runs, or why it does not."""
        for path in _daemons(tree(self.settings)):
            content = _read_plist(tree(self.settings), path)
            if content is not None:
                self._load(path, content)
        job = self.jobs.get(JOB)
        if job is None:
            return None
        job.wanted = False
        starting = asyncio.create_task(self._start(job))
        job.task = starting  # so that nobody starts it a second time meanwhile
        return await starting

    async def run(self) -> None:
        """Start what is to be started, until cancelled."""
        while True:
            now = time.monotonic()
            for job in list(self.jobs.values()):
                self._look(job, now)
            await asyncio.sleep(POLL_S)

    def _look(self, job: Job, now: float) -> None:
        if job.busy:
            return
        if job.service.pid is not None:
            job.ended = now
            return
        due = now >= job.due
        again = job.keep_alive and now - job.started >= self.throttle_s and now - job.ended >= RESPAWN_S
        if job.wanted or due or again:
            job.wanted = False
            job.task = asyncio.create_task(self._start(job))

    async def _start(self, job: Job) -> str | None:
        job.started = time.monotonic()
        if interval := job.content.get("StartInterval"):
            job.due = job.started + float(interval)
        return await job.service.start()

    def _load(self, path: str, content: Mapping[str, Any]) -> None:
        label = str(content["Label"])
        service: Service = self.exo if label == JOB else Program(self.settings, content)
        job = Job(label, path, content, service)
        job.wanted = content.get("RunAtLoad") is True or job.keep_alive
        if interval := content.get("StartInterval"):
            job.due = time.monotonic() + float(interval)
        self.jobs[label] = job

    # ---- launchctl

    async def launchctl(self, arguments: list[str], folder: str) -> Answer:
        commands: dict[str, Callable[[list[str]], Any]] = {
            "bootstrap": self._bootstrap,
            "bootout": self._bootout,
            "kickstart": self._kickstart,
            "print": self._print,
            "list": self._list,
            "enable": self._enable,
            "disable": self._disable,
            "kill": self._kill,
        }
        if not arguments or arguments[0] not in commands:
            return Answer(1, err=f"launchctl: not emulated: launchctl {' '.join(arguments)}\n")
        del folder
        answer: Answer = await commands[arguments[0]](arguments[1:])
        return answer

    async def _bootstrap(self, words: list[str]) -> Answer:
        if len(words) != 2 or words[0] != "system":
            return Answer(64, err="Usage: launchctl bootstrap <domain-target> [service-path, service-path2, ...]\n")
        content = _read_plist(tree(self.settings), words[1])
        if content is None or content["Label"] in self.jobs or content["Label"] in self.disabled:
            return Answer(5, err="Bootstrap failed: 5: Input/output error\n")
        self._load(words[1], content)
        return Answer(0)

    async def _bootout(self, words: list[str]) -> Answer:
        job = self._job(words[-1:]) or self._of_file(words[-1:])
        if job is None:
            return Answer(3, err="Boot-out failed: 3: No such process\n")
        self.jobs.pop(job.label, None)
        if job.task is not None:
            await asyncio.wait({job.task})
        ended = await job.service.stop()
        return Answer(0) if ended else Answer(36, err="Boot-out failed: 36: Operation now in progress\n")

    async def _kickstart(self, words: list[str]) -> Answer:
        job = self._job(words[-1:])
        if job is None:
            return self._unknown(words)
        if "-k" in words[:-1]:
            await job.service.stop()
        job.wanted = job.service.pid is None
        return Answer(0)

    async def _print(self, words: list[str]) -> Answer:
        if words == ["system"]:
            lines = [f"\t\t{job.service.pid or 0:>8}      - \t{job.label}\n" for job in self.jobs.values()]
            return Answer(0, out=f"system = {{\n\tservices = {{\n{''.join(lines)}\t}}\n}}\n")
        job = self._job(words[-1:])
        if job is None:
            return self._unknown(words)
        state = "not running" if job.service.pid is None else f"running\n\tpid = {job.service.pid}"
        return Answer(0, out=f"system/{job.label} = {{\n\tpath = {job.path}\n\tstate = {state}\n}}\n")

    async def _list(self, words: list[str]) -> Answer:
        if words:
            job = self.jobs.get(words[0])
            return Answer(0, out=f'{{\n\t"Label" = "{job.label}";\n}};\n') if job else Answer(NO_SERVICE)
        lines = [f"{job.service.pid or '-'}\t0\t{job.label}\n" for job in self.jobs.values()]
        return Answer(0, out="PID\tStatus\tLabel\n" + "".join(lines))

    async def _enable(self, words: list[str]) -> Answer:
        self.disabled.discard(words[-1].removeprefix("system/") if words else "")
        return Answer(0)

    async def _disable(self, words: list[str]) -> Answer:
        self.disabled.add(words[-1].removeprefix("system/") if words else "")
        return Answer(0)

    async def _kill(self, words: list[str]) -> Answer:
        job = self._job(words[-1:])
        if job is None or job.service.pid is None:
            return self._unknown(words)
        name = words[0].removeprefix("SIG") if len(words) > 1 else "TERM"
        number = int(name) if name.isdigit() else getattr(signal, f"SIG{name}", signal.SIGTERM)
        os.kill(job.service.pid, number)
        return Answer(0)

    def _job(self, words: list[str]) -> Job | None:
        target = words[0] if words else ""
        return self.jobs.get(target.removeprefix("system/")) if target.startswith("system/") else None

    def _of_file(self, words: list[str]) -> Job | None:
        return next((job for job in self.jobs.values() if [job.path] == words), None)

    def _unknown(self, words: list[str]) -> Answer:
        text = f'Could not find service "{(words or [""])[-1].removeprefix("system/")}" in domain for system\n'
        return Answer(NO_SERVICE, err=text)
