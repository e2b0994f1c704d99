"""Requests as points and as counts over time, in bounded memory however long the run was. Pure.

A run of 3 h has 16,000 points and keeps every one. Where there are more than can be drawn, every second of the
completed ones goes, then every second of the rest, and so on; what failed has a bound of its own. Counts over time
never leave anything out: their bins become wider instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.journal.records import RequestEnded
from rig.report.joined import Fate, Joined

MAX_COMPLETED: Final = 40_000
MAX_FAILED: Final = 20_000
MAX_BINS: Final = 4096
FIRST_BIN_S: Final = 0.25
FATES: Final[tuple[Fate, ...]] = ("completed", "error", "lost", "void", "unfinished")
COLUMNS: Final = ("started", *FATES, "tokens")


@dataclass(frozen=True, slots=True)
class Point:
    """A request of the load. Times on the run's clock, durations in seconds; `duration_s` of one that is unfinished
    is as long as the journal saw it."""

    id: str
    model: str
    entry: str
    sent_t: float
    duration_s: float
    ttft_s: float | None
    fate: Fate
    how: str
    own: str
    fault: int | None
    streamed: bool


class Thinned:
    """A list that drops every second of its items when it is full, and from then on takes every second that comes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self.seen = 0
        self.kept: list[Point] = []

    def add(self, point: Point) -> None:
        if self.seen % self._stride == 0:
            self.kept.append(point)
        self.seen += 1
        if len(self.kept) >= self._limit:
            del self.kept[1::2]
            self._stride *= 2


class Bins:
    """Counts in bins of equal width from t = 0. The width doubles when more than 4096 bins would be needed."""

    def __init__(self, columns: Sequence[str] = COLUMNS, width_s: float = FIRST_BIN_S, limit: int = MAX_BINS) -> None:
        self.width_s = width_s
        self._limit = limit
        self.columns: dict[str, list[float]] = {name: [] for name in columns}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def add(self, name: str, at_t: float, amount: float = 1.0) -> None:
        index = self._index(at_t)  # first: it may make the bins wider
        self.columns[name][index] += amount

    def spread(self, name: str, from_t: float, to_t: float, amount: float) -> None:
        """Add `amount` evenly over [from_t, to_t]."""
        last, first = self._index(max(to_t, from_t)), self._index(from_t)
        if first == last:
            self.columns[name][first] += amount
            return
        per_s, values = amount / (to_t - from_t), self.columns[name]
        for index in range(first, last + 1):
            low, high = max(from_t, index * self.width_s), min(to_t, (index + 1) * self.width_s)
            values[index] += max(high - low, 0.0) * per_s

    def _index(self, at_t: float) -> int:
        held_t = max(at_t, 0.0)
        while held_t >= self.width_s * self._limit:
            self._double()
        index = int(held_t / self.width_s)
        missing = index + 1 - len(self)
        if missing > 0:
            for values in self.columns.values():
                values.extend([0.0] * missing)
        return index

    def _double(self) -> None:
        self.width_s *= 2
        for name, values in self.columns.items():
            padded = values if len(values) % 2 == 0 else [*values, 0.0]
            self.columns[name] = [padded[index] + padded[index + 1] for index in range(0, len(padded), 2)]


@dataclass
class Requests:
    """Points and bins of the load; probes are left out, as they are in every table of requests."""

    completed: Thinned = field(default_factory=lambda: Thinned(MAX_COMPLETED))
    failed: Thinned = field(default_factory=lambda: Thinned(MAX_FAILED))
    bins: Bins = field(default_factory=Bins)
    end_t: float = 0.0

    @property
    def left_out(self) -> int:
        """How many requests have no point, because there were too many."""
        return sum(some.seen - len(some.kept) for some in (self.completed, self.failed))

    def points(self) -> list[Point]:
        """In the order in which they were sent; equal times by id."""
        return sorted([*self.completed.kept, *self.failed.kept], key=lambda point: (point.sent_t, point.id))

    def add(self, joined: Joined) -> None:
        start, end = joined.start, joined.end
        if start.source != "load":
            return
        point = _point(joined, self.end_t)
        (self.completed if point.fate == "completed" else self.failed).add(point)
        self.bins.add("started", point.sent_t)
        self.bins.add(point.fate, point.sent_t if end is None else end.ended_t)
        if end is not None:
            self._tokens(end)

    def _tokens(self, end: RequestEnded) -> None:
        """Tokens are taken to have come evenly between the first and the last; at the end where that is not known."""
        count = end.usage_tokens or end.tokens
        if not count:
            return
        if end.first_token_t is None or end.last_token_t is None:
            self.bins.add("tokens", end.ended_t, count)
        else:
            self.bins.spread("tokens", end.first_token_t, end.last_token_t, count)


def _point(joined: Joined, end_t: float) -> Point:
    start, end, judged = joined.start, joined.end, joined.judged
    sent_t = start.t if end is None else end.started_t
    first_t = None if end is None else end.first_token_t
    return Point(
        id=start.id,
        model=start.model,
        entry=start.entry,
        sent_t=sent_t,
        duration_s=max((end_t if end is None else end.ended_t) - sent_t, 0.0),
        ttft_s=None if first_t is None or not start.streamed else first_t - sent_t,
        fate=joined.fate,
        how="" if end is None or end.how is None else end.how,
        own="" if judged is None or judged.own is None else judged.own,
        fault=None if judged is None else judged.fault,
        streamed=start.streamed,
    )
