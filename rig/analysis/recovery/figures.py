"""Medians and worst cases of durations, some of which never ended. Pure.

A duration that never ended is not dropped: it counts as longer than every one that did. A figure that falls on one is a
lower bound: the time for which it was watched, or the longest duration that ended, whichever is longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds. `above`: a lower bound."""

    value_s: float
    above: bool = False


@dataclass(frozen=True, slots=True)
class Distribution:
    count: int
    median: Figure | None
    p90: Figure | None
    worst: Figure | None


def distribution(ended: Sequence[float], not_ended: Sequence[float] = ()) -> Distribution:
    """`ended` are durations in seconds; `not_ended` are the times for which the others were watched."""
    longest_s = max(ended, default=-math.inf)
    figures = [Figure(value) for value in sorted(ended)]
    figures += [Figure(max(value, longest_s), above=True) for value in sorted(not_ended)]
    if not figures:
        return Distribution(0, None, None, None)
    return Distribution(len(figures), _median(figures), figures[math.ceil(0.9 * len(figures)) - 1], figures[-1])


def _median(figures: Sequence[Figure]) -> Figure:
    """The mean of the two in the middle; a lower bound when one of them never ended."""
    low, high = figures[(len(figures) - 1) // 2], figures[len(figures) // 2]
    return Figure((low.value_s + high.value_s) / 2, above=low.above or high.above)
