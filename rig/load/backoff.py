"""How long a client waits after a request that failed fast. Pure.

Without it a server that is away for seconds turns closed-loop clients into a flood of refused connections, and request
counts say nothing any more. A failure that took its time (a lost request, a late error) is no reason to wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from rig.clock import Pace

_FAST_FLOOR_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits `first_s`, doubled with each further fast failure up to `most_s`, times a random share of 0.5 … 1."""

    first_s: float = 0.25
    most_s: float = 2.0
    fast_s: float = 1.0  # a request that did not complete within this has failed fast

    def paced(self, pace: Pace) -> Backoff:
        """The same where everything goes faster. What counts as fast has a floor: a busy machine is not faster."""
        fast_s = max(pace.scale(self.fast_s), min(self.fast_s, _FAST_FLOOR_S))
        return Backoff(pace.scale(self.first_s), pace.scale(self.most_s), fast_s)

    def wait_s(self, failures: int, rng: Random) -> float:
        """`failures`: how many fast ones in a row, at least one."""
        return min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 30)) * rng.uniform(0.5, 1.0)
