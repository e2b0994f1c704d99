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
"""In the column `fault`: attributed to no fault."""
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
"""No answer has this many tokens; where a server claims so, the tokens that were seen count."""
_PACK: Final = struct.Struct("".join(_CODES[str(ROW[name])] for name in ROW.names or ()))  # aligned, as `ROW` is


def unwedged_after(fault: int) -> int:
    """The value of the column `fault` for: attributed to the rig's own unwedging after this fault."""
    return _UNWEDGED - fault


def blamed(code: int) -> tuple[int | None, int | None]:
    """The meaning of a value of the column `fault`: the fault, or the fault after which the rig unwedged."""
    if code == NOBODY:
        return None, None
    return (code, None) if code > NOBODY else (None, _UNWEDGED - code)


class Way(NamedTuple):
    """What requests are grouped by."""

    source: Source
    model: str
    entry: str
    streamed: bool

    @property
    def key(self) -> Key:
        return self.model, self.entry, self.streamed


class Ways(list[Way]):
    """Every way that a request has gone. The list only grows."""

    def __init__(self, ways: Iterable[Way] = ()) -> None:
        super().__init__(ways)
        self._flags: dict[tuple[str, object], Bools] = {}

    def flags(self, field: Literal["source", "model", "entry", "streamed"], value: object) -> Bools:
        """Boolean mask of the ways whose `field` is `value`."""
        mask = self._flags.get((field, value))
        if mask is None or len(mask) < len(self):
            mask = np.array([getattr(way, field) == value for way in self], dtype=np.bool_)
            self._flags[field, value] = mask
        return mask


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
    """A table of these rows. numpy makes the same of tuples, but takes four times as long."""
    return np.frombuffer(bytearray(b"".join(starmap(_PACK.pack, rows))), dtype=ROW)


def by_deadline(end: RequestEnded) -> bool:
    """A deadline of the rig's own ended it, not the target: a loss, or an error by the rig's own connect deadline."""
    return end.how in ("hung", "overdue") or end.cause == "connect-deadline"


def _select(rows: NDArray[np.void], which: Bools | Places) -> NDArray[np.void]:
    """`rows[which]`, which by itself copies a table column by column and takes ten times as long."""
    return rows.compress(which) if which.dtype == np.bool_ else rows.take(which)


class Rows:
    """Requests that ended, as columns. Times are on the run's clock."""

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
        """The fault to which a failure is attributed, once that is decided."""
        return cast("NDArray[np.int32]", self.rows["fault"])

    @property
    def rescued(self) -> Bools:
        """Failures that are attributed to the rig's own unwedging."""
        return self.fault < NOBODY

    @property
    def progressed(self) -> Bools:
        """Mask of the requests whose last progress is known."""
        return ~np.isnan(self.rows["progress_t"])

    @property
    def stalled_t(self) -> Floats:
        """When progress stopped; the start of the request where no progress was seen."""
        progress_t = self.floats("progress_t")
        return np.where(np.isnan(progress_t), self.started_t, progress_t)

    @property
    def failed_t(self) -> Floats:
        """The moment of a failure: its end, or when progress stopped if the rig's own deadline ended it."""
        return np.where(self.by_deadline & self.lost, self.stalled_t, self.ended_t)

    @property
    def streamed(self) -> Bools:
        return self.ways.flags("streamed", True)[self.way]  # noqa: FBT003

    @property
    def loaded(self) -> Bools:
        """Mask of the requests of the load, as against probes."""
        return self.of("load")

    def of(self, source: Source) -> Bools:
        return self.ways.flags("source", source)[self.way]

    def of_model(self, model: str) -> Bools:
        return self.ways.flags("model", model)[self.way]

    def through(self, entry: str) -> Bools:
        return self.ways.flags("entry", entry)[self.way]

    def part_through(self, part: slice, entries: Collection[str]) -> Bools:
        """Mask over a part of the rows: those sent through any of these nodes."""
        flags = [self.ways.flags("entry", entry) for entry in entries]
        return np.logical_or.reduce(flags)[self.way[part]]

    def since(self, early_t: float) -> Rows:
        """The rows that ended at `early_t` or later."""
        late = self.ended_t >= early_t
        first = int(late.argmax()) if late.any() else len(late)
        return Rows(self.rows[first:], self.ways) if late[first:].all() else self.where(late)

    def where(self, which: Bools | Places) -> Rows:
        return Rows(_select(self.rows, which), self.ways)


