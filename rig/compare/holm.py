"""Many figures are compared at once, and by chance alone some would stand out: Holm's procedure, with weights. Pure.

The chance that anything at all is called worse when nothing is stays below `alpha`, whatever the figures have to do
with each other. A figure with a larger weight may spend more of `alpha`: it is found sooner, the others a little later.
"""

from __future__ import annotations

from collections.abc import Sequence


def rejected(p_values: Sequence[float], weights: Sequence[float], alpha: float) -> list[bool]:
    """Which of the hypotheses `no difference` are given up. Weights are positive; only their proportions count."""
    left = set(range(len(p_values)))
    found = [False] * len(p_values)
    while left:
        total = sum(weights[index] for index in left)
        index = min(left, key=lambda one: (p_values[one] / weights[one], one))
        if p_values[index] > alpha * weights[index] / total:
            return found
        found[index] = True
        left.discard(index)
    return found


def adjusted(p_values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """For each the smallest `alpha` at which it would be given up."""
    left = set(range(len(p_values)))
    found = [1.0] * len(p_values)
    highest = 0.0
    while left:
        total = sum(weights[index] for index in left)
        index = min(left, key=lambda one: (p_values[one] / weights[one], one))
        highest = max(highest, min(p_values[index] * total / weights[index], 1.0))
        found[index] = highest
        left.discard(index)
    return found
