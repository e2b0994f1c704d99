"""Start and end lines of requests put together, load and probes alike, with nothing kept after the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rig.journal.records import How, Outcome, RequestEnded, RequestStarted

Source: TypeAlias = Literal["load", "probe"]
Key: TypeAlias = tuple[str, str, bool]
"""Model, entry node, streamed."""


def key_of(start: RequestStarted) -> Key:
    return start.model, start.entry, start.streamed


@dataclass(slots=True, eq=False)
class Attempt:
    """A request that ended. Times on the run's clock. What is asked for often is a field of its own."""

    start: RequestStarted
    end: RequestEnded
    model: str
    entry: str
    started_t: float
    ended_t: float
    ok: bool
    by_deadline: bool  # a deadline of the rig's own ended it, not the target
    fault: int | None = None  # to which fault its failure is attributed, once that is decided

    @property
    def id(self) -> str:
        return self.start.id

    @property
    def source(self) -> Source:
        return self.start.source

    @property
    def streamed(self) -> bool:
        return self.start.streamed

    @property
    def planned_t(self) -> float:
        return self.start.planned_t

    @property
    def outcome(self) -> Outcome:
        return self.end.outcome

    @property
    def how(self) -> How | None:
        return self.end.how

    @property
    def progress_t(self) -> float | None:
        return self.end.last_progress_t

    @property
    def response_id(self) -> str | None:
        return self.end.response_id

    @property
    def evidence(self) -> str:
        return "" if self.ok else self.end.evidence

    @property
    def stalled_t(self) -> float:
        """When its progress stopped; its start where none was seen."""
        progress_t = self.end.last_progress_t
        return self.started_t if progress_t is None else progress_t

    @property
    def failed_t(self) -> float:
        """The moment of a failure: its end, but where the rig's own deadline made the end, when progress stopped."""
        return self.stalled_t if self.by_deadline and self.outcome == "lost" else self.ended_t


class Pairing:
    """Puts starts and ends together. Holds what is in flight, nothing else.

    `orphans` counts ends without a start, `overwritten` starts whose id was in flight already when it came again:
    neither can come from a sound driver. `first_t` is when the first start of each source was written.
    """

    def __init__(self) -> None:
        self.in_flight: dict[str, RequestStarted] = {}
        self.orphans = 0
        self.overwritten: Counter[tuple[Source, Key]] = Counter()
        self.first_t: dict[Source, float] = {}

    @property
    def repeated(self) -> int:
        return self.overwritten.total()

    def started(self, record: RequestStarted) -> None:
        before = self.in_flight.get(record.id)
        if before is not None:
            self.overwritten[before.source, key_of(before)] += 1
        self.in_flight[record.id] = record
        if record.source not in self.first_t:
            self.first_t[record.source] = record.t

    def ended(self, end: RequestEnded) -> Attempt | None:
        """The attempt that ended with this record, if it had been started."""
        start = self.in_flight.pop(end.id, None)
        if start is None:
            self.orphans += 1
            return None
        ok = end.outcome == "completed"
        return Attempt(
            start, end, start.model, start.entry, end.started_t, end.ended_t, ok, not ok and _by_deadline(end)
        )


def _by_deadline(end: RequestEnded) -> bool:
    """Also an error that is the rig's own connect deadline."""
    if end.how in ("hung", "overdue"):
        return True
    return end.outcome == "error" and end.connected_t is None and "timeout" in end.evidence.lower()
