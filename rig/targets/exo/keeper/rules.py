"""The keeper's times, as upstream promises them, and how they are judged from intervals. Pure.

A rule about a least time is broken when even the longest time that can have passed is too short; one about a most time
when even the shortest is too long. What lies in between is undecided. Margins: a tenth for the target's timers, and for
reactions, which take a step of the keeper and a placement's way, a fixed allowance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rig.analysis.moments import Elapsed

Held: TypeAlias = Literal["kept", "broken", "undecided"]

GRACE_S: Final = 15.0
STEP_S: Final = 1.0
RETRY_S: Final = 30.0
IN_FLIGHT_S: Final = 30.0
BACKOFF_S: Final = (10.0, 20.0, 40.0, 60.0)
PROMPT_S: Final = 4.0
"""At once: the next step, its second, the placement's way, and as much again."""
BUSY_S: Final = 0.3
"""What a busy machine adds to a reaction at any pace."""
_EARLY: Final = 0.9
_SHORT: Final = 0.7


@dataclass(frozen=True, slots=True)
class Judged:
    """How a promise fared once. `line` is the evidence."""

    held: Held
    line: str


@dataclass(frozen=True)
class Rules:
    pace: float = 1.0

    @property
    def report_s(self) -> float:
        """How often each node reports its memory."""
        return 1.0 / self.pace

    def scaled(self, duration_s: float) -> float:
        return duration_s / self.pace

    def backoff_s(self, failures: int) -> float:
        """After so many losses before ready in a row (one at least), at this run's pace."""
        return self.scaled(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    def at_least(self, took: Elapsed, least_s: float) -> Held:
        """`least_s` is already scaled."""
        if took.at_most_s < _EARLY * least_s:
            return "broken"
        return "kept" if took.at_least_s >= _SHORT * least_s else "undecided"

    def promptly(self, took: Elapsed, most_s: float) -> Held:
        """`most_s` at pace 1. Something prompt, on a machine that may be busy."""
        allowed_s = self.scaled(most_s)
        if took.at_least_s > allowed_s + BUSY_S:
            return "broken"
        if min(took.at_most_s, took.likely_most_s) <= allowed_s + BUSY_S:
            return "kept"
        return "undecided"
