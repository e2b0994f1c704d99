"""The tally of requests: what became of each, and how it stood to the faults. Memory does not grow with the run.

A request that ended waits (as a small object) until nothing that could still be written would change how it is counted:
a strike, a heal or a recovery that belongs to its time. Then it is counted and forgotten; only lost ones are listed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from rig.analysis.attempts import Attempt
from rig.analysis.context import Context
from rig.analysis.counts import Counts, Latencies, Objectives
from rig.analysis.decision import Recovery
from rig.analysis.faults import Window
from rig.analysis.firsts import Firsts
from rig.journal.records import How, RequestEnded, RequestStarted
from rig.load.sketch import LogSketch

MAX_LISTED: Final = 200

CALM: Final = "calm"
FAULTED: Final = "around faults"
"""Exposed to one, or through an own node that was faulted or rejoining."""

Own = Literal["node", "rejoining"] | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A request with neither a result nor an error."""

    id: str
    how: How
    model: str
    entry: str
    streamed: bool
    started_t: float
    stalled_t: float
    ended_t: float
    own: Own
    fault: int | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How one request that ended was counted: `faults` are the effective ones it was exposed to, `fault` is the one to
    which its failure is attributed."""

    attempt: Attempt
    own: Own
    void: bool
    faults: frozenset[int]
    fault: int | None


OnJudged: TypeAlias = Callable[[Judged], None]


@dataclass(slots=True)
class FaultCounts:
    """Of the requests of the load: exposed to this fault, and the failures that are attributed to it."""

    exposed: int = 0
    error: int = 0
    lost: int = 0
    lost_own_node: int = 0


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met every objective: how many, of those that ended, and a second of the load."""

    met: int
    share: float | None
    per_s: float | None


@dataclass(slots=True)
class Tally:
    """The result. `calm` counts requests that were neither exposed nor own-node nor own-rejoining."""

    total: Counts = field(default_factory=Counts)
    calm: Counts = field(default_factory=Counts)
    baseline: Counts = field(default_factory=Counts)
    by_model: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_entry: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_streamed: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_fault: defaultdict[int, FaultCounts] = field(default_factory=lambda: defaultdict(FaultCounts))
    latencies: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))  # by model
    latencies_by_entry: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    latencies_by_weather: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    from_start: Latencies = field(default_factory=Latencies)  # of an open loop, whose other latencies are from when due
    late: LogSketch = field(default_factory=LogSketch)  # of an open loop: how long after it was due each was sent
    late_max_s: float = 0.0
    first_t: float | None = None  # when the first was sent
    last_t: float | None = None  # when the last ended
    listed: list[Lost] = field(
        default_factory=lambda: Firsts[Lost](MAX_LISTED)
    )  # lost, own node not faulted; the first 200
    listed_own: list[Lost] = field(
        default_factory=lambda: Firsts[Lost](MAX_LISTED)
    )  # lost, own node faulted; the first 200
    damaged: int = 0
    unclean: int = 0
    damaged_ids: list[str] = field(default_factory=lambda: Firsts[str](MAX_LISTED))

    def goodput(self, objectives: Objectives) -> Goodput | None:
        """None where nothing was asked for."""
        if not objectives.any:
            return None
        together = self.all_latencies()
        judged = together.good + together.failed
        length_s = 0.0 if self.first_t is None or self.last_t is None else self.last_t - self.first_t
        return Goodput(
            met=together.met,
            share=together.met / judged if judged else None,
            per_s=together.met / length_s if length_s > 0 else None,
        )

    def all_latencies(self) -> Latencies:
        """Of all models together."""
        together = Latencies()
        for latencies in self.latencies.values():
            together.take(latencies)
        return together


