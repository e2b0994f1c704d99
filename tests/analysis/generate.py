"""Journals made up from a seed: plausible runs of any size, for tests of the analysis and for its benchmark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from rig.journal.records import (
    AnyRecord,
    FaultChanged,
    FaultKind,
    FaultState,
    Gaps,
    InstanceServed,
    MasterSeen,
    Own,
    PhaseStarted,
    RequestEnded,
    RequestStarted,
    RunEnded,
    ViewChanged,
)
from rig.journal.run import PlannedFault, RunInfo, write_run
from rig.journal.write import ROTATE_BYTES, journal_name
from rig.load.sketch import GapSketch
from rig.observe.events import SERVED_AT_ONCE

NODES: Final[tuple[str, ...]] = ("node-1", "node-2", "node-3")
MODELS: Final[tuple[str, ...]] = ("lab/tiny-a", "lab/tiny-b")
KINDS: Final[tuple[FaultKind, ...]] = ("node-crash", "master-crash", "freeze", "runner-kill", "partition")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a made-up run is like. Durations in seconds, at pace 1."""

    seed: int = 1
    duration_s: float = 600.0
    faults: int = 6
    requests: int = 1500
    views: int = 1000
    baseline_s: float = 60.0
    lost_share: float = 0.0  # of the requests that meet a fault
    finished: bool = True
    slower: float = 1.0  # times to serve are so many times as long
    probe_s: float = 0.5  # between two probes while a fault or its recovery goes on
    served: bool = False  # the event log said which instance each request went to


@dataclass
class _Fault:
    number: int
    kind: FaultKind
    node: str
    strike_t: float
    heal_t: float
    back_t: float  # models serve again
    models: tuple[str, ...]
    states: list[tuple[float, FaultState]] = field(default_factory=list[tuple[float, FaultState]])


def info_of(shape: Shape, **changes: Any) -> RunInfo:
    """A `run.json` that goes with the records."""
    kinds = {kind: {"weight": 1.0, "hold": [5.0, 20.0], "time_to_serve": 60.0} for kind in KINDS}
    schedule = [
        PlannedFault(fault=number, kind=KINDS[number % 5], aim="node", hold_s=8.0, gap_s=30.0)
        for number in range(shape.faults + 5)
    ]
    described: dict[str, Any] = {
        "run": f"made-up-{shape.seed}",
        "wall_start": 1_767_225_600.0,
        "wall_start_iso": "2026-01-01T00:00:00+00:00",
        "rig_version": "0.1.0",
        "rig_revision": None,
        "python": "3.11",
        "seed": shape.seed,
        "duration_s": shape.duration_s,
        "pace": 1.0,
        "embedded": False,
        "behaviour": None,
        "inventory": {"name": "made-up", "nodes": {name: {} for name in NODES}},
        "workload": {"name": "chat", "models": [{"model": model} for model in MODELS]},
        "plan": {
            "name": "keeper",
            "settle": 240.0,
            "sustained": 15.0,
            "baseline": shape.baseline_s,
            "kinds": kinds,
            "requires": [],
        },
        "schedule": schedule,
        "expected_faults": shape.faults,
        "target_revisions": {},
        "pids_allowed": {},
        "versions": {},
    }
    return RunInfo(**(described | changes))


def records_of(shape: Shape) -> list[AnyRecord]:
    """In the order of a journal."""
    rng = random.Random(shape.seed)
    faults = _faults(shape, rng)
    records: list[AnyRecord] = [
        PhaseStarted(t=0.0, phase="baseline"),
        PhaseStarted(t=shape.baseline_s, phase="faults"),
        PhaseStarted(t=shape.duration_s - 20.0, phase="drain"),
    ]
    records += _masters(faults)
    records += _fault_records(faults)
    requests = list(_requests(shape, faults, rng))
    records += requests
    if shape.served:
        records += _served(shape, faults, requests)
    records += _views(shape, faults, rng)
    for second in range(1, int(shape.duration_s)):
        records.append(_own(float(second), rng))
    records.sort(key=lambda record: record.t)
    if shape.finished:
        records.append(RunEnded(t=max(shape.duration_s, records[-1].t), reason="finished"))
    return records


