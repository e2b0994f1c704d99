"""What happened around one fault or one request, line by line, from the journal alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from rig.errors import UsageError
from rig.journal.records import (
    ActivityDied,
    AnyRecord,
    EventSeen,
    FaultChanged,
    Finding,
    InstanceServed,
    LockLost,
    LogLine,
    MasterSeen,
    PhaseStarted,
    Reachability,
    Redeployed,
    RequestEnded,
    RequestStarted,
    RunEnded,
    Served,
    Unwedged,
    ViewChanged,
)
from rig.visible import one_line
from rig.written import duration

MAX_LINES: Final = 400
MAX_VALUE: Final = 160
BEFORE_S: Final = 10.0
AFTER_S: Final = 60.0
_LATE_S: Final = 0.001
_DULL: Final = frozenset({"memory", "event_index"})

Records = Callable[[], Iterable[AnyRecord]]
"""The records from the beginning; called once for each pass."""


@dataclass(frozen=True)
class Line:
    t: float
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.t:10.3f}  {self.what:<9} {one_line(self.text)}"


def fault_timeline(records: Records, number: int, *, pace: float = 1.0) -> list[str]:
    """From 10 s before the fault to 60 s after its end (divided by the pace). Raises UsageError if it is not there."""
    changes = [r for r in records() if isinstance(r, FaultChanged) and r.fault == number]
    if not changes:
        known = sorted({r.fault for r in records() if isinstance(r, FaultChanged)})
        span = f"{known[0]} to {known[-1]}" if known else "none"
        raise UsageError(f"there is no fault {number} in this run", remedy=f"its faults: {span}")
    from_t = min(min(change.at_t, change.t) for change in changes) - BEFORE_S / pace
    to_t = max(change.t for change in changes) + AFTER_S / pace
    first, last = changes[0], changes[-1]
    head = [f"fault {number}: {first.fault_kind}, aimed at {first.aim}, now {last.state}"]
    head += [f"  evidence of {change.state}: {_short(change.evidence)}" for change in changes if change.evidence]
    return [*head, *_lines(records(), from_t, to_t)]


def request_timeline(records: Records, request: str, *, pace: float = 1.0) -> list[str]:
    """The request itself, its evidence, and what happened meanwhile. Raises UsageError if it is not there."""
    start: RequestStarted | None = None
    end: RequestEnded | None = None
    strike: FaultChanged | None = None
    for record in records():
        if isinstance(record, RequestStarted) and record.id == request:
            start = record
        elif isinstance(record, RequestEnded) and record.id == request:
            end = record
            break
        elif isinstance(record, FaultChanged) and record.state == "struck" and start is None:
            strike = record
    if start is None:
        raise UsageError(f"there is no request {request!r} in this run", remedy="rig report lists the lost ones")
    head = _about(start, end)
    if strike is not None:
        where = ", ".join(strike.nodes) or strike.aim
        head.append(
            f"  the last strike before it: fault {strike.fault}, {strike.fault_kind} on {where} at {strike.at_t:.3f}"
        )
    last_t = start.t + AFTER_S / pace if end is None else end.ended_t
    return [*head, *_lines(records(), start.t - 1.0, last_t + BEFORE_S / pace, start.entry)]


def overview(records: Records) -> list[str]:
    """Without a fault or request asked for: the phases and each fault's states."""
    return [
        str(line)
        for record in records()
        if isinstance(record, PhaseStarted | FaultChanged | RunEnded)
        for line in _say(record)
    ]


def _about(start: RequestStarted, end: RequestEnded | None) -> list[str]:
    kind = "streamed" if start.streamed else "not streamed"
    head = [
        f"request {start.id} ({start.source}, {start.client}): {start.model} through {start.entry}, {kind}",
        f"  prompt {start.prompt_tokens} tokens, at most {start.max_tokens} asked for",
    ]
    if end is None:
        return [*head, *_due(start, start.t), "  it has no end line: the driver died, or still waits"]
    how = f" ({end.how})" if end.how else ""
    head.append(f"  {end.outcome}{how}, HTTP {end.status}, response {end.response_id}, {end.tokens} tokens")
    moments = (
        ("sent", end.started_t),
        ("connected", end.connected_t),
        ("first byte", end.first_byte_t),
        ("first token", end.first_token_t),
        ("last token", end.last_token_t),
        ("last progress", end.last_progress_t),
        ("ended", end.ended_t),
    )
    head += _due(start, end.started_t)
    head += [f"  {name:<14}{t:10.3f}  +{t - end.started_t:.3f}" for name, t in moments if t is not None]
    if end.gaps.count:
        head.append(f"  {end.gaps.count} gaps between chunks, the longest {duration(end.gaps.max_s)}")
    head += [f"  {note}" for note in (end.unclean_end, end.damaged) if note]
    if end.evidence:
        head.append(f"  evidence: {_short(end.evidence, 1000)}")
    return head


