"""When which node was faulted, and when a restarted node had not yet caught up.

Own node: a request counts as the own node's when a fault on its entry node's exo process, or on the clients' path to
it, was in force at some time between the request's start and its last progress + 1 s (divided by the pace). Partitions
between peers and killed runners never make it so. A request that is not streamed shows no progress: it is taken to have
progressed until the first strike after its start, if that came within twice `sustained` (30 s), but not beyond its end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator

from rig.analysis.attempts import Attempt
from rig.analysis.faults import CRASHES, Fault, FaultLog, Window
from rig.journal.records import Reachability, Unwedged, ViewChanged


class Rejoins:
    """From a restart of a node's exo until its event index has caught up with the others'.

    Where the target has no event index, until its API answers; never longer than `limit_s`, the time after which a
    target that has not recovered is said not to have; and not beyond the end of that exo process.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._windows: dict[str, list[Window]] = {}
        self._open: set[str] = set()
        self._index: dict[str, float] = {}
        self._down: set[str] = set()

    def restarted(self, node: str, at_t: float) -> None:
        self._windows.setdefault(node, []).append(Window(at_t, at_t + self._limit_s))
        self._open.add(node)

    def see(self, record: ViewChanged | Reachability) -> None:
        if isinstance(record, ViewChanged):
            if record.facet == "event_index" and isinstance(record.value, int | float):
                self._index[record.node] = float(record.value)
                if record.node in self._open and self._caught_up(record.node):
                    self._close(record.node, record.t)
        elif not record.reachable:
            self._down.add(record.node)
        else:
            self._down.discard(record.node)
            if not self._index:
                self._close(record.node, record.t)

    def _caught_up(self, node: str) -> bool:
        others = [other for other in self._index if other not in self._open]
        answering = [other for other in others if other not in self._down] or others
        mine = self._index[node]
        return mine >= min((self._index[other] for other in answering), default=mine)

    def stopped(self, node: str, at_t: float) -> None:
        """The node's exo was ended: what it had not caught up with by then it never will."""
        self._close(node, at_t)

    def _close(self, node: str, at_t: float) -> None:
        if node in self._open and at_t >= self._windows[node][-1].from_t:
            last = self._windows[node][-1]
            last.to_t = min(last.to_t, at_t)
            self._open.discard(node)

    def open_at(self, node: str, at_t: float) -> bool:
        """Whether what was sent to `node` at this moment met a restarted process that had not caught up."""
        for window in reversed(self._windows.get(node, ())):
            if window.from_t <= at_t:
                return at_t < window.to_t
        return False

    def windows(self) -> dict[str, list[Window]]:
        """By node, in the order of the restarts."""
        return {node: list(windows) for node, windows in self._windows.items()}

    def forget(self, before_t: float) -> None:
        """Let go of what was over by then, but for the last of each node."""
        for node, windows in self._windows.items():
            self._windows[node] = [each for each in windows[:-1] if each.to_t >= before_t] + windows[-1:]

    def between(self, from_t: float, to_t: float) -> Iterator[Window]:
        """Those of any node that meet this time."""
        for windows in self._windows.values():
            for window in reversed(windows):
                if window.meets(from_t, to_t):
                    yield window
                if window.from_t <= from_t - 2 * self._limit_s:  # none before it lasts to this time
                    break

    def last_end_t(self, node: str) -> float | None:
        return self._windows[node][-1].to_t if node in self._windows else None


class Windows:
    """Own-node windows of every node, from the faults and from what the rig restarted itself."""

    def __init__(self, faults: FaultLog, *, tolerance_s: float, settle_s: float, unseen_s: float) -> None:
        self._faults = faults
        self._tolerance_s = tolerance_s
        self._unseen_s = unseen_s
        self._unwedged: dict[str, list[Window]] = {}
        self.rejoins = Rejoins(settle_s)

    def restarts(self, from_t: float, to_t: float) -> Iterator[Window]:
        """What the rig restarted itself, and what had not caught up, on any node in this time."""
        for windows in self._unwedged.values():
            yield from (window for window in windows if window.meets(from_t, to_t))
        yield from self.rejoins.between(from_t, to_t)

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
        """Let go of what was over by then."""
        self.rejoins.forget(before_t)
        for node, windows in self._unwedged.items():
            self._unwedged[node] = [each for each in windows if each.to_t >= before_t]

    def own_node(self, attempt: Attempt) -> bool:
        """Whether this request's entry node was faulted while it mattered to the request."""
        from_t, to_t = attempt.started_t, self._mattered_until(attempt)
        entry = attempt.entry
        for window in self._unwedged.get(entry, ()):
            if window.meets(from_t, to_t):
                return True
        for fault in self._faults.around(from_t, to_t):
            if entry in fault.processes_hit or entry in fault.clients_cut:
                return True
        return False

    def rejoining(self, attempt: Attempt) -> bool:
        return self.rejoins.open_at(attempt.entry, attempt.started_t)

    def _mattered_until(self, attempt: Attempt) -> float:
        if attempt.streamed or attempt.progress_t is not None:
            return attempt.stalled_t + self._tolerance_s
        strikes = self._faults.strikes
        after = bisect_left(strikes, attempt.started_t)
        first = strikes[after] if after < len(strikes) else math.inf
        reached_t = first if first <= attempt.started_t + self._unseen_s else attempt.started_t
        return min(reached_t, attempt.ended_t) + self._tolerance_s
