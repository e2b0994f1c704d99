"""Sessions out of the target's own event logs: exact order, with the times that views and indices give to it. Pure.

A log has no times. A node's polled event index, the lists in which an instance first and last appeared, and the order
itself bound when each entry was written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from rig.analysis.intake.ticks import Index
from rig.analysis.moments import Span
from rig.analysis.recovery.reigns import Reign, Reigns
from rig.journal.records import AnyRecord, EventLogRead, EventSeen, ViewChanged
from rig.targets.exo.keeper.chronicle import Chronicle, Entry

MAX_ENTRIES: Final = 200_000
MAX_POINTS: Final = 20_000  # of a node's event index, the latest; a session is read long before so many have passed
MAX_SESSIONS: Final = 5_000
MAX_LIVES: Final = 20_000
"""Of so many instances it is known from lists by when they were made, and of so many what a master's own lists say."""
_Sight = tuple[str, float, str]
"""Of an instance under a reign: the node that reigned, since when, and the instance."""


_T = TypeVar("_T")


@dataclass(slots=True)
class _Session:
    node: str
    reign: Reign | None
    entries: dict[int, EventSeen] = field(default_factory=dict[int, EventSeen])
    count: int = 0
    end_reports: dict[str, int] = field(default_factory=dict[str, int])
    end_t: float = 0.0
    indices: list[tuple[float, float, int]] = field(default_factory=list[tuple[float, float, int]])
    cut: bool = False  # entries are missing: what is read later says nothing of how it ended


@dataclass
class EventLogs:
    """A reducer over records, in their order. Of a session with more than `most` entries the rest is as if not read."""

    reigns: Reigns
    most: int = MAX_ENTRIES
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    _held: int = 0
    _indices: dict[str, deque[tuple[float, float, int]]] = field(
        default_factory=dict[str, "deque[tuple[float, float, int]]"]
    )
    _first_index: dict[str, int] = field(default_factory=dict[str, int])
    _made_by: dict[str, Span] = field(default_factory=dict[str, Span])  # by the first sight in any list
    _created: dict[_Sight, Span] = field(default_factory=dict[_Sight, Span])
    _deleted: dict[_Sight, Span] = field(default_factory=dict[_Sight, Span])
    _listed: dict[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])

    def feed(self, record: AnyRecord) -> None:
        match record:
            case EventSeen():
                self._take(record)
            case EventLogRead():
                self._end(record)
            case ViewChanged(facet="instances") if isinstance(record.value, dict):
                self._see(record, frozenset(cast("dict[str, Any]", record.value)))
            case _:
                pass

    def indices(self, run: Sequence[Index]) -> None:
        """How far each node's log had come."""
        for node, since_t, t, value in run:
            if since_t is None:
                self._first_index.setdefault(node, value)
                continue
            points = self._indices.get(node)
            if points is None:
                points = self._indices[node] = deque(maxlen=MAX_POINTS)
            points.append((since_t, t, value))

    def chronicles(self, period_s: float) -> list[Chronicle]:
        """One for each session of which the log was read, in the order in which they were first read."""
        return [self._chronicle(name, session, period_s) for name, session in self._sessions.items() if session.count]

    def reigns_read(self) -> list[Reign]:
        return [session.reign for session in self._sessions.values() if session.reign is not None and session.count]

    def _take(self, record: EventSeen) -> None:
        session = self._session(record.session, record.node, record.t)
        if session is None or record.index in session.entries:
            return
        if self._held >= self.most:
            session.cut = True
            return
        session.entries[record.index] = record
        self._held += 1

    def _end(self, record: EventLogRead) -> None:
        session = self._session(record.session, record.node, record.t)
        if session is None or session.cut:
            return
        session.count = max(session.count, record.count)
        session.end_reports, session.end_t = record.reports, record.t
        session.indices = list(self._indices.get(session.node, ()))

    def _session(self, name: str, node: str, at_t: float) -> _Session | None:
        """Of several nodes that tell the same log, the master's own word counts. None where there are too many."""
        session = self._sessions.get(name)
        if session is None:
            if len(self._sessions) >= MAX_SESSIONS:
                return None
            session = self._sessions[name] = _Session(node, None)
        if session.reign is None:
            session.node, session.reign = node, self.reigns.of(node, at_t)
        return session

    def _see(self, record: ViewChanged, listed: frozenset[str]) -> None:
        """The earliest sight of an instance in any list bounds its making from above. From below, and its end, only
        the master's lists do, each for its own log: in a split, one side may delete what the other still has."""
        before = self._listed.get(record.node, frozenset())
        self._listed[record.node] = listed
        reign = self.reigns.current(record.node)
        change = None if reign is None else reign.change(record.since_t, record.t)
        for name in listed - before - self._made_by.keys():
            _note(self._made_by, name, Span(by_t=record.t))
        if reign is not None and change is not None:
            for name in listed - before:
                _note(self._created, _sight(reign, name), change)
            for name in before - listed:
                _note(self._deleted, _sight(reign, name), change)

    def _chronicle(self, name: str, session: _Session, period_s: float) -> Chronicle:
        reign = session.reign
        begun = Span() if reign is None else reign.begun
        seen = [session.entries[index] for index in sorted(session.entries)]
        after, by = _bounds_by_index(session.indices, reign)
        entries = [self._entry(event, reign, Span(begun.after_t, event.t), after, by) for event in seen]
        end = Entry(max(session.count - 1, 0), "end", {}, Span(begun.after_t, session.end_t), session.end_reports)
        _in_order([*entries, end])
        return Chronicle(
            node=session.node,
            node_id=None if reign is None else reign.node_id,
            session=name,
            exact=True,
            begun=begun,
            entries=entries,
            end=end,
            period_s=period_s,
            history=self._first_index.get(session.node, -1) + 1 if reign is not None and reign.past else 0,
        )

    def _entry(self, event: EventSeen, reign: Reign | None, span: Span, after: _Bounds, by: _Bounds) -> Entry:
        span = span.within(Span(after.at_or_before(event.index), by.at_or_after(event.index)))
        instance = str(event.data.get("instance"))
        if event.name == "InstanceCreated":
            span = span.within(self._made_by.get(instance, Span()))
        told = {"InstanceCreated": self._created, "InstanceDeleted": self._deleted}.get(event.name)
        if told is not None and reign is not None:
            span = span.within(told.get(_sight(reign, instance), Span()))
        return Entry(event.index, event.name, event.data, span, event.reports)


