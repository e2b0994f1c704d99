"""Records of a journal in batches: requests that ended as a table, all other records as they are.

Start and end lines are paired here, within a batch; `rig.analysis.intake.pairing` joins what began in one and ended in
a later one. Nothing in a batch depends on how requests are judged, so other processes may make batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from rig.analysis.intake.attempts import Attempts, Details, Row, Source, Way, Ways, row_of, table_of, way_of
from rig.analysis.intake.ticks import Health, HealthRow, Index, health_row, healths, index_of
from rig.journal.records import (
    AnyRecord,
    FaultChanged,
    InstanceServed,
    Own,
    PhaseStarted,
    RequestEnded,
    RequestStarted,
    Served,
    ViewChanged,
)

RECORDS: Final = 10_000
"""Records in a batch, where they come one by one."""
_ROWS: Final = 1000  # are packed into a table while they are in the cache

ServedIds: TypeAlias = tuple[str, list[str]]
"""An instance, and the response ids of requests that it served."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a batch up to a record that is judged by what came before it (a fault's, a phase's), or to the end.

    `attempts`, `served` and `others` count how many of the batch had come by then. `open_t` is, by model, when the
    first request was sent that began in this batch and had not ended. `last_t` is the time of the latest record.
    """

    attempts: int
    served: int
    others: int
    last_t: float
    now_t: float
    open_t: dict[str, float]


@dataclass
class Batch:
    """`began_elsewhere` has the ids, by position, of requests that ended in this batch and began in another: their rows
    lack the way and the planned time. `repeated` counts starts whose id was in flight already."""

    attempts: Attempts
    others: list[AnyRecord]
    before: list[tuple[int, int]]  # how much of `health` and of `indices` was written before each of the others
    health: Health
    indices: list[Index]
    served: list[ServedIds]
    stretches: list[Stretch]
    open: list[RequestStarted]
    began_elsewhere: dict[int, str]
    repeated: Counter[Way]
    first_t: dict[Source, float]

    def __getstate__(self) -> tuple[bytes | _Texts, tuple[Any, ...]]:
        """Records are pickled as MessagePack, which is quicker; as objects where one holds a number that is too large
        for that."""
        texts = found = self.others, self.before, self.indices, self.served, self.open
        with suppress(OverflowError):
            texts = msgspec.msgpack.encode(found)
        table = self.attempts.rows, list(self.attempts.ways), self.attempts.details, self.health
        return texts, (table, self.stretches, self.began_elsewhere, self.repeated, self.first_t)

    def __setstate__(self, state: tuple[bytes | _Texts, tuple[Any, ...]]) -> None:
        texts, (table, self.stretches, self.began_elsewhere, self.repeated, self.first_t) = state
        self.others, self.before, self.indices, self.served, self.open = (
            _texts.decode(texts) if isinstance(texts, bytes) else texts
        )
        rows, ways, details, self.health = table
        self.attempts = Attempts(rows, Ways(ways), np.arange(len(rows)), details)


_Texts: TypeAlias = tuple[list[AnyRecord], list[tuple[int, int]], list[Index], list[ServedIds], list[RequestStarted]]
_texts: Final = msgspec.msgpack.Decoder(_Texts)


class Batcher:
    """`feed` records, and `cut` a batch of those since the last cut. `keep` keeps the records of requests as well."""

    def __init__(self, *, keep: bool = False) -> None:
        self._keep = keep
        self._last_t = self._now_t = 0.0
        self._begin()

    def _begin(self) -> None:
        self._open: dict[str, RequestStarted] = {}
        self._codes: dict[tuple[Source, str, str, bool], int] = {}  # a plain tuple costs less to make than a way
        self._rows: list[Row] = []
        self._tables: list[NDArray[np.void]] = []
        self._pairs: list[tuple[RequestStarted | None, RequestEnded]] = []
        self._ids: list[str] = []
        self._response_ids: list[str | None] = []
        self._gaps: list[int] = []
        self._lost: dict[int, str] = {}
        self._unclean: list[int] = []
        self._damaged: list[int] = []
        self._elsewhere: list[int] = []
        self._others: list[AnyRecord] = []
        self._before: list[tuple[int, int]] = []
        self._health: list[HealthRow] = []
        self._indices: list[Index] = []
        self._served: list[ServedIds] = []
        self._stretches: list[Stretch] = []
        self._repeated: Counter[Way] = Counter()
        self._first_t: dict[Source, float] = {}

    def feed(self, records: Iterable[AnyRecord]) -> None:
        """Much of the time of a report is spent here: the most frequent records are matched first."""
        for record in records:
            if type(record) is RequestEnded:
                self._end(record)
            elif type(record) is RequestStarted:
                self._start(record)
            else:
                self._other(record)
            self._last_t = t = record.t
            if t > self._now_t:  # noqa: PLR1730  # most are, and a call costs more
                self._now_t = t
        if len(self._rows) >= _ROWS:
            self._pack()

    def _start(self, record: RequestStarted) -> None:
        if record.id in self._open:
            self._repeated[way_of(self._open[record.id])] += 1
        self._open[record.id] = record
        if record.source not in self._first_t:
            self._first_t[record.source] = record.t

    def _end(self, record: RequestEnded) -> None:
        at = len(self._ids)
        start = self._open.pop(record.id, None)
        if start is None:
            self._elsewhere.append(at)
            self._rows.append(row_of(-1, None, record))
        else:
            way = (start.source, start.model, start.entry, start.streamed)
            code = self._codes.get(way)
            if code is None:
                code = self._codes[way] = len(self._codes)
            self._rows.append(row_of(code, start.planned_t, record))
        self._ids.append(record.id)
        self._response_ids.append(record.response_id)
        if record.gaps.sketch:
            for bucket, count in record.gaps.sketch.items():
                self._gaps += (at, int(bucket), count)
        if record.outcome == "lost" or record.unclean_end is not None or record.damaged is not None:
            self._remark(at, record)
        if self._keep:
            self._pairs.append((start, record))

    def _other(self, record: AnyRecord) -> None:
        match record:
            case Own():
                self._health.append(health_row(record))
                return
            case InstanceServed():
                self._served.append((record.instance, record.response_ids))
                return
            case Served():
                self._served.append((record.instance, [record.response_id]))
                return
            case ViewChanged() if (index := index_of(record)) is not None:
                self._indices.append(index)
                return
            case FaultChanged() | PhaseStarted():
                self._turn()
            case _:
                pass
        self._others.append(record)
        self._before.append((len(self._health), len(self._indices)))

    def _remark(self, at: int, record: RequestEnded) -> None:
        if record.outcome == "lost":
            self._lost[at] = record.evidence
        if record.unclean_end is not None:
            self._unclean.append(at)
        if record.damaged is not None:
            self._damaged.append(at)

    def _turn(self) -> None:
        open_t: dict[str, float] = {}
        for start in self._open.values():
            open_t[start.model] = min(start.t, open_t.get(start.model, start.t))
        counts = len(self._ids), len(self._served), len(self._others)
        self._stretches.append(Stretch(*counts, self._last_t, self._now_t, open_t))

    def _pack(self) -> None:
        self._tables.append(table_of(self._rows))
        self._rows.clear()

    def cut(self) -> Batch:
        self._turn()
        self._pack()
        rows = self._tables[0] if len(self._tables) == 1 else np.concatenate(self._tables)
        details = Details(
            ids=self._ids,
            response_ids=self._response_ids,
            lost=self._lost,
            unclean=self._unclean,
            damaged=self._damaged,
            gaps=np.array(self._gaps, dtype=np.int32).reshape(-1, 3),
            pairs=self._pairs if self._keep else None,
        )
        batch = Batch(
            attempts=Attempts(rows, Ways(Way(*way) for way in self._codes), np.arange(len(rows)), details),
            others=self._others,
            before=self._before,
            health=healths(self._health),
            indices=self._indices,
            served=self._served,
            stretches=self._stretches,
            open=list(self._open.values()),
            began_elsewhere=self._began_elsewhere(),
            repeated=self._repeated,
            first_t=self._first_t,
        )
        self._begin()
        return batch

    def _began_elsewhere(self) -> dict[int, str]:
        """Ends whose start is not in this batch, by position. One whose id had ended here before cannot have begun in
        an earlier batch: its id is left empty."""
        found: dict[int, str] = {}
        seen: set[str] = set()
        looked = 0
        for at in self._elsewhere:
            seen.update(self._ids[looked:at])
            looked = at
            name = self._ids[at]
            found[at] = "" if name in seen else name
        return found


def batches(records: Iterable[AnyRecord], *, keep: bool = False) -> Iterator[Batch]:
    """The batches of these records, made in this process. The last batch may be empty."""
    batcher, rest = Batcher(keep=keep), iter(records)
    while some := list(islice(rest, RECORDS)):
        batcher.feed(some)
        yield batcher.cut()
