"""Counting requests: each with its outcome, its faults and its times. Memory does not grow with the run.

A request that ended waits until nothing that could still be written would change how it is counted: a strike, a heal or
a recovery that belongs to its time. Then it is counted, with some thousand others at once, and forgotten; only lost
ones are listed. Most completed far from any fault: those are found by their times alone, and counted as columns.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rig.analysis.attempts import Attempt, Key, Pairing, Source, key_of
from rig.analysis.context import Context
from rig.analysis.counts import Counts, Floats, Latencies, Timed, column
from rig.analysis.decision import Recovery
from rig.analysis.faults import Window, in_force
from rig.analysis.requests import CALM, FAULTED, FaultCounts, Lost, Own, Tally
from rig.analysis.settled import Judged, Listener, Settled
from rig.analysis.spans import Spans

AT_ONCE: Final = 10_000
"""So many wait before they are counted; they cost about 2 KB each."""


class RequestCounter:
    """Of one source. Feed `ended`, call `settle` when `waiting` is large, and `finish` at the end."""

    def __init__(self, source: Source, context: Context, listener: Listener | None = None) -> None:
        self.result = Tally()
        self._source: Source = source
        self._context = context
        self._listener = listener
        self._pending: deque[Attempt] = deque()
        self._spans = Spans()
        self._cells: dict[Key, _Cell] = {}
        self._open_loop = context.settings.open_loop

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def ended(self, attempt: Attempt) -> None:
        self._pending.append(attempt)

    def settle(self, before_t: float, recoveries: list[Recovery], baseline: Window | None) -> None:
        """Count what ended before `before_t`. `recoveries` are those decided so far (the list may only have grown).

        `baseline` is the time of load without faults, in which nothing may be lost.
        """
        self._spans.take(recoveries)
        while self._pending and self._pending[0].ended_t < before_t:
            ready = list(islice(self._pending, AT_ONCE))
            late = next((at for at, attempt in enumerate(ready) if attempt.ended_t >= before_t), len(ready))
            for _ in range(late):
                self._pending.popleft()
            self._count(ready[:late], baseline)

    def finish(self, pairing: Pairing) -> Tally:
        """The result, given that no record follows: what is in flight has no end."""
        for start in pairing.in_flight.values():
            if start.source == self._source:
                if self._open_loop:
                    self._late([start.planned_t], [start.t])
                counts = self._cell(key_of(start)).counts
                counts.started += 1
                counts.unfinished += 1
                if self._listener is not None:
                    self._listener.unfinished(start, self._context.now_t)
        for (source, key), count in pairing.overwritten.items():
            if source == self._source:
                self._cell(key).counts.started += count
        for (model, entry, streamed), cell in sorted(self._cells.items(), key=lambda item: item[0]):
            cell.add_to(self.result, model, entry, streamed=streamed)
        self._cells.clear()
        self.result.first_t = pairing.first_t.get(self._source)
        return self.result

    def _cell(self, key: Key) -> _Cell:
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _Cell()
        return cell

    def _count(self, attempts: Sequence[Attempt], baseline: Window | None) -> None:
        near = self._near(attempts)
        special = {at: self._judge(attempts[at], baseline) for at in near}
        plain: dict[Key, list[float]] = defaultdict(list)  # what completed far from any fault: when each was sent
        calm: dict[Key, list[Attempt]] = defaultdict(list)
        other: dict[Key, list[Attempt]] = defaultdict(list)
        for at, attempt in enumerate(attempts):
            key, judged = key_of(attempt.start), special.get(at)
            if judged is None:
                plain[key].append(attempt.started_t)
            elif judged.void:  # in no time; its tokens came all the same
                self._cell(key).other_times.tokens += attempt.end.usage_tokens or attempt.end.tokens
                continue
            groups = calm if judged is None or (not judged.faults and judged.own is None) else other
            groups[key].append(attempt)
        self._count_plain(plain, baseline)
        for key, group in calm.items():
            self._time(self._cell(key).calm_times, group, streamed=key[2])
        for key, group in other.items():
            self._time(self._cell(key).other_times, group, streamed=key[2])
        self._remark(attempts)
        if self._open_loop:
            self._late([attempt.start.planned_t for attempt in attempts], [attempt.started_t for attempt in attempts])
        if self._listener is not None:
            self._listener.settled(Settled(attempts, special))

    def _near(self, attempts: Sequence[Attempt]) -> list[int]:
        """Positions of what failed, or met anything between its start and the last moment at which that can matter."""
        started_t = column([attempt.started_t for attempt in attempts])
        ended_t = column([attempt.ended_t for attempt in attempts])
        until_t = ended_t + self._context.settings.tolerance_s
        windows = list(self._windows(float(started_t.min()), float(until_t.max())))
        met = _meet(started_t, until_t, windows)
        met |= ~np.array([attempt.ok for attempt in attempts], dtype=np.bool_)
        return np.flatnonzero(met).tolist()

    def _windows(self, from_t: float, to_t: float) -> Iterator[Window]:
        """All times in [from_t, to_t] in which a request may have met a fault or what came of one."""
        for fault in self._context.faults.around(from_t, to_t):
            yield in_force(fault)
        yield from self._context.windows.restarts(from_t, to_t)
        yield from self._spans.windows(from_t, to_t)

    def _judge(self, attempt: Attempt, baseline: Window | None) -> Judged:
        windows = self._context.windows
        own: Own = "node" if windows.own_node(attempt) else "rejoining" if windows.rejoining(attempt) else None
        void = self._context.stalls.voids(attempt) is not None
        met = self._met(attempt)
        cell = self._cell(key_of(attempt.start))
        _add(cell.counts, attempt, own, exposed=bool(met), void=void)
        if not met and own is None:
            _add(cell.calm, attempt, own, exposed=False, void=void)
        if baseline is not None and not met and baseline.from_t <= attempt.started_t < baseline.to_t:
            _add(cell.baseline, attempt, own, exposed=False, void=void)
        fault = None if void or attempt.ok else self._attributed(attempt)
        if not void and not attempt.ok:
            self._fail(attempt, own, fault)
        return Judged(attempt, own, void, frozenset(met), fault)

    def _count_plain(self, plain: Mapping[Key, Sequence[float]], baseline: Window | None) -> None:
        for key, moments in plain.items():
            cell, count = self._cell(key), len(moments)
            for counts in (cell.counts, cell.calm):
                counts.started += count
                counts.completed += count
            if baseline is not None:
                inside = sum(baseline.from_t <= moment_t < baseline.to_t for moment_t in moments)
                cell.baseline.started += inside
                cell.baseline.completed += inside

    def _time(self, latencies: Latencies, attempts: Sequence[Attempt], *, streamed: bool) -> None:
        """In an open loop from when it was due, and from its start as well."""
        objectives, result = self._context.settings.objectives, self.result
        started_t = [attempt.started_t for attempt in attempts]
        timed = Timed([attempt.end for attempt in attempts], streamed=streamed)
        if not self._open_loop:
            latencies.add(timed, started_t, objectives)
            return
        planned_t = [attempt.start.planned_t for attempt in attempts]
        latencies.add(timed, planned_t, objectives)
        result.from_start.add(timed, started_t)

    def _late(self, planned_t: Sequence[float], started_t: Sequence[float]) -> None:
        late_s = np.maximum(column(started_t) - column(planned_t), 0.0)
        self.result.late.add_all(late_s)
        self.result.late_max_s = max(self.result.late_max_s, float(late_s.max()))

    def _remark(self, attempts: Sequence[Attempt]) -> None:
        result = self.result
        last_t = max(attempt.ended_t for attempt in attempts)
        result.last_t = last_t if result.last_t is None else max(result.last_t, last_t)
        for attempt in attempts:
            end = attempt.end
            if end.unclean_end is not None:
                result.unclean += 1
            if end.damaged is not None:
                result.damaged += 1
                result.damaged_ids.append(end.id)

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
                result.latencies_by_streamed[way],
                result.latencies_by_weather[weather],
            ):
                latencies.take(times)


def _meet(from_t: Floats, to_t: Floats, windows: Sequence[Window]) -> NDArray[np.bool_]:
    """Which of the spans [from_t, to_t] meet any of the windows."""
    begins: list[float] = []
    ends: list[float] = []
    for window in sorted(windows, key=lambda one: one.from_t):
        if ends and window.from_t <= ends[-1]:
            ends[-1] = max(ends[-1], window.to_t)
        else:
            begins.append(window.from_t)
            ends.append(window.to_t)
    nearest = np.searchsorted(column(ends), from_t)
    return np.append(column(begins), math.inf)[nearest] <= to_t


def _add(counts: Counts, attempt: Attempt, own: Own, *, exposed: bool, void: bool) -> None:
    counts.started += 1
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
