"""When requests are wanted. Pure: seconds since the start of the load.

Open loop: the times do not depend on the answers, so that a stalled server does not thin out its own measurement. What
cannot be sent at its time (too many in flight, a busy rig) is sent later and keeps its planned time in the journal.

Two things make the times: a spacing (arrivals at a rate of one a second: even, independent, bursty) and the rate over
time, of which the spacing is a distance: arrival n comes when the area under the rate reaches the spacing's n-th value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from rig.config.traces import TraceRow, period_s
from rig.config.workload import Arrivals, Stage

MOST_LATE_S: Final = 0.005
"""At the 99th percentile: above it, latencies from when due are partly the rig's own (so no pace divides it)."""

Kind = Literal["constant", "poisson", "gamma", "burst"]


@dataclass(frozen=True, slots=True)
class Due:
    """One request that is wanted; lengths in tokens where the arrivals bring them.

    `blocks` name the pieces of its prompt, of `BLOCK_TOKENS` each: equal names, equal text.
    """

    at_s: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    blocks: tuple[str, ...] = ()


def due(arrivals: Arrivals, rng: Random, trace: Sequence[TraceRow] | None = None) -> Iterator[Due]:
    """The requests of an open loop, in the order of time; without end, unless the last rate is 0."""
    if arrivals.kind == "closed":
        raise ValueError("a closed loop has no times")
    if arrivals.kind == "replay":
        return replayed(trace or [], arrivals.speed)
    times = spaced(arrivals.kind, rng, burstiness=arrivals.burstiness or 1.0, burst=arrivals.burst or 1)
    stages = arrivals.stages or [Stage(duration=1.0, rate=arrivals.rate or 0.0)]
    return (Due(at_s) for at_s in at_rate(times, stages))


def planned_times(kind: Kind, rate: float, rng: Random) -> Iterator[float]:
    """`rate` requests a second on average, the first after one interval."""
    if not rate > 0:
        raise ValueError(f"an arrival rate must be positive, not {rate}")
    return at_rate(spaced(kind, rng), [Stage(duration=1.0, rate=rate)])


def spaced(kind: Kind, rng: Random, *, burstiness: float = 1.0, burst: int = 1) -> Iterator[float]:
    """Arrivals at one a second on average. `burstiness` is the shape of the gamma distribution of the gaps."""
    at = 0.0
    count = 0
    while True:
        count += 1
        match kind:
            case "constant":  # by counting: a sum of rounded intervals would drift
                yield float(count)
            case "burst":
                yield float(math.ceil(count / burst) * burst)
            case "poisson":
                at += rng.expovariate(1.0)
                yield at
            case "gamma":
                at += rng.gammavariate(burstiness, 1 / burstiness)
                yield at


def at_rate(spacing: Iterable[float], stages: Sequence[Stage]) -> Iterator[float]:
    """The moments at which the area under the rate reaches each value of `spacing`. The last rate goes on."""
    spans = [_Span(stage.duration, stage.rate, stage.rate if stage.to is None else stage.to) for stage in stages]
    spans.append(_Span(math.inf, spans[-1].end, spans[-1].end))
    number = 0
    begin_s = area = 0.0  # at the beginning of the span
    for value in spacing:
        while value > area + spans[number].area:
            begin_s, area = begin_s + spans[number].duration_s, area + spans[number].area
            number += 1
            if number == len(spans):  # the last rate was 0
                return
        yield begin_s + spans[number].offset_s(value - area)


@dataclass(frozen=True, slots=True)
class _Span:
    """So long at a rate that goes evenly from one value to another."""

    duration_s: float
    begin: float
    end: float

    @property
    def area(self) -> float:
        if self.begin == self.end == 0.0:
            return 0.0
        return (self.begin + self.end) / 2 * self.duration_s

    def offset_s(self, area: float) -> float:
        """Where the area reaches this value: the root of begin·x + slope·x²/2 = area, without cancellation."""
        if self.begin == self.end:
            return area / self.begin
        slope = (self.end - self.begin) / self.duration_s
        root = math.sqrt(max(0.0, self.begin**2 + 2 * slope * area))
        return 2 * area / (self.begin + root)


def replayed(trace: Sequence[TraceRow], speed: float) -> Iterator[Due]:
    """The rows of a trace at their times divided by `speed`, from the beginning again when it is over.

    Blocks are others each time around: a prefix cache must not answer for what the trace had only once.
    """
    length_s = period_s(trace)
    cycle = 0
    while True:
        for row in trace:
            blocks = tuple(f"{cycle}/{block}" for block in row.blocks)
            yield Due((cycle * length_s + row.at_s) / speed, row.prompt_tokens, row.output_tokens, blocks)
        cycle += 1
