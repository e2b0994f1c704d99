"""Who was master when: for each node the times in which it claimed to be, by its own log and its open files.

A session of the target is what happens under one reign. Two nodes may reign at once (a split cluster, a resumed old
master): each is judged by its own view and its own log, never by the other's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.moments import Span
from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, ViewChanged
from rig.observe.masters import MasterTracker

MAX_REIGNS: Final = 5_000


@dataclass(slots=True)
class Reign:
    """`from_t` is uncertain by `error_s`; with `past` it may have begun at any time before.

    `node_id` is the master's own. `to_t` is infinite while it goes on.
    """

    node: str
    from_t: float
    error_s: float
    node_id: str | None = None
    to_t: float = math.inf
    past: bool = False

    @property
    def begun(self) -> Span:
        return Span(-math.inf if self.past else self.from_t - self.error_s, self.from_t + self.error_s)

    def covers(self, at_t: float) -> bool:
        return self.from_t - self.error_s <= at_t <= self.to_t

    def surely(self, after_t: float) -> bool:
        """Whether it had surely begun by then, and had not ended."""
        return self.from_t + self.error_s < after_t <= self.to_t

    def change(self, since_t: float | None, t: float) -> Span | None:
        """When a change between two polls of its node happened; None where that may have been before this reign."""
        return None if since_t is None or not self.surely(since_t) else Span(since_t, t)


@dataclass
class Reigns:
    """A reducer over records, in their order. What happens after so many is under no reign that is known."""

    all: list[Reign] = field(default_factory=list[Reign])
    _tracker: MasterTracker = field(default_factory=MasterTracker)
    _current: dict[str, Reign] = field(default_factory=dict[str, Reign])
    _node_ids: dict[str, str] = field(default_factory=dict[str, str])

    def feed(self, record: AnyRecord) -> None:
        match record:
            case MasterSeen():
                self._tracker.apply(record)
                self._end(record.at_t)
                self._begin(record)
            case FaultChanged():
                self._tracker.apply(record)
                self._end(record.at_t)
            case ViewChanged(facet="node_id"):
                self._tracker.apply(record)
                if record.since_t is not None:
                    self._end(record.since_t)
                self._named(record.node, str(record.value))
            case _:
                pass

    def current(self, node: str) -> Reign | None:
        return self._current.get(node)

    def of(self, node: str, at_t: float) -> Reign | None:
        """The reign of this node that covers a moment; the latest where two meet."""
        return next((reign for reign in reversed(self.all) if reign.node == node and reign.covers(at_t)), None)

    def _named(self, node: str, node_id: str) -> None:
        self._node_ids[node] = node_id
        reign = self._current.get(node)
        if reign is not None:
            reign.node_id = node_id

    def _end(self, at_t: float) -> None:
        """Reigns of those that claim it no longer."""
        for node in set(self._current) - self._tracker.masters:
            self._current.pop(node).to_t = at_t

    def _begin(self, seen: MasterSeen) -> None:
        if len(self.all) >= MAX_REIGNS:
            return
        if seen.node in self._tracker.masters and seen.node not in self._current:
            reign = Reign(seen.node, seen.at_t, seen.at_error_s, self._node_ids.get(seen.node), past=seen.past)
            self._current[seen.node] = reign
            self.all.append(reign)
