"""Requests as points and as counts over time, in bounded memory however long the run was. Pure.

A run of 3 h has 16,000 points and keeps every one. Where there are more than can be drawn, every second of the
completed ones goes, then every second of the rest, and so on; what failed has a bound of its own. Counts over time
never leave anything out: their bins become wider instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig.analysis.intake.attempts import HOWS, NOBODY, OUTCOMES, Attempts, Floats, Places, blamed
from rig.analysis.requests.settled import OWNS, Settled
from rig.journal.records import RequestStarted
from rig.report.joined import Fate

MAX_COMPLETED: Final = 40_000
MAX_FAILED: Final = 20_000
MAX_BINS: Final = 4096
FIRST_BIN_S: Final = 0.25
FATES: Final[tuple[Fate, ...]] = (*OUTCOMES, "void", "unfinished")
_VOID: Final = FATES.index("void")
COLUMNS: Final = ("started", *FATES, "tokens")


class Point(NamedTuple):
    """A request of the load. Times on the run's clock, durations in seconds from when it was due, as in the tables (in
    a closed loop that is when it was sent); `duration_s` of one that is unfinished is as long as the journal saw it."""

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
    unwedging: int | None
    streamed: bool


class Thinned:
    """A list that drops every second of its items when it is full, and from then on takes every second that comes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self.seen = 0
        self.kept: list[Point] = []

    def add(self, count: int, points: Callable[[range], Sequence[Point]]) -> None:
        """`count` more; `points` gives those at some positions among them, and is asked only for what is kept."""
        first, self.seen = self.seen, self.seen + count
        at = -(-first // self._stride) * self._stride
        while at < self.seen:
            some = range(at, min(self.seen, at + (self._limit - len(self.kept)) * self._stride), self._stride)
            self.kept += points(range(at - first, some.stop - first, self._stride))
            if len(self.kept) >= self._limit:
                del self.kept[1::2]
                self._stride *= 2
            at = (some[-1] // self._stride + 1) * self._stride


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

    def spread_all(self, name: str, from_t: Floats, to_t: Floats, amounts: Floats) -> None:
        """The same of many. Most lie within one bin."""
        if not len(from_t):
            return
        to_t = np.maximum(to_t, from_t)
        self._index(float(to_t.max()))
        within = (np.maximum(from_t, 0.0) / self.width_s).astype(np.int64) == (to_t / self.width_s).astype(np.int64)
        self.add_all(name, from_t[within], amounts[within])
        for at in np.flatnonzero(~within).tolist():
            self.spread(name, float(from_t[at]), float(to_t[at]), float(amounts[at]))

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
        attempts = batch.attempts
        if not attempts.loaded.any():  # probes: a batch is of one source
            return
        good, ended_t = attempts.ok & ~batch.void, attempts.ended_t
        for thinned, which in ((self.completed, good), (self.failed, ~good)):
            places = np.flatnonzero(which)
            thinned.add(len(places), lambda asked, places=places: _points(batch, places[asked]))
        self.bins.add_all("started", attempts.started_t)
        fates = np.where(batch.void, _VOID, attempts.rows["outcome"])
        codes: list[int] = np.unique(fates).tolist()
        for code in codes:
            self.bins.add_all(FATES[code], ended_t[fates == code])
        self._tokens(attempts)

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        if start.source != "load":
            return
        self.failed.add(1, lambda _: [_unfinished(start, end_t)])
        self.bins.add("started", start.t)
        self.bins.add("unfinished", start.t)

    def _tokens(self, attempts: Attempts) -> None:
        """Tokens are taken to have come evenly between the first and the last; at the end where that is not known."""
        counts = attempts.tokens.astype(np.float64)
        first_t, last_t = attempts.floats("first_token_t"), attempts.floats("last_token_t")
        unknown = np.isnan(first_t) | np.isnan(last_t)
        self.bins.add_all("tokens", attempts.ended_t[unknown], counts[unknown])
        spread = ~unknown & (counts > 0)
        self.bins.spread_all("tokens", first_t[spread], last_t[spread], counts[spread])


def _points(batch: Settled, places: Places) -> list[Point]:
    attempts = batch.attempts
    rows, void = attempts.where(places), batch.void[places]
    codes = np.where(void, NOBODY, rows.fault)
    streamed, due_t = rows.streamed, rows.floats("planned_t")
    ways: list[int] = rows.way.tolist()
    columns = zip(
        places.tolist(),
        [attempts.ways[way] for way in ways],
        due_t.tolist(),
        np.maximum(rows.ended_t - due_t, 0.0).tolist(),
        np.where(streamed, rows.floats("first_token_t") - due_t, np.nan).tolist(),
        np.where(void, _VOID, rows.rows["outcome"]).tolist(),
        rows.how.tolist(),
        batch.own[places].tolist(),
        codes.tolist(),
        strict=True,
    )
    return [
        Point(
            id=attempts.id(place),
            model=way.model,
            entry=way.entry,
            due_t=at_t,
            duration_s=duration_s,
            ttft_s=None if math.isnan(ttft_s) else ttft_s,
            fate=FATES[fate],
            how=HOWS[how] or "",
            own=OWNS[own] or "",
            fault=fault,
            unwedging=unwedging,
            streamed=way.streamed,
        )
        for place, way, at_t, duration_s, ttft_s, fate, how, own, code in columns
        for fault, unwedging in (blamed(code),)
    ]


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
        unwedging=None,
        streamed=start.streamed,
    )
