"""How long requests took during faults, by kind. Pure, in columns, in memory that does not grow with the run.

A fault's window, for a model, is from its strike to the model's sustained recovery; to the heal if the model was
unaffected, and to the end of the watch if it did not recover. A request is in a window if it was for that model and in
flight at some time within it. A request in the windows of two kinds counts for both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rig.analysis.intake.attempts import Attempts, Bools, Places
from rig.analysis.intake.near import Near
from rig.analysis.recovery.decision import Recovery
from rig.analysis.requests.counts import Latencies, Timed
from rig.analysis.requests.settled import Settled
from rig.analysis.settings import Settings
from rig.journal.records import FaultKind


@dataclass(slots=True)
class Times:
    """All windows of one kind of fault: their number, their total length, and their requests."""

    windows: int = 0
    length_s: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)


class During:
    """`take` each set of settled requests of the load with all recoveries that were decided so far."""

    def __init__(self, settings: Settings) -> None:
        self.by_kind: dict[FaultKind, Times] = {}
        self._settings = settings
        self._taken = 0
        self._windows: list[Recovery] = []  # by strike
        self._longest_s = 0.0

    def take(self, settled: Settled, recoveries: Sequence[Recovery]) -> Settled:
        """Time the requests that were in a window. Returns the settled requests with their windows."""
        for recovery in recoveries[self._taken :]:
            self._add(recovery)
        self._taken = len(recoveries)
        within = self._within(settled.attempts)
        by_kind: dict[FaultKind, Bools] = {}
        for recovery, places in within:
            if recovery.fault_kind not in by_kind:
                by_kind[recovery.fault_kind] = np.zeros(len(settled.attempts), dtype=np.bool_)
            by_kind[recovery.fault_kind][places] = True
        if by_kind:
            gaps = settled.attempts.gaps()
            for kind, which in by_kind.items():
                self._time(self.by_kind[kind].latencies, settled.attempts, which & ~settled.void, gaps)
        return replace(settled, windows=[(recovery.fault, places) for recovery, places in within])

    def _add(self, recovery: Recovery) -> None:
        insort(self._windows, recovery, key=_strike_t)
        length_s = window_end_t(recovery) - recovery.strike_t
        self._longest_s = max(self._longest_s, length_s)
        times = self.by_kind.setdefault(recovery.fault_kind, Times())
        times.windows += 1
        times.length_s += length_s

    def _within(self, attempts: Attempts) -> list[tuple[Recovery, Places]]:
        """Each window that any of these requests was in, with their places."""
        near = Near(attempts.started_t, attempts.ended_t)
        first = bisect_left(self._windows, near.first_t - self._longest_s, key=_strike_t)
        last = bisect_right(self._windows, near.last_t, key=_strike_t)
        found: list[tuple[Recovery, Places]] = []
        for recovery in self._windows[first:last]:
            end_t = window_end_t(recovery)
            reach = near.reach(recovery.strike_t, end_t)
            of_model = attempts.ways.flags("model", recovery.model)[attempts.way[reach]]
            met = np.flatnonzero(near.meet(reach, recovery.strike_t, end_t) & of_model)
            if len(met):
                found.append((recovery, met + reach.start))
        return found

    def _time(self, latencies: Latencies, attempts: Attempts, which: Bools, gaps: NDArray[np.int32]) -> None:
        """As all requests are timed: in an open loop, from when they were due."""
        for streamed in (True, False):
            some = which & (attempts.streamed == streamed)
            if some.any():
                rows = attempts.where(some)
                timed = Timed(rows, gaps[some[gaps[:, 0]], 1:], streamed=streamed)
                begun_t = rows.floats("planned_t") if self._settings.open_loop else rows.started_t
                latencies.add(timed, begun_t, self._settings.objectives)


def window_end_t(recovery: Recovery) -> float:
    """When a fault was over for a model: its sustained recovery, or the nearest thing that is known."""
    if recovery.sustained_from_strike_s is not None:
        return recovery.strike_t + recovery.sustained_from_strike_s
    if not recovery.affected and recovery.heal_t is not None:
        return max(recovery.heal_t, recovery.strike_t)
    return max(recovery.until_t, recovery.strike_t)


def _strike_t(recovery: Recovery) -> float:
    return recovery.strike_t
