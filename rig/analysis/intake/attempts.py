"""Requests that ended, load and probes alike, as rows of one table in the order of their ends.

Whatever is decided of requests is decided of columns: of the few minutes around a fault while a run goes on, of some
ten thousand at once when its journal is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from rig.journal.records import How, Outcome, RequestEnded, RequestStarted

Source: TypeAlias = Literal["load", "probe"]
Key: TypeAlias = tuple[str, str, bool]
"""Model, entry node, streamed."""
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int64]

_NAN: Final = math.nan
NOBODY: Final = -1
"""In the column `fault`: attributed to none."""
_UNWEDGED: Final = NOBODY - 2  # and down; faults are numbered from 0, one that was struck by hand is -1
OUTCOMES: Final[tuple[Outcome, ...]] = ("completed", "error", "lost")
HOWS: Final[tuple[How | None, ...]] = (None, "hung", "overdue", "truncated", "empty")
_COMPLETED, _ERROR, _LOST = range(len(OUTCOMES))
_OUTCOME: Final = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_HOW: Final = {how: code for code, how in enumerate(HOWS)}
ROW: Final = np.dtype(
    [
        ("way", np.int32),  # which of `ways`
        ("planned_t", np.float64),
        ("started_t", np.float64),
        ("ended_t", np.float64),
        ("progress_t", np.float64),  # NaN, here and below: no such moment
        ("first_token_t", np.float64),
        ("last_token_t", np.float64),
        ("tokens", np.int64),  # what the server said, else what was seen
        ("gap_count", np.int64),
        ("gap_sum_s", np.float64),
        ("gap_max_s", np.float64),
        ("outcome", np.int8),
        ("how", np.int8),
        ("by_deadline", np.bool_),
        ("own_failure", np.bool_),
        ("fault", np.int32),
    ],
    align=True,  # a column that is not is copied each time
)
Row: TypeAlias = tuple[Any, ...]
_CODES: Final = {"int8": "b", "int32": "i", "int64": "q", "float64": "d", "bool": "?"}
_MOST_TOKENS: Final = 2**31
"""No answer has as many; where a server claims so, what was seen is counted."""
_PACK: Final = struct.Struct("".join(_CODES[str(ROW[name])] for name in ROW.names or ()))  # aligned, as `ROW` is


def unwedged_after(fault: int) -> int:
    """What stands in the column `fault`: attributed to the rig's own unwedging after this fault."""
    return _UNWEDGED - fault


def blamed(code: int) -> tuple[int | None, int | None]:
    """What the column `fault` says: the fault, or the one after which the rig unwedged."""
    if code == NOBODY:
        return None, None
    return (code, None) if code > NOBODY else (None, _UNWEDGED - code)


class Way(NamedTuple):
    """How a request went, and where."""

    source: Source
    model: str
    entry: str
    streamed: bool

    @property
    def key(self) -> Key:
        return self.model, self.entry, self.streamed


class Ways(list[Way]):
    """All ways that requests have gone; it only grows."""

    def __init__(self, ways: Iterable[Way] = ()) -> None:
        super().__init__(ways)
        self._flags: dict[tuple[str, object], Bools] = {}

    def flags(self, field: Literal["source", "model", "entry", "streamed"], value: object) -> Bools:
        """Which of them are such ones."""
        found = self._flags.get((field, value))
        if found is None or len(found) < len(self):
            found = np.array([getattr(way, field) == value for way in self], dtype=np.bool_)
            self._flags[field, value] = found
        return found


def way_of(start: RequestStarted) -> Way:
    return Way(start.source, start.model, start.entry, start.streamed)


def row_of(way: int, planned_t: float | None, end: RequestEnded) -> Row:
    """In the order of `ROW`."""
    gaps, ok = end.gaps, end.outcome == "completed"
    progress_t, first_t, last_t = end.last_progress_t, end.first_token_t, end.last_token_t
    tokens = end.usage_tokens or end.tokens
    return (
        way,
        _NAN if planned_t is None else planned_t,
        end.started_t,
        end.ended_t,
        _NAN if progress_t is None else progress_t,
        _NAN if first_t is None else first_t,
        _NAN if last_t is None else last_t,
        tokens if -_MOST_TOKENS < tokens < _MOST_TOKENS else end.tokens,
        gaps.count,
        gaps.sum_s,
        gaps.max_s,
        _COMPLETED if ok else _OUTCOME[end.outcome],
        0 if ok else _HOW[end.how],
        not ok and by_deadline(end),
        end.own_failure is not None,
        NOBODY,
    )