class RequestTally:
    """Of one source, load or probe. Feed `started` and `ended`, call `settle` now and then and `unfinished` at the end.

    `on_judged` is told of each request that ended, once nothing can change how it is counted.
    """

    def __init__(self, context: Context, on_judged: OnJudged | None = None) -> None:
        self.result = Tally()
        self._context = context
        self._on_judged = on_judged
        self._pending: deque[tuple[Attempt, RequestEnded]] = deque()
        self._spans = Spans()
        self._cells: dict[tuple[str, str, bool], _Cell] = {}

    def started(self, record: RequestStarted) -> None:
        self._cell(record.model, record.entry, record.streamed).counts.started += 1
        if self.result.first_t is None:
            self.result.first_t = record.t

    def ended(self, attempt: Attempt, record: RequestEnded) -> None:
        self._pending.append((attempt, record))
        result = self.result
        result.last_t = max(result.last_t or attempt.ended_t, attempt.ended_t)
        if record.unclean_end is not None:
            result.unclean += 1
        if record.damaged is not None:
            result.damaged += 1
            result.damaged_ids.append(record.id)

    def settle(self, before_t: float, recoveries: list[Recovery], baseline: Window | None) -> None:
        """Count what ended before `before_t`. `recoveries` are those decided so far (the list may only have grown).

        `baseline` is the time of load without faults, in which nothing may be lost.
        """
        self._spans.take(recoveries)
        while self._pending and self._pending[0][0].ended_t < before_t:
            attempt, record = self._pending.popleft()
            self._count(attempt, record, baseline)

    def unfinished(self, record: RequestStarted) -> None:
        self._cell(record.model, record.entry, record.streamed).counts.unfinished += 1

    def finish(self) -> Tally:
        """The result; nothing is fed after it."""
        for (model, entry, streamed), cell in self._cells.items():
            cell.add_to(self.result, model, entry, streamed=streamed)
        return self.result

    def _cell(self, model: str, entry: str, streamed: bool) -> _Cell:  # noqa: FBT001 (a key like the others)
        key = (model, entry, streamed)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _Cell()
        return cell

    def _count(self, attempt: Attempt, record: RequestEnded, baseline: Window | None) -> None:
        windows = self._context.windows
        own: Own = "node" if windows.own_node(attempt) else "rejoining" if windows.rejoining(attempt) else None
        void = self._context.stalls.voids(attempt) is not None
        met = self._met(attempt)
        cell = self._cell(attempt.model, attempt.entry, attempt.streamed)
        _add(cell.counts, attempt, own, exposed=bool(met), void=void)
        calm = not met and own is None
        if calm:
            cell.calm.started += 1
            _add(cell.calm, attempt, own, exposed=False, void=void)
        if baseline is not None and not met and baseline.from_t <= attempt.started_t < baseline.to_t:
            cell.baseline.started += 1
            _add(cell.baseline, attempt, own, exposed=False, void=void)
        self._time(cell.calm_times if calm else cell.other_times, attempt, record)
        fault = None if void or attempt.ok else self._attributed(attempt)
        if self._on_judged is not None:
            self._on_judged(Judged(attempt, own, void, frozenset(met), fault))
        if not void and not attempt.ok:
            self._fail(attempt, own, fault)

    def _time(self, latencies: Latencies, attempt: Attempt, record: RequestEnded) -> None:
        """In an open loop from when it was due, and from its start as well."""
        settings, result = self._context.settings, self.result
        streamed, objectives = attempt.streamed, settings.objectives
        if not settings.open_loop:
            latencies.add(record, from_t=attempt.started_t, streamed=streamed, objectives=objectives)
            return
        latencies.add(record, from_t=attempt.planned_t, streamed=streamed, objectives=objectives)
        result.from_start.add(record, from_t=attempt.started_t, streamed=streamed)
        late_s = max(0.0, attempt.started_t - attempt.planned_t)
        result.late.add(late_s)
        result.late_max_s = max(result.late_max_s, late_s)

    def _fail(self, attempt: Attempt, own: Own, fault: int | None) -> None:
        result = self.result
        if fault is not None:
            self._blame(result.by_fault[fault], attempt, own)
        listed = result.listed_own if own == "node" else result.listed
        if attempt.outcome == "lost":
            listed.append(_lost(attempt, own, fault))

    def _met(self, attempt: Attempt) -> set[int]:
        """The effective faults it was exposed to: in flight at their strike, or started in an outage of its model."""
        faults = self._context.faults
        first = bisect_left(faults.strikes, attempt.started_t)
        last = bisect_right(faults.strikes, attempt.ended_t)
        met = {fault.number for fault in faults.struck[first:last] if fault.effective}
        met |= self._spans.outages_at(attempt.model, attempt.started_t)
        for number in met:
            self.result.by_fault[number].exposed += 1
        return met

    def _attributed(self, attempt: Attempt) -> int | None:
        """Decided with the recovery of its model; else the fault that struck its own node."""
        if attempt.fault is not None:
            return attempt.fault
        for fault in self._context.faults.around(attempt.stalled_t, attempt.ended_t):
            if fault.effective and attempt.entry in (*fault.processes_hit, *fault.clients_cut):
                return fault.number
        return None

    def _blame(self, counts: FaultCounts, attempt: Attempt, own: Own) -> None:
        if attempt.outcome == "lost":
            counts.lost += 1
            counts.lost_own_node += own == "node"
        else:
            counts.error += 1


