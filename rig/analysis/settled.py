"""Requests that ended and of which nothing that is still written can change how they are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rig.analysis.attempts import Attempt
from rig.analysis.requests import Own
from rig.journal.records import RequestStarted


@dataclass(frozen=True, slots=True)
class Judged:
    """How one request that ended was counted: `faults` are the effective ones it was exposed to, `fault` is the one to
    which its failure is attributed."""

    attempt: Attempt
    own: Own = None
    void: bool = False
    faults: frozenset[int] = frozenset()
    fault: int | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A batch in the order of the ends. Only what failed, or was near a fault, is judged one by one (`special`, by
    position); all others completed in calm weather. `windows` are those of faults that any of the load was in: the
    fault's number, and the positions (see `rig.analysis.during`)."""

    attempts: Sequence[Attempt]
    special: Mapping[int, Judged]
    windows: Sequence[tuple[int, Sequence[int]]] = ()

    def __iter__(self) -> Iterator[Judged]:
        special = self.special
        return (special.get(at) or Judged(attempt) for at, attempt in enumerate(self.attempts))

    def judged(self, at: int) -> Judged:
        return self.special.get(at) or Judged(self.attempts[at])


class Listener(Protocol):
    """Told of every request once: when it is settled, or at the end of the journal (`end_t`) if it never ended."""

    def settled(self, batch: Settled) -> None: ...

    def unfinished(self, start: RequestStarted, end_t: float) -> None: ...