def _sight(reign: Reign, instance: str) -> _Sight:
    return reign.node, reign.from_t, instance


def _note(spans: dict[_T, Span], name: _T, span: Span) -> None:
    if name in spans or len(spans) < MAX_LIVES:
        spans[name] = span


@dataclass(slots=True)
class _Bounds:
    """Times by event index, both rising."""

    indices: list[int] = field(default_factory=list[int])
    times: list[float] = field(default_factory=list[float])

    def at_or_before(self, index: int) -> float:
        """The time of the last point not beyond the index."""
        place = bisect_right(self.indices, index) - 1
        return self.times[place] if place >= 0 else float("-inf")

    def at_or_after(self, index: int) -> float:
        place = bisect_right(self.indices, index - 1)
        return self.times[place] if place < len(self.indices) else float("inf")


def _bounds_by_index(points: list[tuple[float, float, int]], reign: Reign | None) -> tuple[_Bounds, _Bounds]:
    """When the master's own index was still below a value, and when it had surely reached it."""
    after, by = _Bounds(), _Bounds()
    for since_t, t, value in points:
        if reign is None or not reign.surely(since_t):
            continue
        if after.indices and value <= after.indices[-1]:
            after, by = _Bounds(), _Bounds()  # the log began anew: what came before was another session's
        after.indices.append(value)
        after.times.append(since_t)
        by.indices.append(value)
        by.times.append(t)
    return after, by


def _in_order(entries: list[Entry]) -> None:
    """No entry came before an earlier one, nor after a later one."""
    latest_t = float("-inf")
    for entry in entries:
        latest_t = max(latest_t, min(entry.span.after_t, entry.span.by_t))
        entry.span = replace(entry.span, after_t=min(latest_t, entry.span.by_t))
    earliest_t = float("inf")
    for entry in reversed(entries):
        earliest_t = min(earliest_t, entry.span.by_t)
        entry.span = replace(entry.span, by_t=earliest_t, after_t=min(entry.span.after_t, earliest_t))
