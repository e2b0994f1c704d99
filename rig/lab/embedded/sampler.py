"""A witness of its own: looks at the nodes' processes and networks every 50 ms and writes down what changed.

    python -m rig.lab.embedded.sampler FOLDER --lifeline FD

It takes nobody's word: processes are found by the session of each main process that ever held a pid file, their
states come from the kernel. When the cluster's supervisor is gone it ends whatever the machines did not end, and
itself.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
import psutil

from rig.lab.embedded.layout import ClusterLayout, read_layout
from rig.lab.embedded.machine.ask import ask
from rig.lab.embedded.reap import reap
from rig.lab.hosts.pids import NodePids

PERIOD_S = 0.05
BEAT_S = 1.0
ASK_TIMEOUT_S = 0.1
MAX_FILE_BYTES = 1 << 30
MACHINES_END_S = 1.0  # what machines get to end their nodes before the sampler does, and the ended to be gone


class Sample(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    t: float  # CLOCK_MONOTONIC, seconds


class Started(Sample, frozen=True, kw_only=True, tag="started"):
    """First line. Unix time = `t` + `wall_offset_s`."""

    wall_offset_s: float


class ProcessSeen(Sample, frozen=True, kw_only=True, tag="process"):
    """A process is in another state than at the last look: a letter as `ps` has it (`T` stopped, `Z` defunct), `-`
    gone.
    """

    node: str
    pid: int
    start: float
    role: str  # main, runner, tracker, other
    state: str


class NetworkSeen(Sample, frozen=True, kw_only=True, tag="network"):
    """The packet filter of a node has other rules than at the last look, or does (not) hold data back any more."""

    node: str
    rules: list[str]
    holding: bool


class Beat(Sample, frozen=True, kw_only=True, tag="beat"):
    """Once a second: how many looks, and the longest time between two: the resolution of everything here."""

    looks: int
    gap_max_s: float


AnySample: TypeAlias = Started | ProcessSeen | NetworkSeen | Beat

STATES = {
    psutil.STATUS_STOPPED: "T",
    psutil.STATUS_TRACING_STOP: "T",
    psutil.STATUS_ZOMBIE: "Z",
    psutil.STATUS_DEAD: "Z",
}


class _Watched:
    def __init__(self, node: str, process: psutil.Process, role: str, pid: int) -> None:
        self.node = node
        self.pid = pid  # as the node knows it
        self.process = process
        self.role = role
        self.state = ""


class Sampler:
    """`look()` once a period; everything it remembers is bounded by the processes that live."""

    def __init__(self, layout: ClusterLayout) -> None:
        self.layout = layout
        self._pids = NodePids(layout)
        self.sessions: dict[int, str] = {}  # of every main process seen, by node
        self.watched: dict[int, _Watched] = {}
        self._networks: dict[str, tuple[list[str], bool]] = {}
        self._fd = os.open(Path(layout.folder) / "samples.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._encoder = msgspec.json.Encoder()
        self._left_bytes = MAX_FILE_BYTES
        self._looks = 0
        self._gap_max_s = 0.0
        self._last = time.monotonic()
        self._last_beat = self._last
        self.write(Started(t=self._last, wall_offset_s=time.time() - self._last))

    def write(self, sample: AnySample) -> None:
        line = self._encoder.encode(sample) + b"\n"
        self._left_bytes -= len(line)
        if self._left_bytes > 0:
            os.write(self._fd, line)

    def look(self) -> None:
        now = time.monotonic()
        self._looks += 1
        self._gap_max_s = max(self._gap_max_s, now - self._last)
        self._last = now
        self._find_processes()
        self._see_processes()
        for index, node in enumerate(self.layout.nodes, start=1):
            self._see_network(node, f"{self.layout.sockets}/{index}/control")
        if now - self._last_beat >= BEAT_S:
            self.write(Beat(t=now, looks=self._looks, gap_max_s=round(self._gap_max_s, 4)))
            self._looks, self._gap_max_s, self._last_beat = 0, 0.0, now

    def look_until_gone(self, limit_s: float) -> None:
        """Until every process has been seen to have ended, at most `limit_s`."""
        deadline = time.monotonic() + limit_s
        while True:
            self.look()
            if all(watched.state == "Z" for watched in self.watched.values()) or time.monotonic() > deadline:
                return
            time.sleep(PERIOD_S)

    def _find_processes(self) -> None:
        for node in self.layout.nodes:
            said = _read_pid(self.layout.node_folder(node) / "exo" / "exo.pid")
            pid = None if said is None else self._pids.outside(node, said)
            if pid is not None and pid not in self.sessions and _session(pid) == pid:
                self.sessions[pid] = node
        for pid in psutil.pids():
            session = _session(pid)
            node = self.sessions.get(session)
            if node is None or pid in self.watched:
                continue
            try:
                process = psutil.Process(pid)
                role = "main" if pid == session else _role(process.cmdline())
            except psutil.Error:
                continue
            if role != "forked":  # between fork and exec it still looks like its parent
                self.watched[pid] = _Watched(node, process, role, self._pids.on_node(pid))

    def _see_processes(self) -> None:
        for pid, watched in list(self.watched.items()):
            state = _state(watched.process)
            if state != watched.state:
                watched.state = state
                self.write(
                    ProcessSeen(
                        t=time.monotonic(),
                        node=watched.node,
                        pid=watched.pid,
                        start=watched.process.create_time(),
                        role=watched.role,
                        state=state,
                    )
                )
            if state == "-":
                del self.watched[pid]
        living = {_session(pid) for pid in self.watched}
        for session in [each for each in self.sessions if each not in living and not psutil.pid_exists(each)]:
            del self.sessions[session]

    def _see_network(self, node: str, control: str) -> None:
        try:
            lines = ask(control, "status", timeout_s=ASK_TIMEOUT_S).splitlines()
        except OSError:
            return  # a machine that is gone has no network; its processes tell the rest
        rules = [line.removeprefix("rule\t") for line in lines if line.startswith("rule\t")]
        holding = any(line.startswith("held\t") and line != "held\t0" for line in lines)
        if self._networks.get(node, ([], False)) != (rules, holding):
            self._networks[node] = (rules, holding)
            self.write(NetworkSeen(t=time.monotonic(), node=node, rules=rules, holding=holding))


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _session(pid: int) -> int:
    """The session of a process; -1 when it cannot be told."""
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _role(command: list[str]) -> str:
    text = " ".join(command)
    if "resource_tracker" in text:
        return "tracker"
    if "spawn_main" in text:
        return "runner"
    return "forked" if "-m rig.lab.embedded.process" in text else "other"


def _state(process: psutil.Process) -> str:
    try:
        return STATES.get(process.status(), "S") if process.is_running() else "-"
    except psutil.NoSuchProcess:
        return "-"
    except psutil.Error:
        return "?"


def run(layout: ClusterLayout, lifeline_fd: int) -> None:
    """Look until the lifeline ends; then see to it that nothing of the cluster is left."""
    sampler = Sampler(layout)
    poll = select.poll()
    poll.register(lifeline_fd, select.POLLIN)
    due = time.monotonic()
    while not poll.poll(max(0.0, (due - time.monotonic()) * 1000)):
        sampler.look()
        due = max(due + PERIOD_S, time.monotonic())
    sampler.look_until_gone(MACHINES_END_S)
    reap(layout)
    sampler.look_until_gone(MACHINES_END_S)


def read_samples(folder: Path | str) -> Iterator[AnySample]:
    """The samples of a cluster's folder, in order; a torn last line is dropped. Raises ValueError for another broken
    one.
    """
    decoder: msgspec.json.Decoder[AnySample] = msgspec.json.Decoder(AnySample)
    with (Path(folder) / "samples.jsonl").open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise ValueError(f"{folder}/samples.jsonl:{number}: {error}") from error


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.embedded.sampler")
    parser.add_argument("folder")
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with its lifeline
    run(read_layout(arguments.folder), arguments.lifeline)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # everything is ended and written: taking the interpreter apart would only take time
