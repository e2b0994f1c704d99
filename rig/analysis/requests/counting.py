"""Counts requests with their outcomes, faults and times, in memory that does not grow with the run.

A request that ended waits until nothing that could still be written would change how it is counted: a strike, a heal or
a recovery that belongs to its time. Then it is counted, with some thousand others at once, and forgotten; only lost
requests are listed. Probes are counted, not timed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rig.analysis.intake.attempts import (
    HOWS,
    NOBODY,
    Attempts,
    Bools,
    Floats,
    Places,
    Rows,
    Source,
    Way,
    blamed,
    way_of,
)
from rig.analysis.intake.near import Near
from rig.analysis.intake.pairing import Pairing
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Window, in_force
from rig.analysis.recovery.rescue import Rescue
from rig.analysis.requests.counts import Counts, Latencies, Timed
from rig.analysis.requests.settled import NOT_OWN, OWN_NODE, OWN_REJOINING, OWNS, Settled
from rig.analysis.requests.spans import Spans, of_recovery, of_rescue
from rig.analysis.requests.tally import CALM, FAULTED, Lost, Tally
from rig.journal.records import RequestStarted


class RequestCounter:
    """Of one source. Feed `ended`, call `settle` when much is `waiting`, and `finish` at the end."""

    def __init__(self, source: Source, context: Context) -> None:
        self.result = Tally()
        self._source: Source = source
        self._context = context
        self._pending: deque[tuple[Attempts, Places]] = deque()
        self._outages = Spans[Recovery](of_recovery)
        self._rescues = Spans[Rescue](of_rescue)
        self._cells: dict[Way, _Cell] = {}
        self._open_loop = context.settings.open_loop
        self.waiting = 0

    def ended(self, attempts: Attempts) -> None:
        """Take the requests of this source."""
        mine = np.flatnonzero(attempts.of(self._source))
        if len(mine):
            self._pending.append((attempts, mine))
            self.waiting += len(mine)

    def settle(
        self, before_t: float, recoveries: Sequence[Recovery], rescues: Sequence[Rescue], baseline: Window | None
    ) -> list[Settled]:
        """Count what ended before `before_t`, by the recoveries and rescues that were decided so far, and return it.

        `baseline` is the time of load without faults, in which nothing may be lost.
        """
        settled: list[Settled] = []
        self._outages.take(recoveries)
        self._rescues.take(rescues)
        while self._pending:
            attempts, mine = self._pending[0]
            late = attempts.ended_t[mine] >= before_t
            count = int(late.argmax()) if late.any() else len(mine)
            if count:
                settled.append(self._count(attempts.part(mine[:count]), baseline))
                self.waiting -= count
            if count < len(mine):
                self._pending[0] = (attempts, mine[count:])
                break
            self._pending.popleft()
        return settled

    def unfinished(self, pairing: Pairing) -> list[RequestStarted]:
        """The requests that are in flight."""
        return [start for start in pairing.in_flight.values() if start.source == self._source]

    def finish(self, pairing: Pairing) -> Tally:
        """The result, given that no record follows: what is in flight has no end."""
        for start in self.unfinished(pairing):
            if self._open_loop:
                self._late(np.array([start.planned_t]), np.array([start.t]))
            counts = self._cell(way_of(start)).counts
            counts.started += 1
            counts.unfinished += 1
        for way, count in pairing.overwritten.items():
            if way.source == self._source:
                self._cell(way).counts.started += count
        for way, cell in sorted(self._cells.items()):
            cell.add_to(self.result, way)
        self._cells.clear()
        self.result.first_t = pairing.first_t.get(self._source)
        return self.result

    def _cell(self, way: Way) -> _Cell:
        cell = self._cells.get(way)
        if cell is None:
            cell = self._cells[way] = _Cell()
        return cell

    def _count(self, attempts: Attempts, baseline: Window | None) -> Settled:
        settled = self._judge(attempts)
        exposed = settled.exposed
        calm = ~exposed & (settled.own == NOT_OWN) & (attempts.fault == NOBODY) & ~self.unwedged(attempts)
        begun = np.zeros(len(attempts), dtype=np.bool_)
        if baseline is not None:
            begun = ~exposed & (baseline.from_t <= attempts.started_t) & (attempts.started_t < baseline.to_t)
        for code in _codes(attempts):
            cell, there = self._cell(attempts.ways[code]), attempts.way == code
            for counts, which in ((cell.counts, there), (cell.calm, there & calm), (cell.baseline, there & begun)):
                _add(counts, settled, which)
        if self._open_loop:
            self._late(attempts.floats("planned_t"), attempts.started_t)
        if self._source == "load":
            self._time(settled, calm)
        self._remark(attempts)
        self._blame(settled)
        return settled

    def _judge(self, attempts: Attempts) -> Settled:
        """Decide what each request met, and mark each failure with the fault to which it is attributed."""
        windows = self._context.windows
        own_node = windows.own_node(attempts)
        own = np.where(own_node, OWN_NODE, np.where(windows.rejoining(attempts), OWN_REJOINING, NOT_OWN))
        void = self._context.voids(attempts)
        met = self._met(attempts)
        exposed = np.zeros(len(attempts), dtype=np.bool_)
        for number, which in met.items():
            exposed |= which
            self.result.by_fault[number].exposed += int(np.count_nonzero(which))
        self._attribute(attempts, ~attempts.ok & ~void)
        return Settled(attempts, own.astype(np.int8), void, exposed, met)

    def _met(self, attempts: Rows) -> dict[int, Bools]:
        """Exposed requests by effective fault: in flight at its strike, or started in an outage of their model."""
        found: dict[int, Bools] = {}
        lives, starts = Near(attempts.started_t, attempts.ended_t), Near(attempts.started_t, attempts.started_t)
        for fault in self._context.faults.struck_in(lives.first_t, lives.last_t):
            if fault.effective and fault.struck_t is not None:
                reach = lives.reach(fault.struck_t, fault.struck_t)
                _note(found, fault.number, len(attempts), reach, lives.meet(reach, fault.struck_t, fault.struck_t))
        for model, number, window in self._outages.outages(starts.first_t, starts.last_t):
            reach = starts.reach(window.from_t, window.to_t)
            of_model = attempts.ways.flags("model", model)[attempts.way[reach]]
            _note(found, number, len(attempts), reach, starts.meet(reach, window.from_t, window.to_t) & of_model)
        return found

    def unwedged(self, attempts: Rows) -> Bools:
        """Mask of the requests exposed to an unwedging: in flight at it, or sent before their model served again."""
        found: dict[int, Bools] = {}
        lives, starts = Near(attempts.started_t, attempts.ended_t), Near(attempts.started_t, attempts.started_t)
        for model, number, window in self._rescues.outages(lives.first_t, lives.last_t):
            of_model = attempts.ways.flags("model", model)[attempts.way]
            for near, to_t in ((lives, window.from_t), (starts, window.to_t)):
                reach = near.reach(window.from_t, to_t)
                which = near.meet(reach, window.from_t, to_t) & of_model[reach]
                _note(found, number, len(attempts), reach, which)
        for number, which in found.items():
            self.result.by_unwedging[number].exposed += int(np.count_nonzero(which))
        return np.logical_or.reduce([np.zeros(len(attempts), dtype=np.bool_), *found.values()])

    def _attribute(self, attempts: Rows, failed: Bools) -> None:
        """Failures that no recovery of their model took are attributed to the fault that struck their own node."""
        left = np.flatnonzero(failed & (attempts.fault == NOBODY))
        rows = attempts.where(left)
        near = Near(rows.stalled_t, rows.ended_t)
        if not near:
            return
        for fault in self._context.faults.around(near.first_t, near.last_t):
            hit, window = {*fault.processes_hit, *fault.clients_cut}, in_force(fault)
            if not fault.effective or not hit:
                continue
            reach = near.reach(window.from_t, window.to_t)
            which = near.meet(reach, window.from_t, window.to_t) & rows.part_through(reach, hit)
            marked = rows.fault[reach]
            marked[which & (marked == NOBODY)] = fault.number
        attempts.fault[left] = rows.fault

    def _blame(self, settled: Settled) -> None:
        attempts, result = settled.attempts, self.result
        failed = ~attempts.ok & ~settled.void
        lost, own_node = attempts.lost, settled.own == OWN_NODE
        marked = failed & (attempts.fault != NOBODY)
        for code in np.unique(attempts.fault[marked]).tolist():
            fault, unwedging = blamed(code)
            counts = result.by_unwedging[unwedging or 0] if fault is None else result.by_fault[fault]
            which = marked & (attempts.fault == code)
            counts.error += int(np.count_nonzero(which & ~lost))
            counts.lost += int(np.count_nonzero(which & lost))
            counts.lost_own_node += int(np.count_nonzero(which & lost & own_node))
        for at in np.flatnonzero(failed & lost).tolist():
            (result.listed_own if own_node[at] else result.listed).append(_lost(settled, at))

    def _time(self, settled: Settled, calm: Bools) -> None:
        """In an open loop, latencies are from when requests were due, and from their start as well. Void requests are
        not timed; their tokens count all the same."""
        objectives, result = self._context.settings.objectives, self.result
        attempts, void = settled.attempts, settled.void
        gaps = attempts.gaps()
        for code in _codes(attempts):
            way = attempts.ways[code]
            cell, there = self._cell(way), attempts.way == code
            cell.other_times.tokens += int(attempts.tokens[there & void].sum())
            there &= ~void
            for latencies, which in ((cell.calm_times, there & calm), (cell.other_times, there & ~calm)):
                if not which.any():
                    continue
                rows = attempts.where(which)
                timed = Timed(rows, gaps[which[gaps[:, 0]], 1:], streamed=way.streamed)
                if not self._open_loop:
                    latencies.add(timed, rows.started_t, objectives)
                    continue
                planned_t = rows.floats("planned_t")
                latencies.add(timed, planned_t, objectives)
                result.from_start.add(timed, rows.started_t)

    def _late(self, planned_t: Floats, started_t: Floats) -> None:
        late_s = np.maximum(started_t - planned_t, 0.0)
        self.result.late.add_all(late_s)
        self.result.late_max_s = max(self.result.late_max_s, float(late_s.max()))

    def _remark(self, attempts: Attempts) -> None:
        result, details = self.result, attempts.details
        last_t = float(attempts.ended_t.max())
        result.last_t = last_t if result.last_t is None else max(result.last_t, last_t)
        result.unclean += len(attempts.positions(details.unclean))
        for position in attempts.positions(details.damaged):
            result.damaged += 1
            result.damaged_ids.append(details.ids[position])


@dataclass(slots=True)
class _Cell:
    """Counts and times of one way. `calm_times` are of the requests that count as calm."""

    counts: Counts = field(default_factory=Counts)
    calm: Counts = field(default_factory=Counts)
    baseline: Counts = field(default_factory=Counts)
    calm_times: Latencies = field(default_factory=Latencies)
    other_times: Latencies = field(default_factory=Latencies)

    def add_to(self, result: Tally, way: Way) -> None:
        answered = "streamed" if way.streamed else "not streamed"
        for counts in (
            result.total,
            result.by_model[way.model],
            result.by_entry[way.entry],
            result.by_streamed[answered],
        ):
            counts.take(self.counts)
        result.calm.take(self.calm)
        result.baseline.take(self.baseline)
        for weather, times in ((CALM, self.calm_times), (FAULTED, self.other_times)):
            for latencies in (
                result.latencies[way.model],
                result.latencies_by_entry[way.entry],
                result.latencies_by_streamed[answered],
                result.latencies_by_weather[weather],
            ):
                latencies.take(times)


def _codes(attempts: Rows) -> list[int]:
    """The ways of these requests."""
    return np.unique(attempts.way).tolist()


def _note(found: dict[int, Bools], number: int, length: int, reach: slice, which: Bools) -> None:
    """Mark these rows, of those in reach, as exposed to this fault."""
    if which.any():
        if number not in found:
            found[number] = np.zeros(length, dtype=np.bool_)
        found[number][reach] |= which


def _add(counts: Counts, settled: Settled, which: Bools) -> None:
    """Count the rows of a mask."""
    total = int(np.count_nonzero(which))
    if not total:
        return
    attempts = settled.attempts
    own_node, rejoining = settled.own == OWN_NODE, settled.own == OWN_REJOINING
    counts.started += total
    counts.exposed += int(np.count_nonzero(which & settled.exposed))
    counts.own_node += int(np.count_nonzero(which & own_node))
    counts.own_rejoining += int(np.count_nonzero(which & rejoining))
    counts.void += int(np.count_nonzero(which & settled.void))
    judged = which & ~settled.void
    counts.completed += int(np.count_nonzero(judged & attempts.ok))
    counts.error += int(np.count_nonzero(judged & attempts.error))
    counts.error_own_node += int(np.count_nonzero(judged & attempts.error & own_node))
    lost = judged & attempts.lost
    if lost.any():
        counts.lost += int(np.count_nonzero(lost))
        counts.lost_own_node += int(np.count_nonzero(lost & own_node))
        counts.lost_own_rejoining += int(np.count_nonzero(lost & rejoining))
        for how, count in zip(HOWS, np.bincount(attempts.how[lost], minlength=len(HOWS)).tolist(), strict=True):
            name = how or "hung"
            setattr(counts, name, getattr(counts, name) + count)


def _lost(settled: Settled, at: int) -> Lost:
    attempts = settled.attempts
    fault, unwedging = blamed(int(attempts.fault[at]))
    way = attempts.ways[int(attempts.way[at])]
    return Lost(
        id=attempts.id(at),
        how=HOWS[int(attempts.how[at])] or "hung",
        model=way.model,
        entry=way.entry,
        streamed=way.streamed,
        started_t=float(attempts.started_t[at]),
        stalled_t=float(attempts.stalled_t[at]),
        ended_t=float(attempts.ended_t[at]),
        own=OWNS[int(settled.own[at])],
        fault=fault,
        unwedging=unwedging,
        evidence=attempts.evidence(at),
    )
