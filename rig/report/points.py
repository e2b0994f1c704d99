"""Requests as points and as counts over time, in bounded memory however long the run was. Pure.

A run of 3 h has 16,000 points and keeps every one. Where there are more than can be drawn, every second of the
completed ones goes, then every second of the rest, and so on; what failed has a bound of its own. Counts over time
never leave anything out: their bins become wider instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rig.analysis.counts import column
from rig.analysis.settled import Judged, Settled
from rig.journal.records import RequestEnded, RequestStarted
from rig.report.joined import Fate, fate_of

MAX_COMPLETED: Final = 40_000
MAX_FAILED: Final = 20_000
MAX_BINS: Final = 4096
FIRST_BIN_S: Final = 0.25
FATES: Final[tuple[Fate, ...]] = ("completed", "error", "lost", "void", "unfinished")
COLUMNS: Final = ("started", *FATES, "tokens")


@dataclass(frozen=True, slots=True)
class Point:
    """A request of the load. Times on the run's clock, durations in seconds from when it was due, as in the tables (in
    a closed loop that is when it was sent); `duration_s` of one that is unfinished
    is as long as the journal saw it."""

    id: str
    model: str
    entry: str
    due_t: float
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

    def add(self, count: int, point: Callable[[int], Point]) -> None:
        """`count` more; `point` gives the one at a position among them, and is asked only for those that are kept."""
        first, self.seen = self.seen, self.seen + count
        at = -(-first // self._stride) * self._stride
        while at < self.seen:
            self.kept.append(point(at - first))
            if len(self.kept) >= self._limit:
                del self.kept[1::2]
                self._stride *= 2
            at = (at // self._stride + 1) * self._stride


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

    def add_all(self, name: str, times: NDArray[np.float64], amounts: NDArray[np.float64] | None = None) -> None:
        if not len(times):
            return
        self._index(float(times.max()))
        bins = (np.maximum(times, 0.0) / self.width_s).astype(np.int64)
        sums = np.bincount(bins, weights=amounts)
        values = self.columns[name]
        for index in np.flatnonzero(sums).tolist():
            values[index] += float(sums[index])

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

    @property
    def left_out(self) -> int:
        """How many requests have no point, because there were too many."""
        return sum(some.seen - len(some.kept) for some in (self.completed, self.failed))

    def points(self) -> list[Point]:
        """In the order in which they were sent; equal times by id."""
        return sorted([*self.completed.kept, *self.failed.kept], key=lambda point: (point.due_t, point.id))

    def settled(self, batch: Settled) -> None:
        load = [at for at, attempt in enumerate(batch.attempts) if attempt.start.source == "load"]
        fates: dict[Fate, list[int]] = {}
        for at in load:
            special = batch.special.get(at)
            fate = "completed" if special is None else fate_of(special)
            fates.setdefault(fate, []).append(at)
        failed = sorted(at for fate, places in fates.items() if fate != "completed" for at in places)
        attempts = batch.attempts
        completed = fates.get("completed", [])
        self.completed.add(len(completed), lambda position: _point(batch.judged(completed[position])))
        self.failed.add(len(failed), lambda position: _point(batch.judged(failed[position])))
        self.bins.add_all("started", column([attempts[at].started_t for at in load]))
        for fate, places in fates.items():
            self.bins.add_all(fate, column([attempts[at].ended_t for at in places]))
        self._tokens([attempts[at].end for at in load])

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        if start.source != "load":
            return
        self.failed.add(1, lambda _: _unfinished(start, end_t))
        self.bins.add("started", start.t)
        self.bins.add("unfinished", start.t)

    def _tokens(self, ends: Sequence[RequestEnded]) -> None:
        """Tokens are taken to have come evenly between the first and the last; at the end where that is not known."""
        counts = column([end.usage_tokens or end.tokens for end in ends])
        last_t = column([end.ended_t if end.last_token_t is None else end.last_token_t for end in ends])
        first_t = column([end.first_token_t for end in ends])  # NaN: not known
        unknown = np.isnan(first_t) | np.array([end.last_token_t is None for end in ends], dtype=np.bool_)
        ended_t = column([end.ended_t for end in ends])
        self.bins.add_all("tokens", ended_t[unknown], counts[unknown])
        for at in np.flatnonzero(~unknown & (counts > 0)).tolist():
            self.bins.spread("tokens", float(first_t[at]), float(last_t[at]), float(counts[at]))


def _point(judged: Judged) -> Point:
    attempt, end = judged.attempt, judged.attempt.end
    due_t, first_t = attempt.planned_t, end.first_token_t
    return Point(
        id=attempt.id,
        model=attempt.model,
        entry=attempt.entry,
        due_t=due_t,
        duration_s=max(end.ended_t - due_t, 0.0),
        ttft_s=None if first_t is None or not attempt.streamed else first_t - due_t,
        fate=fate_of(judged),
        how=end.how or "",
        own=judged.own or "",
        fault=judged.fault,
        streamed=attempt.streamed,
    )


def _unfinished(start: RequestStarted, end_t: float) -> Point:
    return Point(
        id=start.id,
        model=start.model,
        entry=start.entry,
        due_t=start.planned_t,
        duration_s=max(end_t - start.planned_t, 0.0),
        ttft_s=None,
        fate="unfinished",
        how="",
        own="",
        fault=None,
        streamed=start.streamed,
    )
