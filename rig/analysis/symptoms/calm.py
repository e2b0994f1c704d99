"""Since when nothing has disturbed the cluster: no fault in force, nothing healed or restarted for a grace."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.journal.records import AnyRecord, FaultChanged, PhaseStarted, Unwedged

GRACE_S: Final = 60.0
"""At pace 1. A silent node is dropped after 33 to 40 s, its instances after 50; links are there 22 s after a start."""
LEAST_GRACE_S: Final = 4.0
"""At any pace: polls and a busy machine take their time."""
_OVER: Final = frozenset({"healed", "skipped", "ineffective"})


@dataclass
class Calm:
    """`since_t` is infinite while a fault is in force, and before the load has begun."""

    pace: float
    since_t: float = math.inf
    _open: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.grace_s = max(GRACE_S / self.pace, LEAST_GRACE_S)

    def feed(self, record: AnyRecord) -> None:
        match record:
            case PhaseStarted(phase="baseline" | "faults" | "warmup") if math.isinf(self.since_t) and not self._open:
                self.since_t = record.t
            case FaultChanged(state="leased" | "struck" | "holding" | "invalid" | "unhealed"):
                self._open.add(record.fault)
                self.since_t = math.inf
            case FaultChanged() if record.state in _OVER:
                if record.fault in self._open:
                    self._open.discard(record.fault)
                    self.since_t = math.inf if self._open else max(record.at_t, record.t)
            case Unwedged():
                self.since_t = math.inf if self._open else record.t
            case _:
                pass

    def count(self, times: Sequence[float]) -> int:
        """At how many of these moments, which rise, it had been calm for longer than the grace."""
        return len(times) - bisect_right(times, 0.0, key=lambda t: self.lasting(0.0, t))

    def lasting(self, from_t: float, now: float) -> float:
        """How long something that began at `from_t` has lasted beyond the grace; 0 while it may be a fault's doing."""
        return max(0.0, now - max(from_t, self.since_t) - self.grace_s)
