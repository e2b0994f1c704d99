"""What happened in one session of a master, in order. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rig.analysis.moments import Elapsed, Span, between

CHANGES = frozenset(
    {"NodeTimedOut", "NodeReported", "NodeCreated", "NodeDeleted", "TopologyEdgeCreated", "TopologyEdgeDeleted"}
)
"""Entries that change what placement works from: the nodes that have reported, and the links between them."""


@dataclass(slots=True, eq=False)
class Entry:
    """`order` is its place in the session. `reports`: how often each node id has reported in the session by then."""

    order: int
    name: str
    data: dict[str, Any]
    span: Span
    reports: dict[str, int] = field(default_factory=dict[str, int])

    def get(self, key: str) -> str | None:
        value = self.data.get(key)
        return value if isinstance(value, str) else None


@dataclass(slots=True)
class Chronicle:
    """`exact`: from the event log, in full up to `end`; else put together from views, where what came between two
    polls is not seen. `begun` is when the master's reign began. `period_s`: each node reports once in that time.
    Entries before `history` are of before the run: they say how things stood, and are not judged."""

    node: str
    node_id: str | None
    session: str
    exact: bool
    begun: Span
    entries: list[Entry]
    end: Entry
    period_s: float
    history: int = 0

    def elapsed(self, first: Entry | None, second: Entry) -> Elapsed:
        """From `first` (None: the session's beginning) to `second`, by the run's clock and by the session's own."""
        by_time = between(self.begun if first is None else first.span, second.span)
        ticks = self._ticks(first, second)
        if ticks is None:
            return by_time
        fewest_s, longest_s = self._period()
        at_least_s = max(by_time.at_least_s, (ticks - 1) * fewest_s)
        return Elapsed(min(at_least_s, by_time.at_most_s), by_time.at_most_s, (ticks + 1) * longest_s)

    def reported(self, first: Entry, second: Entry) -> dict[str, int]:
        """How often each node has reported in between."""
        return {node: count - first.reports.get(node, 0) for node, count in second.reports.items()}

    def _ticks(self, first: Entry | None, second: Entry) -> int | None:
        """Reports of the master's own: its timers never fire early, so each stands for a period at least."""
        if not self.exact or self.node_id is None or self.node_id not in self.end.reports:
            return None
        before = 0 if first is None else first.reports.get(self.node_id, 0)
        return second.reports.get(self.node_id, 0) - before

    def _period(self) -> tuple[float, float]:
        """The shortest and the longest a report can stand for, measured where the session is long enough for that."""
        total = self._ticks(None, self.end) or 0
        whole = between(self.begun, self.end.span)
        if total < 20 or math.isinf(whole.at_most_s):
            return self.period_s, 1.5 * self.period_s
        return min(self.period_s, whole.at_most_s / total), max(1.5 * self.period_s, whole.at_least_s / total)