def moved(record: AnyRecord, cycle: int, span_s: float, faults: int) -> AnyRecord:
    """The same record in a later repetition of a run of `span_s` with so many faults: times, ids, numbers moved on."""
    on_s = cycle * span_s
    changes: dict[str, Any] = {"t": record.t + on_s}
    if isinstance(record, RequestStarted | RequestEnded):
        changes["id"] = f"{record.id}.{cycle}"
    if isinstance(record, RequestEnded) and record.response_id is not None:
        changes["response_id"] = f"{record.response_id}.{cycle}"
    if isinstance(record, InstanceServed):
        changes["response_ids"] = [f"{response_id}.{cycle}" for response_id in record.response_ids]
    if isinstance(record, FaultChanged):
        changes["fault"] = record.fault + cycle * faults
    for name in record.__struct_fields__:
        if name.endswith("_t") and (value := getattr(record, name)) is not None:
            changes[name] = value + on_s
    return msgspec.structs.replace(record, **changes)


def write_long_journal(folder: Path, info: RunInfo, shape: Shape, cycles: int) -> Path:
    """A run of many repetitions of the shape, its journal in as many files as the rig would have made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_run(folder, info)
    number, size, file = 0, 0, (folder / journal_name(0)).open("wb")
    tape = [r for r in records_of(shape) if not isinstance(r, RunEnded)]
    encode = msgspec.json.Encoder().encode
    for cycle in range(cycles):
        last = cycle == cycles - 1
        kept = [r for r in tape if not isinstance(r, PhaseStarted) or (last if r.phase == "drain" else cycle == 0)]
        lines = b"".join(encode(moved(record, cycle, shape.duration_s, shape.faults)) + b"\n" for record in kept)
        if size and size + len(lines) > ROTATE_BYTES:
            file.close()
            number, size, file = number + 1, 0, (folder / journal_name(number + 1)).open("wb")
        size += file.write(lines)
    file.write(encode(RunEnded(t=cycles * shape.duration_s, reason="finished")) + b"\n")
    file.close()
    return folder


def write_journal(folder: Path, info: RunInfo, records: list[AnyRecord]) -> Path:
    """A run folder as the rig would have left it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_run(folder, info)
    (folder / "journal.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return folder


def _faults(shape: Shape, rng: random.Random) -> list[_Fault]:
    spacing_s = (shape.duration_s - shape.baseline_s - 60.0) / max(shape.faults, 1)
    found: list[_Fault] = []
    for number in range(shape.faults):
        strike_t = shape.baseline_s + 5.0 + number * spacing_s + rng.random() * 0.2 * spacing_s
        kind = KINDS[number % len(KINDS)]
        heal_t = strike_t if kind == "runner-kill" else strike_t + rng.uniform(3.0, 0.25 * spacing_s)
        back_t = heal_t + rng.uniform(1.0, 0.25 * spacing_s) * shape.slower
        models = MODELS if kind == "master-crash" else (rng.choice(MODELS),)
        found.append(_Fault(number, kind, rng.choice(NODES), strike_t, heal_t, back_t, models))
    return found


def _fault_records(faults: list[_Fault]) -> Iterator[FaultChanged]:
    for fault in faults:
        crash = fault.kind in ("node-crash", "master-crash", "freeze")
        moments: tuple[tuple[FaultState, float], ...] = (
            ("planned", fault.strike_t - 1.0),
            ("leased", fault.strike_t - 0.1),
            ("struck", fault.strike_t),
            ("holding", fault.strike_t),
            ("healed", fault.heal_t),
        )
        for state, at_t in moments:
            yield FaultChanged(
                t=at_t + 0.3,
                fault=fault.number,
                fault_kind=fault.kind,
                state=state,
                aim=f"node {fault.node}",
                nodes=[fault.node],
                processes_hit=[fault.node] if crash else [],
                hold_s=fault.heal_t - fault.strike_t,
                at_t=at_t,
                at_error_s=0.005,
            )


def _masters(faults: list[_Fault]) -> Iterator[MasterSeen]:
    """The first node, and whoever comes after a master that is killed."""
    master = NODES[0]
    yield MasterSeen(t=0.2, node=master, is_master=True, source="log", at_t=0.1)
    for fault in faults:
        if fault.kind in ("node-crash", "master-crash") and fault.node == master:
            master = NODES[(NODES.index(master) + 1) % len(NODES)]
            elected_t = fault.strike_t + 3.3
            yield MasterSeen(t=elected_t + 0.2, node=master, is_master=True, source="log", at_t=elected_t)


def _requests(shape: Shape, faults: list[_Fault], rng: random.Random) -> Iterator[AnyRecord]:
    span_s = shape.duration_s - 20.0
    moments = [(rng.random() * span_s, "load") for _ in range(shape.requests)]
    for fault in faults:
        step_t = fault.strike_t
        while step_t < min(fault.back_t + 20.0, span_s):
            moments.append((step_t, "probe"))
            step_t += shape.probe_s
    for number, (sent_t, source) in enumerate(sorted(moments)):
        model, entry = rng.choice(MODELS), rng.choice(NODES)
        yield RequestStarted(
            t=sent_t,
            id=f"{source[0]}{number}",
            source="load" if source == "load" else "probe",
            client=f"c{number % 12}",
            model=model,
            entry=entry,
            planned_t=sent_t,
            streamed=rng.random() < 0.75,
            prompt_tokens=64,
            max_tokens=16,
        )
        yield _end(shape, faults, rng, number, source, model, entry, sent_t)


def _served(shape: Shape, faults: list[_Fault], requests: list[AnyRecord]) -> Iterator[InstanceServed]:
    """The event log is read when a fault is over, and at the end: what ended since the last reading is told."""
    ends = sorted((r.t, r.response_id) for r in requests if isinstance(r, RequestEnded) and r.response_id is not None)
    untold = iter(ends)
    ended = next(untold, None)
    for read_t in sorted([*(fault.back_t + 16.0 for fault in faults), shape.duration_s]):
        found: list[str] = []
        while ended is not None and ended[0] <= read_t:
            found.append(ended[1])
            ended = next(untold, None)
        for first in range(0, len(found), SERVED_AT_ONCE):
            some = found[first : first + SERVED_AT_ONCE]
            yield InstanceServed(t=read_t, node=NODES[0], instance="instance-0", response_ids=some)


def _end(
    shape: Shape,
    faults: list[_Fault],
    rng: random.Random,
    number: int,
    source: str,
    model: str,
    entry: str,
    sent_t: float,
) -> RequestEnded:
    took_s = rng.uniform(0.2, 2.0) if source == "load" else rng.uniform(0.05, 0.2)
    met = next((f for f in faults if f.strike_t <= sent_t + took_s and sent_t < f.back_t and model in f.models), None)
    name = f"{source[0]}{number}"
    if met is not None:
        told_t = max(met.strike_t, sent_t) + 0.05
        if source == "load" and rng.random() < shape.lost_share:
            return RequestEnded(t=told_t, id=name, outcome="lost", how="truncated", started_t=sent_t, ended_t=told_t)
        return RequestEnded(
            t=told_t, id=name, outcome="error", started_t=sent_t, ended_t=told_t, evidence="404", status=404
        )
    tokens = rng.randint(4, 16) if source == "load" else 1
    first_t, end_t = sent_t + 0.05, sent_t + took_s
    gaps = GapSketch()
    for _ in range(tokens - 1):
        gaps.add((took_s - 0.05) / tokens)
    return RequestEnded(
        t=end_t,
        id=name,
        outcome="completed",
        started_t=sent_t,
        connected_t=sent_t + 0.001,
        first_byte_t=sent_t + 0.002,
        first_token_t=first_t,
        last_token_t=end_t,
        last_progress_t=end_t,
        ended_t=end_t,
        status=200,
        response_id=f"response-{number}",
        tokens=tokens,
        usage_tokens=tokens,
        finish_reason="length",
        gaps=Gaps(count=tokens - 1, sum_s=took_s - 0.05, max_s=0.2, sketch=gaps.record()),
    )


def _views(shape: Shape, faults: list[_Fault], rng: random.Random) -> Iterator[ViewChanged]:
    """Instances: a crash makes a new one; and event indices that grow."""
    names: dict[str, str] = dict.fromkeys(MODELS, "instance-0")
    changes: list[tuple[float, dict[str, str]]] = [(0.5, names.copy())]
    for fault in faults:
        if fault.kind in ("node-crash", "master-crash"):
            names |= dict.fromkeys(fault.models, f"instance-{fault.number + 1}")
            changes.append((fault.back_t - 0.5, dict(names)))
    for at_t, listed in changes:
        value = {
            f"{name}-{model}": {"model": model, "runners": {"id-of-a-node": "runner"}, "port": 50_000}
            for model, name in listed.items()
        }
        for node in NODES:
            yield ViewChanged(t=at_t, node=node, facet="instances", since_t=at_t - 1.0, value=value)
    step_s = shape.duration_s / max(shape.views // len(NODES), 1)
    for step in range(shape.views // len(NODES)):
        for node in NODES:
            at_t = step * step_s + rng.random() * 0.01
            yield ViewChanged(t=at_t, node=node, facet="event_index", since_t=at_t - 1.0, value=step * 5)


def _own(at_t: float, rng: random.Random) -> Own:
    return Own(
        t=at_t,
        interval_s=1.0,
        lag_max_s=rng.random() * 0.01,
        cpu_percent=5.0,
        rss_bytes=80_000_000,
        open_files=40,
        wall_drift_s=0.0,
    )
