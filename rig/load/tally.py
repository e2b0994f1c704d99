"""Counts and distributions of requests, kept up as their records are written. Bounded memory: sketches, no records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from rig.journal.records import AnyRecord, HeldBack, How, Own, RequestEnded, RequestStarted
from rig.load.sketch import GapSketch, LogSketch

EXAMPLES: Final = 5
REASONS: Final = 50
PERCENTILES: Final = (0.5, 0.9, 0.99)
_FINE: Final = 0.005  # relative error of what is reported per request


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Of so many values, in seconds; percentiles are within the sketch's relative error, `max_s` is exact."""

    count: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None


class Distribution:
    """One distribution of durations."""

    def __init__(self, sketch: LogSketch | None = None) -> None:
        self.sketch = LogSketch(_FINE) if sketch is None else sketch
        self._max_s: float | None = None

    def add(self, value_s: float) -> None:
        self.sketch.add(value_s)
        self.top(value_s)

    def top(self, value_s: float) -> None:
        self._max_s = value_s if self._max_s is None else max(self._max_s, value_s)

    def spread(self) -> Spread:
        count = sum(self.sketch.counts.values())
        p50, p90, p99 = (self._held(value) for value in self.sketch.quantiles(PERCENTILES))
        return Spread(count=count, p50_s=p50, p90_s=p90, p99_s=p99, max_s=self._max_s)

    def _held(self, value_s: float | None) -> float | None:
        """A bucket's middle may lie above the largest value itself."""
        return value_s if value_s is None or self._max_s is None else min(value_s, self._max_s)


class Tally:
    """`feed` it every record of a journal (others than requests are passed over); `source` says which it counts.

    `started == completed + error + lost + void + unfinished`. `void` says of what did not complete whether that says
    nothing of the target. It is asked when the next record of the rig's own health has come, for only that tells how
    the rig was meanwhile; `settle` asks of the last ones.
    """

    def __init__(self, void: Callable[[RequestEnded], bool], source: str = "load") -> None:
        self._void = void
        self._source = source
        self._failed: list[tuple[RequestEnded, RequestStarted]] = []  # and not yet counted
        self._in_flight: dict[str, RequestStarted] = {}
        self.started = self.completed = self.error = self.lost = self.void = 0
        self.held_back: HeldBack | None = None
        self.lost_how: dict[How, int] = {"hung": 0, "overdue": 0, "truncated": 0, "empty": 0}
        self.unclean_end = self.damaged = self.tokens = 0
        self.unclean_ends: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.void_reasons: Counter[str] = Counter()
        self.examples: list[RequestEnded] = []  # the first few that did not complete
        self.first_t: float | None = None
        self.last_t: float | None = None
        self.failed_streamed = 0
        self.connect, self.ttft, self.itl, self.e2el, self.late = (Distribution() for _ in range(5))
        self.ttft_due, self.e2el_due = Distribution(), Distribution()  # from when each was due
        self.gap = Distribution(GapSketch())

    @property
    def ended(self) -> int:
        return self.completed + self.error + self.lost + self.void

    @property
    def unfinished(self) -> int:
        """Started without an end so far, or not yet settled; at the end of a run, cut off by the end of the driver."""
        return len(self._in_flight) + len(self._failed)

    def feed(self, record: AnyRecord) -> None:
        if isinstance(record, RequestStarted):
            if record.source == self._source:
                self.started += 1
                self._in_flight[record.id] = record
        elif isinstance(record, RequestEnded) and record.id in self._in_flight:
            self._end(record, self._in_flight.pop(record.id))
        elif isinstance(record, Own):
            self.settle()
        elif isinstance(record, HeldBack):
            self.held_back = record

    def settle(self) -> None:
        """Count what did not complete, by what is known of the rig now."""
        failed, self._failed = self._failed, []
        for record, start in failed:
            self._fail(record, start)

    def _end(self, record: RequestEnded, start: RequestStarted) -> None:
        self.first_t = record.started_t if self.first_t is None else min(self.first_t, record.started_t)
        self.last_t = record.ended_t if self.last_t is None else max(self.last_t, record.ended_t)
        self.tokens += record.tokens if record.usage_tokens is None else record.usage_tokens
        self.late.add(max(0.0, record.started_t - start.planned_t))
        if record.connected_t is not None:
            self.connect.add(record.connected_t - record.started_t)
        if record.outcome == "completed":
            self.completed += 1
            self._complete(record, start.planned_t)
        else:
            self._failed.append((record, start))

    def _fail(self, record: RequestEnded, start: RequestStarted) -> None:
        reason = record.evidence.partition(" | ")[0]
        if self._void(record):
            self.void += 1
            _note(self.void_reasons, reason)
            return
        if record.outcome == "lost":
            self.lost += 1
            if record.how is not None:
                self.lost_how[record.how] += 1
        else:
            self.error += 1
        self.failed_streamed += start.streamed
        _note(self.reasons, reason)
        if len(self.examples) < EXAMPLES:
            self.examples.append(record)

    def _complete(self, record: RequestEnded, planned_t: float) -> None:
        """Times are of completed requests alone; what failed has no time that could be compared."""
        if record.unclean_end is not None:
            self.unclean_end += 1
            _note(self.unclean_ends, record.unclean_end)
        self.damaged += record.damaged is not None
        self.e2el.add(record.ended_t - record.started_t)
        self.e2el_due.add(record.ended_t - planned_t)
        if record.first_token_t is None or record.last_token_t is None:
            return
        self.ttft.add(record.first_token_t - record.started_t)
        self.ttft_due.add(record.first_token_t - planned_t)
        tokens = record.usage_tokens or record.tokens
        if tokens > 1:
            self.itl.add((record.last_token_t - record.first_token_t) / (tokens - 1))
        self.gap.sketch.merge(record.gaps.sketch)
        self.gap.top(record.gaps.max_s)


def _note(reasons: Counter[str], reason: str) -> None:
    """Counted; of so many different ones."""
    if reason in reasons or len(reasons) < REASONS:
        reasons[reason] += 1
