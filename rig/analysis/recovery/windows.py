"""When which node was faulted, and when a restarted node had not yet caught up.

Own node: a request counts as the own node's when a fault on its entry node's process, or on the clients' path to
it, was in force at some time between the request's start and its last progress + 1 s (divided by the pace). Partitions
between peers and killed workers never make it so. A request that is not streamed shows no progress: it is taken to have
progressed until the first strike after its start, if that came within twice `sustained` (30 s), but not beyond its end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from rig.analysis.intake.attempts import Bools, Floats, Rows
from rig.analysis.intake.near import Near
from rig.analysis.intake.ticks import Index
from rig.analysis.recovery.faults import CRASHES, Fault, FaultLog, Window, in_force
from rig.journal.records import Reachability, Unwedged


class Rejoins:
    """From a restart on a node until its event index has caught up with the others'.

    Where the target has no event index, until its API answers; never longer than `limit_s`, the time after which a
    target that has not recovered is said not to have; and not beyond the end of that process.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._windows: dict[str, list[Window]] = {}
        self._open: set[str] = set()
        self._index: dict[str, int] = {}
        self._down: set[str] = set()

    def restarted(self, node: str, at_t: float) -> None:
        self._windows.setdefault(node, []).append(Window(at_t, at_t + self._limit_s))
        self._open.add(node)

    def indices(self, run: Sequence[Index]) -> None:
        """Take the lengths of the nodes' logs."""
        for node, _, t, value in run:
            self._index[node] = value
            if node in self._open and self._caught_up(node):
                self._close(node, t)

    def see(self, record: Reachability) -> None:
        if not record.reachable:
            self._down.add(record.node)
            return
        self._down.discard(record.node)
        if not self._index:
            self._close(record.node, record.t)

    def _caught_up(self, node: str) -> bool:
        others = [other for other in self._index if other not in self._open]
        answering = [other for other in others if other not in self._down] or others
        mine = self._index[node]
        return mine >= min((self._index[other] for other in answering), default=mine)

    def stopped(self, node: str, at_t: float) -> None:
        """The node's process ended: if it had not caught up by then, it never will."""
        self._close(node, at_t)

    def _close(self, node: str, at_t: float) -> None:
        if node in self._open and at_t >= self._windows[node][-1].from_t:
            last = self._windows[node][-1]
            last.to_t = min(last.to_t, at_t)
            self._open.discard(node)

    def open_at(self, node: str, at_t: float) -> bool:
        """Whether a request sent to `node` at this moment met a restarted process that had not caught up."""
        for window in reversed(self._windows.get(node, ())):
            if window.from_t <= at_t:
                return at_t < window.to_t
        return False

    def open_at_each(self, node: str, at_t: Floats) -> Bools:
        """The same for many moments."""
        found, asked = np.zeros(len(at_t), dtype=np.bool_), np.ones(len(at_t), dtype=np.bool_)
        for window in reversed(self._windows.get(node, ())):
            if not asked.any():
                break
            begun = asked & (window.from_t <= at_t)
            found |= begun & (at_t < window.to_t)
            asked &= ~begun
        return found

    def windows(self) -> dict[str, list[Window]]:
        """By node, in the order of the restarts."""
        return {node: list(windows) for node, windows in self._windows.items()}

    def forget(self, before_t: float) -> None:
        """Drop the windows that were over by then, except the last of each node."""
        for node, windows in self._windows.items():
            self._windows[node] = [each for each in windows[:-1] if each.to_t >= before_t] + windows[-1:]

    def restarted_nodes(self) -> list[str]:
        return list(self._windows)

    def end_within(self, node: str, from_t: float, to_t: float) -> float:
        """When the last process that was started in [from_t, to_t) had caught up; `from_t` if none was started."""
        ends = [each.to_t for each in self._windows.get(node, ()) if from_t <= each.from_t < to_t]
        return max(ends, default=from_t)


class Windows:
    """Own-node windows of every node, from the faults and from what the rig restarted itself."""

    def __init__(
        self, faults: FaultLog, *, tolerance_s: float, lead_s: float, settle_s: float, unseen_s: float
    ) -> None:
        self._faults = faults
        self._tolerance_s = tolerance_s
        self._lead_s = lead_s
        self._unseen_s = unseen_s
        self._unwedged: dict[str, list[Window]] = {}
        self.rejoins = Rejoins(settle_s)

    def changed(self, fault: Fault, at_t: float) -> None:
        """A fault entered its present state at `at_t`."""
        if fault.kind not in CRASHES:
            return
        for node in fault.processes_hit:
            if fault.state == "struck":
                self.rejoins.stopped(node, at_t)
            elif fault.state == "healed":
                self.rejoins.restarted(node, at_t)

    def unwedged(self, record: Unwedged) -> None:
        self._unwedged.setdefault(record.node, []).append(Window(record.started_t, record.ended_t))
        self.rejoins.stopped(record.node, record.started_t)
        self.rejoins.restarted(record.node, record.ended_t)

    def forget(self, before_t: float) -> None:
        """Drop the windows that were over by then."""
        self.rejoins.forget(before_t)
        for node, windows in self._unwedged.items():
            self._unwedged[node] = [each for each in windows if each.to_t >= before_t]

    def own_node(self, rows: Rows) -> Bools:
        """Mask of the requests whose entry node was faulted while that mattered to them."""
        found = np.zeros(len(rows), dtype=np.bool_)
        near = Near(rows.started_t, self.stopped_t(rows) + self._tolerance_s)
        if not near:
            return found
        for window, hit in self._own(near.first_t, near.last_t):
            reach = near.reach(window.from_t, window.to_t)
            found[reach] |= near.meet(reach, window.from_t, window.to_t) & rows.part_through(reach, hit)
        return found

    def _own(self, from_t: float, to_t: float) -> Iterator[tuple[Window, Collection[str]]]:
        """Windows in which nodes were faulted, or restarted by the rig, with these nodes."""
        for entry, windows in self._unwedged.items():
            yield from ((window, (entry,)) for window in windows if window.meets(from_t, to_t))
        for fault in self._faults.around(from_t, to_t):
            if hit := {*fault.processes_hit, *fault.clients_cut}:
                yield in_force(fault), hit

    def rejoining(self, rows: Rows) -> Bools:
        """Mask of the requests that were sent to a restarted process that had not caught up."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for entry in self.rejoins.restarted_nodes():
            there = np.flatnonzero(rows.through(entry))
            found[there] = self.rejoins.open_at_each(entry, rows.started_t[there])
        return found

    def reach_end_t(self, end_t: float, *strikes: float | None) -> float:
        """`end_t`, or the next strike if that comes earlier, less the time by which a strike stops what it hits before
        it is known to have struck."""
        return min([end_t, *(strike_t - self._lead_s for strike_t in strikes if strike_t is not None)])

    def stopped_t(self, rows: Rows) -> Floats:
        """When their progress stopped. A request that is not streamed shows none: it is taken to have progressed until
        the first strike after its start, if that came soon."""
        stopped_t = rows.stalled_t
        unseen = np.flatnonzero(~(rows.streamed | rows.progressed))
        if len(unseen):
            started_t, strikes = rows.started_t[unseen], self._faults.strikes
            after = np.array([*strikes[bisect_left(strikes, float(started_t.min())) :], math.inf])
            first_t = after[np.searchsorted(after, started_t)]
            reached_t = np.where(first_t <= started_t + self._unseen_s, first_t, started_t)
            stopped_t[unseen] = np.minimum(reached_t, rows.ended_t[unseen])
        return stopped_t
