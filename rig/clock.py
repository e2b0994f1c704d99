"""Time: the controller's monotonic clock since the start of a run, and the pace that divides every duration.

All times in the journal are seconds on `RunClock`. All durations from configuration pass through `Pace` exactly
once, where a run is put together (`rig.run`, `rig.lab.embedded`): code below it gets seconds that are already divided.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Anything that tells seconds; monotonic, origin of its own. Virtual in simulations."""

    def now(self) -> float: ...


class WatchedClock(Clock, Protocol):
    """The clock of a run. It knows whether it missed anything: a controller that slept is not to be overlooked."""

    def wall_drift(self) -> float:
        """Wall clock minus this clock since the start, in seconds."""
        ...


class RunClock:
    """Seconds since it was made, from CLOCK_MONOTONIC; `wall_start` is Unix seconds at the same moment."""

    def __init__(self) -> None:
        self._start_ns = time.monotonic_ns()
        self.wall_start = time.time()

    def now(self) -> float:
        return (time.monotonic_ns() - self._start_ns) / 1e9

    def wall_drift(self) -> float:
        """Wall clock minus monotonic clock since the start, in seconds: a step or a sleep shows here."""
        return (time.time() - self.wall_start) - self.now()


@dataclass(frozen=True)
class Pace:
    """`factor` divides durations: a run at pace 10 sees ten times as much in the same time. Real targets run at 1."""

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.factor >= 1.0:
            raise ValueError(f"pace must be at least 1, not {self.factor}")

    def scale(self, duration_s: float) -> float:
        return duration_s / self.factor

    def poll(self, interval_s: float) -> float:
        """Intervals of polls and probes: divided like the rest, but never below 100 ms (a poll costs the node CPU)."""
        return max(interval_s / self.factor, min(interval_s, 0.1))
