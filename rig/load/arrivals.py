"""When requests are wanted. Pure: seconds since the start of the load, without end.

Open loop: the times do not depend on the answers, so that a stalled server does not thin out its own measurement. What
cannot be sent at its time (too many in flight, a busy rig) is sent later and keeps its planned time in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal


def planned_times(kind: Literal["constant", "poisson"], rate: float, rng: Random) -> Iterator[float]:
    """`rate` requests a second on average, the first after one interval."""
    if not rate > 0:
        raise ValueError(f"an arrival rate must be positive, not {rate}")
    at_s = 0.0
    count = 0
    while True:
        if kind == "poisson":
            at_s += rng.expovariate(rate)
        else:  # by multiplication: a sum of rounded intervals would drift
            count += 1
            at_s = count / rate
        yield at_s