@dataclass(slots=True)
class _Cell:
    """Everything of one model, entry node and way of answering. `calm_times` are of those that count as calm."""

    counts: Counts = field(default_factory=Counts)
    calm: Counts = field(default_factory=Counts)
    baseline: Counts = field(default_factory=Counts)
    calm_times: Latencies = field(default_factory=Latencies)
    other_times: Latencies = field(default_factory=Latencies)

    def add_to(self, result: Tally, model: str, entry: str, *, streamed: bool) -> None:
        way = "streamed" if streamed else "not streamed"
        for counts in (result.total, result.by_model[model], result.by_entry[entry], result.by_streamed[way]):
            counts.take(self.counts)
        result.calm.take(self.calm)
        result.baseline.take(self.baseline)
        for weather, times in ((CALM, self.calm_times), (FAULTED, self.other_times)):
            for latencies in (
                result.latencies[model],
                result.latencies_by_entry[entry],
                result.latencies_by_weather[weather],
            ):
                latencies.take(times)


class Spans:
    """Outages by model, for asking which were going on at a moment. One entry a recovery."""

    def __init__(self) -> None:
        self._taken = 0
        self._by_model: dict[str, list[Recovery]] = {}
        self._strikes: dict[str, list[float]] = {}
        self._longest_s = 0.0

    def take(self, recoveries: list[Recovery]) -> None:
        for recovery in recoveries[self._taken :]:
            if recovery.affected:
                spans = self._by_model.setdefault(recovery.model, [])
                spans.append(recovery)
                spans.sort(key=lambda span: span.strike_t)
                self._strikes[recovery.model] = [span.strike_t for span in spans]
                self._longest_s = max(self._longest_s, outage_end_t(recovery) - recovery.strike_t)
        self._taken = len(recoveries)

    def outages_at(self, model: str, at_t: float) -> set[int]:
        strikes = self._strikes.get(model, [])
        first = bisect_left(strikes, at_t - self._longest_s)
        last = bisect_right(strikes, at_t)
        return {span.fault for span in self._by_model.get(model, [])[first:last] if at_t <= outage_end_t(span)}


def outage_end_t(recovery: Recovery) -> float:
    return recovery.strike_t + recovery.outage_s


def _add(counts: Counts, attempt: Attempt, own: Own, *, exposed: bool, void: bool) -> None:
    counts.exposed += exposed
    counts.own_node += own == "node"
    counts.own_rejoining += own == "rejoining"
    if void:
        counts.void += 1
        return
    match attempt.outcome:
        case "completed":
            counts.completed += 1
        case "error":
            counts.error += 1
        case "lost":
            counts.lost += 1
            counts.lost_own_node += own == "node"
            counts.lost_own_rejoining += own == "rejoining"
            match attempt.how:
                case "overdue":
                    counts.overdue += 1
                case "truncated":
                    counts.truncated += 1
                case "empty":
                    counts.empty += 1
                case "hung" | None:
                    counts.hung += 1


def _lost(attempt: Attempt, own: Own, fault: int | None) -> Lost:
    return Lost(
        id=attempt.id,
        how=attempt.how or "hung",
        model=attempt.model,
        entry=attempt.entry,
        streamed=attempt.streamed,
        started_t=attempt.started_t,
        stalled_t=attempt.stalled_t,
        ended_t=attempt.ended_t,
        own=own,
        fault=fault,
        evidence=attempt.evidence,
    )
