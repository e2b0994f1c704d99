"""What a node says of itself through `inspect.sh`: clock, boot, processes, master, memory, disk, leases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from rig.errors import NodeError

What = Literal["all", "clock", "tree", "master", "leases", "procs"]
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_ELECTED: Final = re.compile(r"Node (\S+) elected master")


@dataclass(frozen=True)
class Process:
    """A process is its pid and its start (an opaque word); `state` is one letter: T stopped, Z defunct."""

    pid: int
    ppid: int
    start: str
    state: str
    command: str

    @property
    def identity(self) -> str:
        return f"{self.pid}:{self.start}"


@dataclass(frozen=True)
class Lease:
    """A fault's record on its node. Times are on the node's clock, seconds."""

    node: str
    id: str
    kind: str
    owner: str
    run: str
    started_node_t: float
    deadline_node_t: float
    phase: str
    same_boot: bool
    script_alive: bool


@dataclass(frozen=True)
class Inspection:
    """Answers of one `inspect.sh`. `None` and empty: not asked for, or the node cannot tell."""

    node: str
    clock: float
    boot_id: str = ""
    os: str = ""
    main: Process | None = None
    tree: list[Process] = field(default_factory=list[Process])  # main first
    workers: list[Process] = field(default_factory=list[Process])  # those in the tree that work for instances
    orphans: list[Process] = field(default_factory=list[Process])
    cpu_s: dict[int, float] = field(default_factory=dict[int, float])  # by pid in the tree: CPU time since its start
    master_log: str = ""
    master_claim: bool | None = None
    master_files: bool = False
    master_claimed_s: float | None = None  # for how long it has claimed, by its log
    elected_id: str = ""  # the other node that its log says was elected
    node_id: str = ""  # its own, as its log has it
    mem_available_bytes: int | None = None
    mem_wired_bytes: int | None = None
    disk_free_bytes: int | None = None
    leases: list[Lease] = field(default_factory=list[Lease])
    lock: dict[str, str] = field(default_factory=dict[str, str])
    uid: int | None = None
    filter_allowed: bool = False
    tools: dict[str, str] = field(default_factory=dict[str, str])  # nc, perl, lsof, ss, filter → path
    unreadable: list[str] = field(default_factory=list[str])  # lines that could not be understood

    @property
    def main_cpu_s(self) -> float | None:
        """CPU time that the main process has used since its start."""
        return None if self.main is None else self.cpu_s.get(self.main.pid)


def _nobody(command: str) -> bool:
    del command
    return False


def parse_inspection(node: str, text: str, is_worker: Callable[[str], bool] = _nobody) -> Inspection:
    """`key=value` lines → Inspection. Raises NodeError when even the clock is missing.

    `is_worker` tells workers by their commands.
    """
    pairs = [(key, value) for key, equals, value in (line.partition("=") for line in text.splitlines()) if equals]
    single = dict(pairs)
    if (clock := _number(single.get("clock"))) is None:
        raise NodeError(node, f"inspect.sh gave no clock but {text[:200]!r}")
    unreadable: list[str] = []
    processes = [_process(value, unreadable) for key, value in pairs if key == "proc"]
    tree = [process for process in processes if process is not None]
    orphans = [_process(value, unreadable) for key, value in pairs if key == "orphan"]
    leases = [_lease(node, value, unreadable) for key, value in pairs if key == "lease"]
    main_pid = _integer(single.get("main_pid"))
    return Inspection(
        node=node,
        clock=clock,
        boot_id=single.get("boot_id", ""),
        os=single.get("os", ""),
        main=_main(single, main_pid, tree),
        tree=tree,
        workers=[process for process in tree if is_worker(process.command)],
        orphans=[process for process in orphans if process is not None],
        cpu_s=_cpu([value for key, value in pairs if key == "cpu"], unreadable),
        master_log=single.get("master_log", ""),
        master_claim={"1": True, "0": False}.get(single.get("master_claim", "")),
        master_files=single.get("master_files") == "1",
        master_claimed_s=_claimed_s(single.get("master_since", ""), single.get("log_now", "")),
        elected_id=elected_in(single.get("master_log", "")),
        node_id=single.get("node_id", ""),
        mem_available_bytes=_integer(single.get("mem_available")),
        mem_wired_bytes=_integer(single.get("mem_wired")),
        disk_free_bytes=_integer(single.get("disk_free")),
        leases=[lease for lease in leases if lease is not None],
        lock=_lock([value for key, value in pairs if key == "lock"]),
        uid=_integer(single.get("uid")),
        filter_allowed=single.get("sudo_filter") == "1",
        tools={key.removeprefix("have_"): value for key, value in pairs if key.startswith("have_") and value},
        unreadable=unreadable,
    )


def elected_in(line: str) -> str:
    """The id of the node that a line of the target's log says was elected; empty when it names none."""
    return found[1] if (found := _ELECTED.search(line)) else ""


def _claimed_s(since: str, now: str) -> float | None:
    """From the time on a log's line to the node's own local time; None where either does not tell."""
    begun, ended = _STAMP.search(since), _STAMP.search(now)
    if begun is None or ended is None:
        return None
    try:
        passed = datetime.fromisoformat(ended[0]) - datetime.fromisoformat(begun[0])
    except ValueError:
        return None
    return max(0.0, passed.total_seconds())


def _main(single: Mapping[str, str], pid: int | None, tree: list[Process]) -> Process | None:
    if pid is None:
        return None
    for process in tree:
        if process.pid == pid:
            return process
    return Process(pid, 0, single.get("main_start", ""), "?", single.get("main_cmd", ""))


def _process(value: str, unreadable: list[str]) -> Process | None:
    parts = value.split("|", 4)
    if len(parts) != 5 or not parts[0].isdigit() or not parts[1].isdigit():
        unreadable.append(value)
        return None
    return Process(int(parts[0]), int(parts[1]), parts[2], parts[3], parts[4])


def _cpu(values: list[str], unreadable: list[str]) -> dict[int, float]:
    found: dict[int, float] = {}
    for value in values:
        pid, _, used = value.partition("|")
        used_s = _number(used)
        if pid.isdigit() and used_s is not None:
            found[int(pid)] = used_s
        else:
            unreadable.append(value)
    return found


def _lease(node: str, value: str, unreadable: list[str]) -> Lease | None:
    parts = value.split("|")
    if len(parts) != 9 or not parts[0]:
        unreadable.append(value)
        return None
    identity, kind, owner, run, started, deadline, phase, same_boot, alive = parts
    return Lease(
        node=node,
        id=identity,
        kind=kind,
        owner=owner,
        run=run,
        started_node_t=_number(started) or 0.0,
        deadline_node_t=_number(deadline) or 0.0,
        phase=phase,
        same_boot=same_boot == "1",
        script_alive=alive == "1",
    )


def _lock(lines: list[str]) -> dict[str, str]:
    return {key: value for key, equals, value in (line.partition("=") for line in lines) if equals}


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
