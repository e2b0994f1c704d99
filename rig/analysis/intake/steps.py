"""What a journal brings, step by step in its order: nobody above knows the batches in which it was read.

Requests come as a table, the rig's health and event indices many at a time, all other records one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rig.analysis.intake.attempts import Attempts
from rig.analysis.intake.batches import Batch, Batcher, ServedIds
from rig.analysis.intake.pairing import Pairing
from rig.analysis.intake.ticks import Health, Index
from rig.journal.records import AnyRecord, RequestStarted


@dataclass(frozen=True, slots=True)
class Ended:
    """The requests that ended since the last such step, and which instances served which.

    `open_t` is, by model, when the first request was sent that is in flight now. `last_t` is the time of the latest
    record, `now_t` the latest time of any record.
    """

    attempts: Attempts
    served: Sequence[ServedIds]
    last_t: float
    now_t: float
    open_t: dict[str, float]


@dataclass(frozen=True, slots=True)
class Section:
    """All attempts and all health of the steps since the last section: what can be taken in any order."""

    attempts: Attempts
    health: Health


Step: TypeAlias = Ended | Section | Health | list[Index] | AnyRecord


def steps(batches: Iterable[Batch], pairing: Pairing) -> Iterator[Step]:
    """`pairing` knows after each section what is in flight."""
    for batch in batches:
        yield from _steps(batch, pairing)


def _steps(batch: Batch, pairing: Pairing) -> Iterator[Step]:
    attempts = pairing.join(batch)
    ended = served = fed = health = indices = 0
    for stretch in batch.stretches:
        for at in range(fed, stretch.others):
            next_health, next_indices = batch.before[at]
            if health < next_health:
                yield batch.health[health:next_health]
            if indices < next_indices:
                yield batch.indices[indices:next_indices]
            health, indices = next_health, next_indices
            yield batch.others[at]
        part = attempts.part(slice(ended, stretch.attempts))
        served_now = batch.served[served : stretch.served]
        yield Ended(part, served_now, stretch.last_t, stretch.now_t, pairing.open_t(stretch))
        ended, served, fed = stretch.attempts, stretch.served, stretch.others
    if health < len(batch.health):
        yield batch.health[health:]
    if indices < len(batch.indices):
        yield batch.indices[indices:]
    pairing.close(batch)
    yield Section(attempts, batch.health)


class Live:
    """Records of requests, one by one as they are written. `ended` gives those that ended since it was last called."""

    def __init__(self) -> None:
        self._batcher, self._pairing = Batcher(), Pairing()
        self.waiting = 0

    def feed(self, record: AnyRecord) -> None:
        self._batcher.feed((record,))
        self.waiting += 1

    def ended(self) -> Ended:
        self.waiting = 0
        (ended,) = (step for step in _steps(self._batcher.cut(), self._pairing) if isinstance(step, Ended))
        return ended

    @property
    def in_flight(self) -> Iterable[RequestStarted]:
        """As of the last `ended`."""
        return self._pairing.in_flight.values()
