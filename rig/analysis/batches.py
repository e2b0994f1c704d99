"""Records of a journal, put together by the thousand: requests that ended as a table, all others as they are.

Start and end lines are paired here, within a batch; `rig.analysis.pairing` joins what began in one and ended in a later
one. A batch says nothing of how requests are judged, so batches may be made anywhere, also in another process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from rig.analysis.attempts import ROW, Attempts, Row, Source, Told, Way, row_of, way_of
from rig.journal.records import AnyRecord, FaultChanged, PhaseStarted, RequestEnded, RequestStarted, Served

AT_ONCE: Final = 50_000
"""Records in a batch made of any records."""
_TURNS: Final = frozenset({FaultChanged, PhaseStarted})


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was written up to a record that is judged by what came before it (a fault's, a phase's), or to the end.

    `attempts`, `served` and `others` say how many of the batch came by then; `open_t` by model when the first of those
    requests was sent that began in this batch and had not ended. `last_t` is that of the latest record.
    """

    attempts: int
    served: int
    others: int
    last_t: float
    now_t: float
    open_t: dict[str, float]


@dataclass
class Batch:
    """`ended_elsewhere` are the ids, by position, of what ended here and did not begin here: its row lacks how it went
    and when it was planned. `repeated` counts starts whose id was in flight already."""

    attempts: Attempts
    others: list[AnyRecord]
    served: list[tuple[str, str]]  # response id, instance
    stretches: list[Stretch]
    open: list[RequestStarted]
    ended_elsewhere: dict[int, str]
    repeated: Counter[Way]
    first_t: dict[Source, float]

    def __getstate__(self) -> tuple[bytes, tuple[Any, ...]]:
        """Records travel as they would in a file, which is quicker than as objects."""
        texts = msgspec.msgpack.encode((self.others, self.served, self.open))
        attempts, ways = self.attempts, list(self.attempts.ways)
        rest = (attempts.rows, ways, attempts.told, self.stretches, self.ended_elsewhere, self.repeated, self.first_t)
        return texts, rest

    def __setstate__(self, state: tuple[bytes, tuple[Any, ...]]) -> None:
        texts, (rows, ways, told, self.stretches, self.ended_elsewhere, self.repeated, self.first_t) = state
        self.others, self.served, self.open = _TEXTS.decode(texts)
        self.attempts = Attempts(rows, ways, np.arange(len(rows)), told)


_TEXTS: Final = msgspec.msgpack.Decoder(tuple[list[AnyRecord], list[tuple[str, str]], list[RequestStarted]])


@dataclass
class Batcher:
    """Feed records, and `cut` what has come since the last cut. `keep` the records of requests beside their rows."""

    keep: bool = False
    _open: dict[str, RequestStarted] = field(default_factory=dict[str, RequestStarted])
    _pairs: list[tuple[RequestStarted | None, RequestEnded]] = field(
        default_factory=list[tuple[RequestStarted | None, RequestEnded]]
    )
    _others: list[AnyRecord] = field(default_factory=list[AnyRecord])
    _served: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _stretches: list[Stretch] = field(default_factory=list[Stretch])
    _repeated: Counter[Way] = field(default_factory=Counter[Way])
    _first_t: dict[Source, float] = field(default_factory=dict[Source, float])
    _last_t: float = 0.0
    _now_t: float = 0.0

    def feed(self, records: Iterable[AnyRecord]) -> None:
        begun, pairs, others, served = self._open, self._pairs, self._others, self._served
        last_t, now_t = self._last_t, self._now_t
        for record in records:
            kind = type(record)
            if kind is RequestEnded:
                pairs.append((begun.pop(record.id, None), record))
            elif kind is RequestStarted:
                self._begin(record)
            elif kind is Served:
                served.append((record.response_id, record.instance))
            else:
                if kind in _TURNS:
                    self._last_t, self._now_t = last_t, now_t
                    self._turn()
                others.append(record)
            last_t = record.t
            if last_t > now_t:
                now_t = last_t
        self._last_t, self._now_t = last_t, now_t

    def _begin(self, record: RequestStarted) -> None:
        before = self._open.get(record.id)
        if before is not None:
            self._repeated[way_of(before)] += 1
        self._open[record.id] = record
        if record.source not in self._first_t:
            self._first_t[record.source] = record.t

    def _turn(self) -> None:
        open_t: dict[str, float] = {}
        for start in self._open.values():
            open_t[start.model] = min(start.t, open_t.get(start.model, start.t))
        counts = len(self._pairs), len(self._served), len(self._others)
        self._stretches.append(Stretch(*counts, self._last_t, self._now_t, open_t))

    def cut(self) -> Batch:
        self._turn()
        elsewhere = self._elsewhere()
        batch = Batch(
            attempts=_table(self._pairs, keep=self.keep),
            others=self._others,
            served=self._served,
            stretches=self._stretches,
            open=list(self._open.values()),
            ended_elsewhere=elsewhere,
            repeated=self._repeated,
            first_t=self._first_t,
        )
        self.__init__(self.keep, _last_t=self._last_t, _now_t=self._now_t)
        return batch

    def _elsewhere(self) -> dict[int, str]:
        """But for an end whose request had been sent, and had ended, in this batch: it cannot be of an earlier one."""
        without = [at for at, (start, _) in enumerate(self._pairs) if start is None]
        if not without:
            return {}
        found: dict[int, str] = {}
        seen: set[str] = set()
        looked = 0
        for at in without:
            seen.update(end.id for start, end in self._pairs[looked:at] if start is not None)
            looked = at
            name = self._pairs[at][1].id
            found[at] = "" if name in seen else name
        return found


def _table(pairs: list[tuple[RequestStarted | None, RequestEnded]], *, keep: bool) -> Attempts:
    codes: dict[Way, int] = {}
    rows: list[Row] = []
    lost: dict[int, str] = {}
    unclean: list[int] = []
    damaged: list[int] = []
    gaps: list[tuple[int, int, int]] = []
    for at, (start, end) in enumerate(pairs):
        if start is None:
            rows.append(row_of(-1, None, end))
        else:
            way = (start.source, start.model, start.entry, start.streamed)
            code = codes.get(way)  # pyright: ignore[reportArgumentType]  # a way is such a tuple, and costs more to make
            if code is None:
                code = codes[Way(*way)] = len(codes)
            rows.append(row_of(code, start.planned_t, end))
        if end.outcome == "lost":
            lost[at] = end.evidence
        if end.unclean_end is not None:
            unclean.append(at)
        if end.damaged is not None:
            damaged.append(at)
        if end.gaps.sketch:
            gaps += [(at, int(bucket), count) for bucket, count in end.gaps.sketch.items()]
    told = Told(
        ids=[end.id for _, end in pairs],
        response_ids=[end.response_id for _, end in pairs],
        lost=lost,
        unclean=unclean,
        damaged=damaged,
        gaps=np.array(gaps, dtype=np.int32).reshape(-1, 3),
        pairs=pairs if keep else None,  # pyright: ignore[reportArgumentType]  # those without a start are joined or left out
    )
    return Attempts(np.array(rows, dtype=ROW), list(codes), np.arange(len(rows)), told)


def batches(records: Iterable[AnyRecord], *, keep: bool = False) -> Iterator[Batch]:
    """All of them, in one process. The last batch may be empty."""
    batcher, rest = Batcher(keep), iter(records)
    while some := list(islice(rest, AT_ONCE)):
        batcher.feed(some)
        yield batcher.cut()
