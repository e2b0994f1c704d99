"""How long requests took while a fault went on, by its kind. Pure, in columns, and flat in the length of the run.

A fault's window, for a model, is from its strike to the model's sustained recovery; to the heal where the model was
unaffected, and as long as it was watched where it did not recover. A request is in it when it was for that model and in
flight at some time of it. One that was in the windows of two kinds counts for both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rig.analysis.counts import Latencies, Timed, column
from rig.analysis.decision import Recovery
from rig.analysis.settings import Settings
from rig.analysis.settled import Settled
from rig.journal.records import FaultKind


@dataclass(slots=True)
class Times:
    """Of all windows of one kind of fault: how many there were, how long they were together, and their requests."""

    windows: int = 0
    length_s: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)


class During:
    """Give it the recoveries as they are decided, and every batch of the load once its recoveries are."""

    def __init__(self, settings: Settings) -> None:
        self.by_kind: dict[FaultKind, Times] = {}
        self._settings = settings
        self._taken = 0
        self._windows: list[Recovery] = []  # by strike
        self._longest_s = 0.0

    def take(self, batch: Settled, recoveries: Sequence[Recovery]) -> Settled:
        """Time the requests that were in a window. Returns the batch with its windows."""
        for recovery in recoveries[self._taken :]:
            self._add(recovery)
        self._taken = len(recoveries)
        within = self._within(batch)
        by_kind: defaultdict[FaultKind, set[int]] = defaultdict(set)
        for recovery, positions in within:
            by_kind[recovery.fault_kind].update(positions)
        for kind, positions in by_kind.items():
            self._time(self.by_kind[kind].latencies, batch, positions)
        return replace(batch, windows=[(recovery.fault, positions) for recovery, positions in within])

    def _add(self, recovery: Recovery) -> None:
        insort(self._windows, recovery, key=_strike_t)
        length_s = window_end_t(recovery) - recovery.strike_t
        self._longest_s = max(self._longest_s, length_s)
        times = self.by_kind.setdefault(recovery.fault_kind, Times())
        times.windows += 1
        times.length_s += length_s

    def _within(self, batch: Settled) -> list[tuple[Recovery, list[int]]]:
        """Each window that the batch may meet, with the positions of what was in it."""
        attempts = batch.attempts
        started_t = column([attempt.started_t for attempt in attempts])
        ended_t = column([attempt.ended_t for attempt in attempts])
        first = bisect_left(self._windows, float(started_t.min()) - self._longest_s, key=_strike_t)
        last = bisect_right(self._windows, float(ended_t.max()), key=_strike_t)
        found: list[tuple[Recovery, list[int]]] = []
        for recovery in self._windows[first:last]:
            met = np.flatnonzero((started_t <= window_end_t(recovery)) & (ended_t >= recovery.strike_t)).tolist()
            found.append((recovery, [at for at in met if attempts[at].model == recovery.model]))
        return found

    def _time(self, latencies: Latencies, batch: Settled, positions: set[int]) -> None:
        """As all requests are timed: void ones not at all, those of an open loop from when they were due."""
        void = {at for at in positions if (judged := batch.special.get(at)) is not None and judged.void}
        ended = [batch.attempts[at] for at in sorted(positions - void)]
        for streamed in (True, False):
            some = [attempt for attempt in ended if attempt.streamed == streamed]
            if some:
                begun_t = [one.planned_t if self._settings.open_loop else one.started_t for one in some]
                timed = Timed([one.end for one in some], streamed=streamed)
                latencies.add(timed, begun_t, self._settings.objectives)


def window_end_t(recovery: Recovery) -> float:
    """When a fault was over for a model: sustained recovery, or what comes nearest to it."""
    if recovery.sustained_from_strike_s is not None:
        return recovery.strike_t + recovery.sustained_from_strike_s
    if not recovery.affected and recovery.heal_t is not None:
        return max(recovery.heal_t, recovery.strike_t)
    return max(recovery.until_t, recovery.strike_t)


def _strike_t(recovery: Recovery) -> float:
    return recovery.strike_t
