"""A node as the scripts see it (folders, an exo-like process tree), the scripts as processes, and what they said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

FAULTS = Path(__file__).parents[2] / "faults"
EXO_LIKE = Path(__file__).with_name("exo_like.py")
MATCH = r"python[0-9.]* .*exo_like\.py /"
TAB = "\t"


@dataclass(frozen=True)
class Event:
    name: str
    t: float
    fields: dict[str, str]


def parse(text: str) -> list[Event]:
    events: list[Event] = []
    for line in text.splitlines():
        parts = line.split(TAB)
        if parts[0] == "@rig":
            events.append(Event(parts[1], float(parts[2]), dict(part.split("=", 1) for part in parts[3:])))
    return events


def until(condition: Callable[[], bool], what: str, *, timeout_s: float = 10.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(0.01)


def state(pid: int) -> str:
    """One letter as ps shows it, `-` when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "-"


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


class Script:
    """A running node script. `stop_reading` closes our end of its stdout, as a connection that goes away does."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        # unbuffered, so that `communicate` finds all that `readline` has not returned
        self.process = subprocess.Popen(
            command, 0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(env)
        )
        self._seen = ""
        self.stderr = ""

    def wait_for(self, event: str) -> Event:
        """Reads until that event was said."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline().decode()
            if not line:
                raise AssertionError(f"ended without {event}: {self._seen}{self._errors()}")
            self._seen += line
            found = parse(line)
            if found and found[0].name == event:
                return found[0]

    def stop_reading(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()

    def end(self, *, timeout_s: float = 20.0) -> list[Event]:
        """Waits for the end; everything it said."""
        if self.process.stdout is not None and self.process.stdout.closed:
            self.process.wait(timeout_s)
            self._errors()
        else:
            out, err = self.process.communicate(timeout=timeout_s)
            self._seen += out.decode()
            self.stderr = err.decode()
        return parse(self._seen)

    @property
    def status(self) -> int:
        return self.process.wait(20)

    @property
    def said(self) -> str:
        return self._seen

    def _errors(self) -> str:
        if self.process.stderr is not None and not self.process.stderr.closed:
            self.stderr += self.process.stderr.read().decode()
            self.process.stderr.close()
        return self.stderr


@dataclass
class Node:
    """`shell` runs the scripts; `prefix` is put before it (to enter a network namespace)."""

    folder: Path
    shell: list[str]
    prefix: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    started: list[Script] = field(default_factory=list[Script])

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)

    @property
    def home(self) -> Path:
        return self.folder / "exo home"

    @property
    def rig_dir(self) -> Path:
        return self.folder / "rig dir"

    @property
    def leases(self) -> list[str]:
        folder = self.rig_dir / "leases"
        return sorted(os.listdir(folder)) if folder.exists() else []

    def log(self, fault: str) -> list[Event]:
        return parse((self.rig_dir / "log" / f"{fault}.log").read_text())

    # exo

    def start_command(self, runners: int = 3, *ports: int) -> str:
        ring = " ".join(map(str, ports))
        return f"{sys.executable} {EXO_LIKE} '{self.home}' {runners} {ring} </dev/null >/dev/null 2>&1"

    def start_exo(self, runners: int = 3, *ports: int) -> psutil.Process:
        before = self.main_pid()
        subprocess.Popen(["/bin/sh", "-c", f"{self.start_command(runners, *ports)} &"])
        until(lambda: self.main_pid() not in (before, 0), "exo-like main is up")
        main = psutil.Process(self.main_pid())
        until(lambda: len(main.children()) == runners + 1, "its children are up")
        if ports:
            until(lambda: all(_listening(port) for port in ports), "its runners listen")
        return main

    def main_pid(self) -> int:
        try:
            return int((self.home / "exo.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def tree(self) -> list[int]:
        main = psutil.Process(self.main_pid())
        return [main.pid, *(child.pid for child in main.children(recursive=True))]

    # scripts

    def script(self, name: str, **values: str) -> Script:
        common = {"rig_dir": str(self.rig_dir)}
        if name != "heal.sh":
            common |= {"home": str(self.home), "match": MATCH}
        if name not in ("heal.sh", "inspect.sh"):
            common |= {"id": "f1", "run": "r1", "owner": "someone@somewhere"}
        return self.plain(name, **(common | values))

    def plain(self, name: str, **values: str) -> Script:
        """With these values and no others."""
        arguments = [f"{key}={value}" for key, value in values.items()]
        script = Script([*self.prefix, *self.shell, str(FAULTS / name), *arguments], self.env)
        self.started.append(script)
        return script

    def heal(self, what: str = "all") -> Script:
        script = self.script("heal.sh", what=what)
        script.end(timeout_s=60)
        return script

    def inspect(self, **values: str) -> list[tuple[str, str]]:
        script = self.script("inspect.sh", **values)
        script.end()
        assert script.status == 0, script.stderr
        assert script.stderr == ""
        return [(key, value) for key, _, value in (line.partition("=") for line in script.said.splitlines())]

    def close(self) -> None:
        """Ends what this node started, each by its pid, stopped or not."""
        for script in self.started:
            script.process.kill()
            script.process.wait()
        if not (self.home / "exo.pid").exists():
            return
        mine = [p for p in psutil.process_iter(["cmdline"]) if self._is_mine(p)]
        for process in mine:
            for victim in [process, *process.children(recursive=True)]:
                try:
                    victim.send_signal(signal.SIGKILL)
                except psutil.NoSuchProcess:
                    continue

    def _is_mine(self, process: psutil.Process) -> bool:
        try:
            return str(self.home) in process.cmdline()
        except psutil.Error:
            return False


def _listening(port: int) -> bool:
    return any(c.laddr.port == port and c.status == "LISTEN" for c in psutil.net_connections("tcp") if c.laddr)
