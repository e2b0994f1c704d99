"""Something that looks like exo to the node scripts: a main process with a pid file, a tracker and runners as children.

`python …/bin/exo HOME RUNNERS LIFE` is the main process; it ends by itself after LIFE seconds, its children soon after.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from rig.targets.exo.fields import ExoProcess

_MAIN = """
import fcntl, os, subprocess, sys, time
home, runners, life = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lock = open(home + "/exo.lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit("daemon already running")
os.makedirs(home + "/event_log/master", exist_ok=True)
os.makedirs(home + "/exo_log", exist_ok=True)
if os.path.exists(home + "/is-master"):
    held = open(home + "/event_log/master/events.bin", "ab")
    print("2026-01-01 00:00:00.000 | INFO | Node elected Master - promoting self",
          file=open(home + "/exo_log/exo.log", "w"))
sleep = f"import time; time.sleep({life + 10})"
children = [subprocess.Popen([sys.executable, "-S", "-E", "-c", sleep, "resource_tracker"])]
children += [subprocess.Popen([sys.executable, "-S", "-E", "-c", sleep, "spawn_main", "--multiprocessing-fork"])
             for _ in range(runners)]
with open(home + "/exo.pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename(home + "/exo.pid.new", home + "/exo.pid")
time.sleep(life)
"""


@dataclass
class FakeExo:
    folder: Path
    runners: int = 1
    master: bool = False
    life_s: int = 120

    def __post_init__(self) -> None:
        self.home = self.folder / "exo home"
        self.home.mkdir(parents=True)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "exo").write_text(_MAIN)
        if self.master:
            (self.home / "is-master").touch()

    @property
    def command(self) -> str:
        words = [f"{self.folder}/bin/exo", str(self.home), str(self.runners), str(self.life_s)]
        return shlex.join([sys.executable, "-S", "-E", *words])

    def process(self, **changes: object) -> ExoProcess:
        start = f"nohup {self.command} </dev/null >/dev/null 2>&1 &"
        settings: dict[str, object] = {"home": str(self.home), "start": start, "match": f"{self.folder}/bin/exo "}
        return ExoProcess.model_validate({**settings, **changes})

    def start(self) -> psutil.Process:
        subprocess.run(["/bin/sh", "-c", self.process().start or ""], check=True)
        return self.wait()

    def wait(self, *, unlike: int | None = None) -> psutil.Process:
        """The main process, once it runs with all its children."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError, psutil.Error):
                main = psutil.Process(int((self.home / "exo.pid").read_text()))
                if main.pid != unlike and len(main.children()) == self.runners + 1:
                    return main
            time.sleep(0.02)
        raise AssertionError("the fake exo did not start")

    def tree(self) -> list[psutil.Process]:
        main = self.wait()
        return [main, *main.children(recursive=True)]

    def kill(self) -> None:
        """Everything that this fake ever started, found by its own command lines; returns when it is gone."""
        killed: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if f"{self.folder}/bin/exo" in process.cmdline():
                    for one in [*process.children(recursive=True), process]:
                        os.kill(one.pid, signal.SIGKILL)
                        killed.append(one)
        deadline = time.monotonic() + 10
        while set(states(killed)) - {"gone"}:
            if time.monotonic() > deadline:
                raise AssertionError("the fake exo did not end")
            time.sleep(0.01)


def states(processes: list[psutil.Process]) -> list[str]:
    """psutil's status of each, `gone` for those that are not there or only wait to be reaped."""
    found: list[str] = []
    for process in processes:
        try:
            status = process.status() if process.is_running() else "gone"
            found.append("gone" if status == psutil.STATUS_ZOMBIE else status)
        except psutil.NoSuchProcess:
            found.append("gone")
    return found