@dataclass
class Details:
    """What requests have beside their row, by position. `lost` is the evidence of lost requests; `gaps` are the
    sketches of the gaps between tokens: position, bucket, count, in rising order of the positions.

    `pairs` are the records themselves, if they are kept.
    """

    ids: list[str]
    response_ids: list[str | None]
    lost: dict[int, str]
    unclean: list[int]
    damaged: list[int]
    gaps: NDArray[np.int32]
    pairs: list[tuple[RequestStarted | None, RequestEnded]] | None = None

    def __getstate__(self) -> tuple[bytes, tuple[Any, ...]]:
        """Many short texts are pickled as one."""
        texts = msgspec.msgpack.encode((self.ids, self.response_ids))
        return texts, (self.lost, self.unclean, self.damaged, self.gaps, self.pairs)

    def __setstate__(self, state: tuple[bytes, tuple[Any, ...]]) -> None:
        texts, (self.lost, self.unclean, self.damaged, self.gaps, self.pairs) = state
        self.ids, self.response_ids = msgspec.msgpack.decode(texts, type=tuple[list[str], list[str | None]])


class Attempts(Rows):
    """Rows with their positions (`at`) in the details."""

    __slots__ = ("at", "details")

    def __init__(self, rows: NDArray[np.void], ways: Ways, at: Places, details: Details) -> None:
        super().__init__(rows, ways)
        self.at = at
        self.details = details

    def part(self, which: slice | Places) -> Attempts:
        """A slice shares its rows with the whole: a fault that is marked in the part is marked in the whole."""
        rows = self.rows[which] if isinstance(which, slice) else _select(self.rows, which)
        return Attempts(rows, self.ways, self.at[which], self.details)

    def id(self, place: int) -> str:
        return self.details.ids[int(self.at[place])]

    def response_id(self, place: int) -> str | None:
        return self.details.response_ids[int(self.at[place])]

    def evidence(self, place: int) -> str:
        """The evidence of a lost request; empty for any other."""
        return self.details.lost.get(int(self.at[place]), "")

    def pair(self, place: int) -> tuple[RequestStarted, RequestEnded]:
        start, end = (None, None) if self.details.pairs is None else self.details.pairs[int(self.at[place])]
        if start is None or end is None:
            raise ValueError("the records were not kept")
        return start, end

    def positions(self, among: Sequence[int]) -> list[int]:
        """Those of the positions that belong to these rows."""
        return np.intersect1d(np.array(among, dtype=np.int64), self.at).tolist() if among else []

    def gaps(self) -> NDArray[np.int32]:
        """Place among these rows, bucket and count of each entry of their sketches."""
        gaps = self.details.gaps
        place_of = np.full(len(self.details.ids), -1, dtype=np.int32)
        place_of[self.at] = np.arange(len(self.at), dtype=np.int32)
        placed = gaps.copy()
        placed[:, 0] = place_of[gaps[:, 0]]
        return placed[placed[:, 0] >= 0]


_BARE: Final = np.empty(0, f"V{ROW.itemsize}")
"""A table of rows without columns: numpy would compare the columns of all parts before it joined them."""


class Together:
    """Several tables of attempts, joined in their order."""

    def __init__(self, parts: Sequence[Attempts]) -> None:
        self.parts = parts
        self.firsts = np.cumsum([0, *(len(part) for part in parts)])
        whole = np.concatenate([_BARE, *(part.rows.view(_BARE.dtype) for part in parts)])
        self.rows = Rows(whole.view(ROW), parts[0].ways if parts else Ways())


class Recent:
    """The attempts of one model among all, to be judged by themselves."""

    def __init__(self, together: Together, model: str) -> None:
        self._together = together
        self._places = np.flatnonzero(together.rows.of_model(model))
        self.rows = together.rows.where(self._places)

    def mark(self, which: Bools, fault: int) -> None:
        """Attribute attempts to a fault, here and in the tables that these rows come from."""
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
        part, place = self._source(at)
        return part.response_id(place)

    def _source(self, at: int) -> tuple[Attempts, int]:
        place = int(self._places[at])
        part = int(np.searchsorted(self._together.firsts, place, "right")) - 1
        return self._together.parts[part], place - int(self._together.firsts[part])
