"""What became of the requests of one source, and what they met: the result of counting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rig.analysis.firsts import Firsts
from rig.analysis.requests.counts import Counts, Latencies
from rig.analysis.settings import Objectives
from rig.journal.records import How
from rig.load.sketch import LogSketch

MAX_LISTED: Final = 200

CALM: Final = "calm"
FAULTED: Final = "around faults"
"""Requests that were exposed to a fault or an unwedging, whose own node was faulted or rejoining, or that failed by any
of these."""

Own = Literal["node", "rejoining"] | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A request with neither a result nor an error."""

    id: str
    how: How
    model: str
    entry: str
    streamed: bool
    started_t: float
    stalled_t: float
    ended_t: float
    own: Own
    fault: int | None
    unwedging: int | None  # the rig's own, after this fault
    evidence: str


@dataclass(slots=True)
class FaultCounts:
    """Requests of the load: those exposed to this fault (or unwedging), and the failures attributed to it."""

    exposed: int = 0
    error: int = 0
    lost: int = 0
    lost_own_node: int = 0


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met every objective: their number, their share of those that ended, their rate over the load."""

    met: int
    share: float | None
    per_s: float | None


@dataclass(slots=True)
class Tally:
    """The result. `calm` counts the requests that neither a fault nor an unwedging touched."""

    total: Counts = field(default_factory=Counts)
    calm: Counts = field(default_factory=Counts)
    baseline: Counts = field(default_factory=Counts)
    by_model: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_entry: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_streamed: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    by_fault: defaultdict[int, FaultCounts] = field(default_factory=lambda: defaultdict(FaultCounts))
    by_unwedging: defaultdict[int, FaultCounts] = field(default_factory=lambda: defaultdict(FaultCounts))
    """By the number of the fault after which the rig stepped in."""
    latencies: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))  # by model
    latencies_by_entry: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    latencies_by_streamed: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    latencies_by_weather: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    from_start: Latencies = field(default_factory=Latencies)  # of an open loop, whose other latencies are from when due
    late: LogSketch = field(default_factory=LogSketch)  # of an open loop: how long after it was due each was sent
    late_max_s: float = 0.0
    first_t: float | None = None  # when the first was sent
    last_t: float | None = None  # when the last ended
    # lost, the first 200: own node not faulted, and faulted
    listed: list[Lost] = field(default_factory=lambda: Firsts[Lost](MAX_LISTED))
    listed_own: list[Lost] = field(default_factory=lambda: Firsts[Lost](MAX_LISTED))
    damaged: int = 0
    unclean: int = 0
    damaged_ids: list[str] = field(default_factory=lambda: Firsts[str](MAX_LISTED))

    def late_quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """Of an open loop, in seconds: how late requests were sent. No quantile is above the worst."""
        return [None if value is None else min(value, self.late_max_s) for value in self.late.quantiles(shares)]

    def goodput(self, objectives: Objectives) -> Goodput | None:
        """None if no objective was set."""
        if not objectives.any:
            return None
        together = self.all_latencies()
        judged = together.good + together.failed
        length_s = 0.0 if self.first_t is None or self.last_t is None else self.last_t - self.first_t
        return Goodput(
            met=together.met,
            share=together.met / judged if judged else None,
            per_s=together.met / length_s if length_s > 0 else None,
        )

    def all_latencies(self) -> Latencies:
        """The latencies of all models together."""
        together = Latencies()
        for latencies in self.latencies.values():
            together.take(latencies)
        return together