def _due(start: RequestStarted, sent_t: float) -> list[str]:
    """When it was due, where it was sent later than that by more than a client of a closed loop takes."""
    late_s = sent_t - start.planned_t
    return [f"  {'due':<14}{start.planned_t:10.3f}  -{late_s:.3f}"] if late_s >= _LATE_S else []


def _lines(records: Iterable[AnyRecord], from_t: float, to_t: float, node: str | None = None) -> list[str]:
    """What was written in that time, what completed only as counts; with a node, views and log lines of it alone."""
    lines: list[str] = []
    quiet = _Completed()
    for record in records:
        if record.t > to_t + 5.0:
            break
        if not from_t <= record.t <= to_t:
            continue
        if isinstance(record, RequestStarted | RequestEnded):
            text = quiet.take(record)
            said = [] if text is None else [text]
        elif node is not None and isinstance(record, ViewChanged | LogLine | EventSeen) and record.node != node:
            continue
        else:
            said = list(_say(record))
        if said and (counted := quiet.flush(record.t)) is not None:
            lines.append(str(counted))
        lines += map(str, said)
        if len(lines) >= MAX_LINES:
            return [*lines[:MAX_LINES], f"… cut at {MAX_LINES} lines, {record.t:.1f} s; the journal has the rest"]
    if (counted := quiet.flush(to_t)) is not None:
        lines.append(str(counted))
    return lines


@dataclass
class _Completed:
    """Requests that completed are many: counted until something else happens."""

    counts: Counter[str] = field(default_factory=Counter[str])
    models: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, record: RequestStarted | RequestEnded) -> Line | None:
        if isinstance(record, RequestStarted):
            self.models[record.id] = f"{record.source} of {record.model} through {record.entry}"
            return None
        about = self.models.pop(record.id, "begun before")
        if record.outcome == "completed":
            self.counts[about.partition(" through ")[0]] += 1
            return None
        how = f" ({record.how})" if record.how else ""
        return Line(record.t, record.outcome, f"{record.id}{how}, {about}: {_short(record.evidence)}")

    def flush(self, t: float) -> Line | None:
        if not self.counts:
            return None
        said = ", ".join(f"{count} {about}" for about, count in sorted(self.counts.items()))
        self.counts.clear()
        return Line(t, "completed", f"until here: {said}")


def _say(record: AnyRecord) -> Iterator[Line]:  # noqa: PLR0912 (one case a kind of record)
    match record:
        case PhaseStarted():
            yield Line(record.t, "phase", record.phase)
        case RunEnded():
            yield Line(record.t, "end", f"{record.reason} {record.detail}")
        case LockLost():
            yield Line(record.t, "lock", f"{record.reason}, since {record.since_t:.3f}")
        case FaultChanged():
            where = f" on {', '.join(record.nodes)}" if record.nodes else ""
            at = f", at {record.at_t:.3f} ± {record.at_error_s:.3f}"
            reason = f": {record.reason}" if record.reason else ""
            yield Line(record.t, "fault", f"{record.fault} {record.fault_kind} {record.state}{where}{at}{reason}")
        case Unwedged():
            took = record.ended_t - record.started_t
            yield Line(
                record.t, "unwedge", f"{record.node} after fault {record.fault}, {duration(took)} {record.detail}"
            )
        case Redeployed():
            yield Line(record.t, "deploy", f"{record.model} ({record.reason}) {record.detail}")
        case ViewChanged() if record.facet not in _DULL:
            yield Line(record.t, "view", f"{record.node} {record.facet}: {_short(record.value)}")
        case Reachability():
            word = "answers" if record.reachable else "does not answer"
            yield Line(record.t, "reach", f"{record.node} {word} {record.detail}")
        case MasterSeen():
            word = "is master" if record.is_master else "is not master"
            yield Line(record.t, "master", f"{record.node} {word} (by its {record.source}), at {record.at_t:.3f}")
        case EventSeen():
            yield Line(record.t, "event", f"{record.node} #{record.index} {record.name}: {_short(record.data)}")
        case LogLine():
            yield Line(record.t, "log", f"{record.node} at {record.at_t:.3f}: {_short(record.text)}")
        case Finding():
            yield Line(record.t, "finding", f"{record.code}: {record.text}")
        case ActivityDied():
            yield Line(record.t, "died", f"{record.activity}: {record.detail}")
        case InstanceServed():
            for response_id in record.response_ids:
                yield Line(record.t, "served", f"{response_id} by instance {record.instance}")
        case Served():
            yield Line(record.t, "served", f"{record.response_id} by instance {record.instance}")
        case _:
            pass


def _short(value: Any, limit: int = MAX_VALUE) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
