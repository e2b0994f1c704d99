"""Start and end lines of requests put together, load and probes alike, with nothing kept after the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rig.journal.records import AnyRecord, How, Outcome, RequestEnded, RequestStarted


@dataclass(slots=True, eq=False)
class Attempt:
    """A request that ended. Times on the run's clock."""

    id: str
    source: Literal["load", "probe"]
    model: str
    entry: str
    streamed: bool
    planned_t: float
    started_t: float
    ended_t: float
    outcome: Outcome
    how: How | None
    progress_t: float | None
    by_deadline: bool  # a deadline of the rig's own ended it, not the target
    response_id: str | None = None
    evidence: str = ""
    fault: int | None = None  # to which fault its failure is attributed, once that is decided

    @property
    def ok(self) -> bool:
        return self.outcome == "completed"

    @property
    def stalled_t(self) -> float:
        """When its progress stopped; its start where none was seen."""
        return self.started_t if self.progress_t is None else self.progress_t

    @property
    def failed_t(self) -> float:
        """The moment of a failure: its end, but where the rig's own deadline made the end, when progress stopped."""
        return self.stalled_t if self.by_deadline and self.outcome == "lost" else self.ended_t


class Pairing:
    """Puts starts and ends together. Holds what is in flight, nothing else.

    `orphans` counts ends without a start, `repeated` starts whose id is in flight already: neither can come from a
    sound driver.
    """

    def __init__(self) -> None:
        self.in_flight: dict[str, RequestStarted] = {}
        self.orphans = 0
        self.repeated = 0

    def feed(self, record: AnyRecord) -> Attempt | None:
        """The attempt that ended with this record, if one did."""
        if isinstance(record, RequestStarted):
            if record.id in self.in_flight:
                self.repeated += 1
            self.in_flight[record.id] = record
            return None
        if not isinstance(record, RequestEnded):
            return None
        start = self.in_flight.pop(record.id, None)
        if start is None:
            self.orphans += 1
            return None
        return _attempt(start, record)


def _attempt(start: RequestStarted, end: RequestEnded) -> Attempt:
    return Attempt(
        id=start.id,
        source=start.source,
        model=start.model,
        entry=start.entry,
        streamed=start.streamed,
        planned_t=start.planned_t,
        started_t=end.started_t,
        ended_t=end.ended_t,
        outcome=end.outcome,
        how=end.how,
        progress_t=end.last_progress_t,
        by_deadline=end.how in ("hung", "overdue") or _timed_out(end),
        response_id=end.response_id,
        evidence="" if end.outcome == "completed" else end.evidence,
    )


def _timed_out(end: RequestEnded) -> bool:
    """An error that is the rig's own connect deadline."""
    return end.outcome == "error" and end.connected_t is None and "timeout" in end.evidence.lower()
