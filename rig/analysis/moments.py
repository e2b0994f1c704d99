"""When something happened, as far as is known, and how long after something else. Pure.

Observation gives intervals. What is said of durations holds for every moment inside them: `at_least_s` is the shortest
time that can have passed, `at_most_s` the longest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """It happened in (after_t, by_t], on the run's clock."""

    after_t: float = -math.inf
    by_t: float = math.inf

    def within(self, other: Span) -> Span:
        """What both say. Where they contradict each other, this one is kept."""
        after_t, by_t = max(self.after_t, other.after_t), min(self.by_t, other.by_t)
        return Span(after_t, by_t) if after_t <= by_t else self

    def text(self) -> str:
        if math.isinf(self.by_t):
            return "at a time not known"
        if math.isinf(self.after_t):
            return f"by {self.by_t:.1f} s"
        return f"at {self.after_t:.1f} to {self.by_t:.1f} s"


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Seconds from one moment to a later one.

    `likely_most_s` is by the session's own clock, which stands still while the master does.
    """

    at_least_s: float
    at_most_s: float
    likely_most_s: float = math.inf

    def text(self) -> str:
        if math.isinf(self.at_most_s):
            return f"at least {self.at_least_s:.2f} s"
        return f"{self.at_least_s:.2f} to {self.at_most_s:.2f} s"


def between(first: Span, second: Span) -> Elapsed:
    """The second is known to have come after the first."""
    at_least_s = second.after_t - first.by_t
    at_most_s = second.by_t - first.after_t
    return Elapsed(max(at_least_s, 0.0), max(at_most_s, 0.0))
