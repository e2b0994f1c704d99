"""The cluster's account of a run: its ledger and the samples of its processes and networks, on the run's clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rig.lab.audit.lives import Life, Lives, Looks
from rig.lab.embedded import sampler
from rig.lab.embedded.sampler import AnySample, Beat, NetworkSeen, ProcessSeen, read_samples
from rig.lab.ledger import (
    AnyEntry,
    FilterChanged,
    Opened,
    ProcessExited,
    ProcessSignalled,
    ProcessStarted,
    RequestClosed,
    RequestOpened,
    Serving,
    Stopping,
    read_lines,
)

ROLES = ("main", "runner", "tracker")


@dataclass
class ClusterRequest:
    """What one node knows of one chat completion. Refused ones were never opened; a killed main closes none."""

    node: str
    pid: int  # of the main that wrote it
    response: str
    opened: RequestOpened | None = None
    closed: RequestClosed | None = None


@dataclass(frozen=True)
class Rules:
    """The packet filter of a node from `t` on. The ledger knows the command and what the removed rules had dropped."""

    t: float
    rules: list[str]
    command: str = ""
    packets: int = 0
    holding: bool = False


@dataclass
class ClusterAccount:
    """`zero` is where the run's clock began, on the cluster's (CLOCK_MONOTONIC, which all processes share)."""

    zero: float
    lives: Lives = field(default_factory=Lives)
    looks: Looks = field(default_factory=lambda: Looks([], []))
    requests: dict[str, list[ClusterRequest]] = field(default_factory=dict[str, list[ClusterRequest]])
    filters: dict[str, list[Rules]] = field(default_factory=dict[str, list[Rules]])  # by the ledger
    networks: dict[str, list[Rules]] = field(default_factory=dict[str, list[Rules]])  # by the sampler
    machine_ends: dict[str, float] = field(default_factory=dict[str, float])

    def resolution_s(self, t: float) -> float:
        return self.looks.resolution_s(t)

    def mains(self, node: str) -> list[Life]:
        return self.lives.of_node(node, "main")

    def request_count(self) -> int:
        return sum(len(each) for each in self.requests.values())


def read_cluster(folder: Path, wall_start: float) -> ClusterAccount:
    """Read what the cluster of a run left in `folder`; `wall_start` is the run's, Unix seconds. Raises ValueError for
    a broken file and OSError for a missing one."""
    decoder: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)
    files = [list(read_lines(path, decoder)) for path in sorted((folder / "ledger").glob("*.jsonl"))]
    if not files:
        raise FileNotFoundError(f"no ledger in {folder}")
    return account(files, list(read_samples(folder)), wall_start)


def account(files: Iterable[list[AnyEntry]], samples: Iterable[AnySample], wall_start: float) -> ClusterAccount:
    """Put both witnesses together. Each file is one writing process's, in the order of writing."""
    files, samples = list(files), list(samples)
    found = ClusterAccount(zero=wall_start - _wall_offset_s(files, samples, wall_start))
    for entries in files:
        _read_file(found, entries)
    _read_samples(found, samples)
    _late_facts(found, files)
    for life in found.lives.all():
        life.signals.sort()
        life.seen.sort()
    return found


def _wall_offset_s(files: list[list[AnyEntry]], samples: list[AnySample], wall_start: float) -> float:
    """Unix time minus CLOCK_MONOTONIC as it was told nearest to the start of the run: a wall clock may be slewed."""
    told = [(entry.t, entry.wall_offset_s) for entries in files for entry in entries if isinstance(entry, Opened)]
    told += [(sample.t, sample.wall_offset_s) for sample in samples if isinstance(sample, sampler.Started)]
    return min(told, key=lambda each: abs(each[0] + each[1] - wall_start))[1]


def _read_file(found: ClusterAccount, entries: list[AnyEntry]) -> None:
    opened = entries[0] if entries and isinstance(entries[0], Opened) else None
    pid = 0 if opened is None else opened.pid
    parent = pid if opened is not None and opened.process == "exo" else 0
    requests: dict[str, ClusterRequest] = {}
    for entry in entries:
        t = entry.t - found.zero
        match entry:
            case RequestOpened() | RequestClosed():
                _read_request(found, requests, entry, pid)
            case ProcessStarted() if entry.role in ROLES:
                life = found.lives.meet(entry.node, entry.pid, entry.start)
                life.role, life.parent, life.born_t, life.detail = entry.role, parent, t, entry.detail
            case FilterChanged():
                rules = Rules(t=t, rules=entry.rules, command=entry.command, packets=entry.packets)
                found.filters.setdefault(entry.node, []).append(rules)
            case Stopping() if entry.process == "machine":
                found.machine_ends[entry.node] = t
            case _:
                pass


def _read_request(
    found: ClusterAccount, requests: dict[str, ClusterRequest], entry: RequestOpened | RequestClosed, pid: int
) -> None:
    request = requests.get(entry.response)
    if request is None:
        request = requests[entry.response] = ClusterRequest(node=entry.node, pid=pid, response=entry.response)
        found.requests.setdefault(entry.request, []).append(request)
    on_run_clock = entry.t - found.zero
    if isinstance(entry, RequestOpened):
        request.opened = msgspec.structs.replace(entry, t=on_run_clock)
    else:
        last_t = None if entry.last_token_t is None else entry.last_token_t - found.zero
        request.closed = msgspec.structs.replace(entry, t=on_run_clock, last_token_t=last_t)


def _read_samples(found: ClusterAccount, samples: list[AnySample]) -> None:
    beats = [(sample.t - found.zero, sample.gap_max_s) for sample in samples if isinstance(sample, Beat)]
    found.looks = Looks([t for t, _ in beats], [gap_s for _, gap_s in beats])
    for sample in samples:
        t = sample.t - found.zero
        match sample:
            case ProcessSeen():
                life = found.lives.meet(sample.node, sample.pid, sample.start)
                life.role = sample.role if life.role == "other" else life.role
                life.seen.append((t, sample.state))
            case NetworkSeen():
                rules = Rules(t=t, rules=sample.rules, holding=sample.holding)
                found.networks.setdefault(sample.node, []).append(rules)
            case _:
                pass


def _late_facts(found: ClusterAccount, files: Iterable[list[AnyEntry]]) -> None:
    """What is said of a process by pid alone: after every life is known, so that a reused pid is told apart."""
    for entry in sorted((entry for entries in files for entry in entries), key=lambda entry: entry.t):
        if not isinstance(entry, ProcessExited | ProcessSignalled | Serving | Stopping):
            continue
        t = entry.t - found.zero
        life = found.lives.latest(entry.pid, t)
        match entry:
            case _ if life is None:
                continue  # of a machine or a session
            case ProcessExited() if entry.role != "session":
                life.ended_t, life.status = t, entry.status
            case ProcessSignalled():
                life.signals.append((t, entry.signal))
            case Serving():
                life.serving_t = t
            case Stopping() if entry.process == "exo":
                life.stopping_t = t
            case _:
                pass