def table_of(rows: Iterable[Row]) -> NDArray[np.void]:
    """A table of such rows. What numpy makes of tuples is the same, in four times as long."""
    return np.frombuffer(bytearray(b"".join(starmap(_PACK.pack, rows))), dtype=ROW)


def by_deadline(end: RequestEnded) -> bool:
    """A deadline of the rig's own ended it, not the target; also an error that is the rig's own connect deadline."""
    if end.how in ("hung", "overdue"):
        return True
    return end.outcome == "error" and end.connected_t is None and "timeout" in end.evidence.lower()


def _those(rows: NDArray[np.void], asked: Bools | Places) -> NDArray[np.void]:
    """`rows[asked]`, which copies a table column by column and takes ten times as long."""
    return rows.compress(asked) if asked.dtype == np.bool_ else rows.take(asked)


class Rows:
    """Requests that ended, as columns. Times on the run's clock; each column is an array of its own meaning."""

    __slots__ = ("rows", "ways")

    def __init__(self, rows: NDArray[np.void], ways: Ways) -> None:
        self.rows = rows
        self.ways = ways

    def __len__(self) -> int:
        return len(self.rows)

    def floats(self, name: str) -> Floats:
        return cast("Floats", self.rows[name])

    @property
    def way(self) -> NDArray[np.int32]:
        return cast("NDArray[np.int32]", self.rows["way"])

    @property
    def started_t(self) -> Floats:
        return self.floats("started_t")

    @property
    def ended_t(self) -> Floats:
        return self.floats("ended_t")

    @property
    def tokens(self) -> NDArray[np.int64]:
        return cast("NDArray[np.int64]", self.rows["tokens"])

    @property
    def how(self) -> NDArray[np.int8]:
        return cast("NDArray[np.int8]", self.rows["how"])

    @property
    def ok(self) -> Bools:
        return self.rows["outcome"] == _COMPLETED

    @property
    def error(self) -> Bools:
        return self.rows["outcome"] == _ERROR

    @property
    def lost(self) -> Bools:
        return self.rows["outcome"] == _LOST

    @property
    def by_deadline(self) -> Bools:
        """A deadline of the rig's own ended it, not the target."""
        return cast("Bools", self.rows["by_deadline"])

    @property
    def own_failure(self) -> Bools:
        """The rig itself failed, not the target."""
        return cast("Bools", self.rows["own_failure"])

    @property
    def fault(self) -> NDArray[np.int32]:
        """To which fault a failure is attributed, once that is decided."""
        return cast("NDArray[np.int32]", self.rows["fault"])

    @property
    def rescued(self) -> Bools:
        """Failures that are attributed to the rig's own unwedging."""
        return self.fault < NOBODY

    @property
    def progressed(self) -> Bools:
        """Of which a moment of progress is known."""
        return ~np.isnan(self.rows["progress_t"])

    @property
    def stalled_t(self) -> Floats:
        """When its progress stopped; its start where none was seen."""
        progress_t = self.floats("progress_t")
        return np.where(np.isnan(progress_t), self.started_t, progress_t)

    @property
    def failed_t(self) -> Floats:
        """The moment of a failure: its end, but where the rig's own deadline made the end, when progress stopped."""
        return np.where(self.by_deadline & self.lost, self.stalled_t, self.ended_t)

    @property
    def streamed(self) -> Bools:
        return self.ways.flags("streamed", True)[self.way]  # noqa: FBT003

    @property
    def loaded(self) -> Bools:
        """Of the load, not probes."""
        return self.of("load")

    def of(self, source: Source) -> Bools:
        return self.ways.flags("source", source)[self.way]

    def of_model(self, model: str) -> Bools:
        return self.ways.flags("model", model)[self.way]

    def through(self, entry: str) -> Bools:
        return self.ways.flags("entry", entry)[self.way]

    def part_through(self, part: slice, entries: Collection[str]) -> Bools:
        """Of a part, which went through any of these."""
        flags = [self.ways.flags("entry", entry) for entry in entries]
        return np.logical_or.reduce(flags)[self.way[part]]

    def since(self, early_t: float) -> Rows:
        """What ended from then on."""
        late = self.ended_t >= early_t
        first = int(late.argmax()) if late.any() else len(late)
        return Rows(self.rows[first:], self.ways) if late[first:].all() else self.where(late)

    def where(self, asked: Bools | Places) -> Rows:
        return Rows(_those(self.rows, asked), self.ways)


