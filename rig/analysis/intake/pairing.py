"""Joins starts and ends of requests that began in one batch and ended in a later one. Holds what is in flight."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np

from rig.analysis.intake.attempts import Attempts, Details, Source, Way, Ways, way_of
from rig.analysis.intake.batches import Batch, Stretch
from rig.journal.records import RequestStarted


class Pairing:
    """`orphans` counts ends without a start; `overwritten` counts starts whose id was started again while it was in
    flight. Neither can come from a sound driver. `first_t` is when the first start of each source was written.

    `ways` are those of all requests; the tables of all batches refer to them.
    """

    def __init__(self) -> None:
        self.in_flight: dict[str, RequestStarted] = {}
        self.ways = Ways()
        self.orphans = 0
        self.overwritten: Counter[Way] = Counter()
        self.first_t: dict[Source, float] = {}
        self._codes: dict[Way, int] = {}
        self._carried: list[
            tuple[int, RequestStarted]
        ] = []  # requests of earlier batches that end in this one: place, start

    @property
    def repeated(self) -> int:
        return self.overwritten.total()

    def join(self, batch: Batch) -> Attempts:
        """The requests that ended in this batch and had a start. `close` the batch before the next is joined."""
        attempts = batch.attempts
        codes = np.array([*(self._code(way) for way in attempts.ways), -1], dtype=np.int32)
        attempts.rows["way"] = codes[attempts.way]  # -1 is the last
        attempts.ways = self.ways
        self._carried = []
        orphans: list[int] = []
        for at, name in batch.began_elsewhere.items():
            start = self.in_flight.pop(name, None)
            if start is None:
                orphans.append(at)
                continue
            self._carried.append((at, start))
            attempts.way[at] = self._code(way_of(start))
            attempts.rows["planned_t"][at] = start.planned_t
            if attempts.details.pairs is not None:
                attempts.details.pairs[at] = (start, attempts.details.pairs[at][1])
        for name in self._again(batch, attempts.details):
            self.overwritten[way_of(self.in_flight.pop(name))] += 1
        self.overwritten.update(batch.repeated)
        for source, first_t in batch.first_t.items():
            self.first_t.setdefault(source, first_t)
        if orphans:
            self._leave_out(orphans, batch)
        return batch.attempts

    def close(self, batch: Batch) -> None:
        """From now on, requests that did not end in the batch are in flight."""
        self._carried = []
        self.in_flight.update((start.id, start) for start in batch.open)

    def open_t(self, stretch: Stretch) -> dict[str, float]:
        """By model: when the oldest request was sent that was in flight at the end of the stretch."""
        found = dict(stretch.open_t)
        carried = (start for at, start in self._carried if at >= stretch.attempts)
        for start in chain(self.in_flight.values(), carried):
            found[start.model] = min(start.t, found.get(start.model, start.t))
        return found

    def _again(self, batch: Batch, details: Details) -> list[str]:
        """Ids that were in flight before this batch and were started again in it."""
        if not self.in_flight:
            return []
        begun = {start.id for start in batch.open}
        begun.update(name for name in details.ids if name in self.in_flight)
        return [name for name in self.in_flight if name in begun]

    def _code(self, way: Way) -> int:
        code = self._codes.get(way)
        if code is None:
            code = self._codes[way] = len(self.ways)
            self.ways.append(way)
        return code

    def _leave_out(self, orphans: list[int], batch: Batch) -> None:
        """Drop the rows of requests that have no start."""
        self.orphans += len(orphans)
        gone = np.array(orphans)
        places = np.delete(np.arange(len(batch.attempts)), gone)
        batch.attempts = batch.attempts.part(places)
        self._carried = [(at - int((gone < at).sum()), start) for at, start in self._carried]
        batch.stretches = [
            Stretch(
                stretch.attempts - int((gone < stretch.attempts).sum()),
                stretch.served,
                stretch.others,
                stretch.last_t,
                stretch.now_t,
                stretch.open_t,
            )
            for stretch in batch.stretches
        ]
