"""Counts of requests, and how long they took, in memory that does not grow with their number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rig.analysis.intake.attempts import Floats, Rows
from rig.analysis.settings import NO_OBJECTIVES, Objectives
from rig.journal.records import How
from rig.load.sketch import GapSketch, LogSketch

PERCENTILES: Final = (0.5, 0.9, 0.99)


@dataclass(slots=True)
class Counts:
    """started = completed + error + lost + void + unfinished, always. `exposed`, `own_node` and `own_rejoining` are
    marks beside the outcome; a request is one of the last two at most."""

    started: int = 0
    completed: int = 0
    error: int = 0
    lost: int = 0
    void: int = 0
    unfinished: int = 0
    exposed: int = 0
    own_node: int = 0
    own_rejoining: int = 0
    error_own_node: int = 0
    lost_own_node: int = 0
    lost_own_rejoining: int = 0
    hung: int = 0
    overdue: int = 0
    truncated: int = 0
    empty: int = 0

    def take(self, other: Counts) -> None:
        """Add the counts of another."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def lost_not_own_node(self) -> int:
        """The headline: neither a result nor an error, and the own node was not faulted."""
        return self.lost - self.lost_own_node

    @property
    def lost_without_deadlines(self) -> int:
        """Lost, leaving out what only the rig's own deadlines made so."""
        return self.truncated + self.empty

    @property
    def balanced(self) -> bool:
        return self.started == self.completed + self.error + self.lost + self.void + self.unfinished

    @property
    def excluded_share(self) -> float:
        """How much of what was started the headline leaves out: own node and void."""
        return (self.own_node + self.void) / self.started if self.started else 0.0

    def how(self) -> dict[How, int]:
        return {"hung": self.hung, "overdue": self.overdue, "truncated": self.truncated, "empty": self.empty}


_COUNTED: Final = tuple(field.name for field in fields(Counts))


@dataclass(frozen=True, slots=True)
class Quantiles:
    """p50, p90, p99 in seconds: of the good requests, and with every failure counted as infinite."""

    count: int
    good: tuple[float | None, ...]
    with_failures: tuple[float | None, ...]  # inf where the quantile is a failure


class Timed:
    """Requests that ended, either all streamed or none, as columns. `good` is the mask of those that completed; the
    other columns are of these alone, NaN where there is no such time. `gaps` are buckets and counts of all."""

    __slots__ = ("ended_t", "failed", "first_t", "gap_max_s", "gaps", "good", "itl_s", "streamed", "token_sum")

    def __init__(self, rows: Rows, gaps: NDArray[np.int32], *, streamed: bool) -> None:
        good = rows.ok
        completed = rows.where(good)
        self.streamed = streamed
        self.token_sum = int(rows.tokens.sum())
        self.gaps = gaps
        self.gap_max_s = float(rows.floats("gap_max_s").max(initial=0.0))
        self.good = good
        self.failed = len(rows) - len(completed)
        self.ended_t = completed.ended_t
        nothing = np.full(len(completed), np.nan)
        self.first_t = completed.floats("first_token_t") if streamed else nothing
        last_t = completed.floats("last_token_t") if streamed else nothing
        steps = completed.tokens - 1
        self.itl_s = np.where(steps > 0, (last_t - self.first_t) / np.maximum(steps, 1), np.nan)


@dataclass(slots=True)
class Latencies:
    """TTFT and inter-token time of streams, end-to-end time of all, gaps between chunks; 2 % relative error.

    TTFT is first content - start, ITL (last - first content) / (output tokens - 1) of one request (what vLLM calls
    TPOT), E2EL end - start. In an open loop the start is when the request was due, so that what a stalled target held
    up is in the figures (coordinated omission: G. Tene, "How NOT to measure latency"). `met` counts the completed ones
    that met every objective.
    """

    ttft: LogSketch = field(default_factory=LogSketch)
    itl: LogSketch = field(default_factory=LogSketch)
    e2el: LogSketch = field(default_factory=LogSketch)
    chunk_gap: GapSketch = field(default_factory=GapSketch)
    good: int = 0
    failed: int = 0
    failed_streamed: int = 0
    met: int = 0
    tokens: int = 0
    gap_max_s: float = 0.0

    def add(self, timed: Timed, from_t: Floats, objectives: Objectives = NO_OBJECTIVES) -> None:
        """`from_t` are the starts; in an open loop, when the requests were due."""
        self.tokens += timed.token_sum
        self.chunk_gap.add_counts(timed.gaps[:, 0], timed.gaps[:, 1])
        self.gap_max_s = max(self.gap_max_s, timed.gap_max_s)
        failed, good = timed.failed, len(timed.ended_t)
        self.failed += failed
        self.good += good
        if timed.streamed:
            self.failed_streamed += failed
        begun_t = from_t[timed.good]
        e2el_s, ttft_s = timed.ended_t - begun_t, timed.first_t - begun_t
        self.e2el.add_all(e2el_s)
        self.ttft.add_all(ttft_s[~np.isnan(ttft_s)])
        self.itl.add_all(timed.itl_s[~np.isnan(timed.itl_s)])
        # a stream that brought no content has not met its TTFT
        begun_s = np.nan_to_num(ttft_s, nan=math.inf) if timed.streamed else ttft_s
        self.met += int(objectives.met(begun_s, timed.itl_s, e2el_s).sum())

    def take(self, other: Latencies) -> None:
        """Add the latencies of another."""
        for sketch, added in ((self.ttft, other.ttft), (self.itl, other.itl), (self.e2el, other.e2el)):
            sketch.merge(added.record())
        self.chunk_gap.merge(other.chunk_gap.record())
        self.good += other.good
        self.met += other.met
        self.failed += other.failed
        self.failed_streamed += other.failed_streamed
        self.tokens += other.tokens
        self.gap_max_s = max(self.gap_max_s, other.gap_max_s)

    def quantiles(self) -> dict[str, Quantiles]:
        return {
            "ttft": _quantiles(self.ttft, self.failed_streamed),
            "itl": _quantiles(self.itl, self.failed_streamed),
            "e2el": _quantiles(self.e2el, self.failed),
        }


def _quantiles(sketch: LogSketch, failed: int) -> Quantiles:
    count = sum(sketch.counts.values())
    return Quantiles(count, tuple(sketch.quantiles(PERCENTILES)), tuple(sketch.quantiles(PERCENTILES, infinite=failed)))