@dataclass
class Told:
    """What the requests of one stretch of a journal said beside their times, by position. `lost` are the words of what
    was lost, `gaps` the sketches of the gaps between tokens: position, bucket and count, by rising positions.

    `pairs` are the records themselves where they are wanted.
    """

    ids: list[str]
    response_ids: list[str | None]
    lost: dict[int, str]
    unclean: list[int]
    damaged: list[int]
    gaps: NDArray[np.int32]
    pairs: list[tuple[RequestStarted | None, RequestEnded]] | None = None

    def __getstate__(self) -> tuple[bytes, tuple[Any, ...]]:
        """Many short texts travel as one."""
        texts = msgspec.msgpack.encode((self.ids, self.response_ids))
        return texts, (self.lost, self.unclean, self.damaged, self.gaps, self.pairs)

    def __setstate__(self, state: tuple[bytes, tuple[Any, ...]]) -> None:
        texts, (self.lost, self.unclean, self.damaged, self.gaps, self.pairs) = state
        self.ids, self.response_ids = msgspec.msgpack.decode(texts, type=tuple[list[str], list[str | None]])


class Attempts(Rows):
    """Rows that know their positions (`at`) in what was told."""

    __slots__ = ("at", "told")

    def __init__(self, rows: NDArray[np.void], ways: Ways, at: Places, told: Told) -> None:
        super().__init__(rows, ways)
        self.at = at
        self.told = told

    def part(self, which: slice | Places) -> Attempts:
        """Of a slice the rows themselves: a fault that is marked in it is marked in the whole."""
        rows = self.rows[which] if isinstance(which, slice) else _those(self.rows, which)
        return Attempts(rows, self.ways, self.at[which], self.told)

    def id(self, place: int) -> str:
        return self.told.ids[int(self.at[place])]

    def response_id(self, place: int) -> str | None:
        return self.told.response_ids[int(self.at[place])]

    def evidence(self, place: int) -> str:
        """What became of one that was lost."""
        return self.told.lost.get(int(self.at[place]), "")

    def pair(self, place: int) -> tuple[RequestStarted, RequestEnded]:
        start, end = (None, None) if self.told.pairs is None else self.told.pairs[int(self.at[place])]
        if start is None or end is None:
            raise ValueError("the records were not kept")
        return start, end

    def positions(self, among: Sequence[int]) -> list[int]:
        """Those of `among` that are told of these rows."""
        return np.intersect1d(np.array(among, dtype=np.int64), self.at).tolist() if among else []

    def gaps(self) -> NDArray[np.int32]:
        """Place among these rows, bucket, count."""
        gaps = self.told.gaps
        place_of = np.full(len(self.told.ids), -1, dtype=np.int32)
        place_of[self.at] = np.arange(len(self.at), dtype=np.int32)
        found = gaps.copy()
        found[:, 0] = place_of[gaps[:, 0]]
        return found[found[:, 0] >= 0]


_BARE: Final = np.empty(0, f"V{ROW.itemsize}")
"""A table of rows without columns: numpy's joining would compare the columns of all parts first."""


class Together:
    """Several parts, in their order, as one table."""

    def __init__(self, parts: Sequence[Attempts]) -> None:
        self.parts = parts
        self.firsts = np.cumsum([0, *(len(part) for part in parts)])
        whole = np.concatenate([_BARE, *(part.rows.view(_BARE.dtype) for part in parts)])
        self.rows = Rows(whole.view(ROW), parts[0].ways if parts else Ways())


class Recent:
    """The attempts of one model among these, so that they can be judged by themselves."""

    def __init__(self, together: Together, model: str) -> None:
        self._together = together
        self._places = np.flatnonzero(together.rows.of_model(model))
        self.rows = together.rows.where(self._places)

    def mark(self, which: Bools, fault: int) -> None:
        """Attribute them to a fault, here and wherever else these attempts are."""
        self.rows.fault[which] = fault
        places = self._places[which]
        self._together.rows.fault[places] = fault
        bounds = np.searchsorted(places, self._together.firsts).tolist()
        for part, first, last, begun in zip(
            self._together.parts, bounds, bounds[1:], self._together.firsts.tolist(), strict=False
        ):
            if first < last:
                part.fault[places[first:last] - begun] = fault

    def response_id(self, at: int) -> str | None:
        part, place = self._found(at)
        return part.response_id(place)

    def _found(self, at: int) -> tuple[Attempts, int]:
        place = int(self._places[at])
        part = int(np.searchsorted(self._together.firsts, place, "right")) - 1
        return self._together.parts[part], place - int(self._together.firsts[part])
