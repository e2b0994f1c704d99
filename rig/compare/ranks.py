"""The rank test: are the durations of one run longer than those of another, kind of fault by kind of fault? Pure.

Mann and Whitney's U, summed over strata, so that runs whose faults were of other kinds by chance still compare like
with like. Ranks need no assumption about the shape of the times, and what never ended is simply the longest there is.
With up to 50 values a stratum the distribution of U is exact, ties included; beyond that the normal approximation with
the correction for ties is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

MAX_EXACT: Final = 50  # values in a stratum: C(50, 25) is still a whole number of a double
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stratum:
    base: Sequence[float]
    head: Sequence[float]


@dataclass(frozen=True, slots=True)
class RankTest:
    """`p_worse`: how likely a head at least so much longer would be if both were alike; `p_better` the other way.

    `longer`: the share of pairs in which the head's is the longer one, ties counted half.
    """

    p_worse: float
    p_better: float
    longer: float
    exact: bool


def rank_test(strata: Sequence[Stratum]) -> RankTest | None:
    """None where no stratum has values of both runs."""
    usable = [stratum for stratum in strata if stratum.base and stratum.head]
    if not usable:
        return None
    doubled = [_doubled_u(stratum) for stratum in usable]
    pairs = sum(len(stratum.base) * len(stratum.head) for stratum in usable)
    observed = sum(doubled)
    if all(len(stratum.base) + len(stratum.head) <= MAX_EXACT for stratum in usable):
        chances = _chances(usable)
        worse, better = float(chances[observed:].sum()), float(chances[: observed + 1].sum())
        return RankTest(min(worse, 1.0), min(better, 1.0), observed / (2 * pairs), exact=True)
    spread = math.sqrt(sum(_variance(stratum) for stratum in usable))
    off = observed / 2 - pairs / 2
    if spread == 0:
        return RankTest(1.0, 1.0, 0.5, exact=False)
    return RankTest(_tail((off - 0.5) / spread), _tail((-off - 0.5) / spread), observed / (2 * pairs), exact=False)


def _tail(z: float) -> float:
    """P(Z >= z) of the standard normal distribution."""
    return math.erfc(z / math.sqrt(2)) / 2


def doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each from 1, equal values sharing the mean of theirs: whole numbers, also with ties."""
    first: dict[float, int] = {}
    count = Counter(values)
    rank = 1
    for value in sorted(count):
        first[value] = rank
        rank += count[value]
    return [2 * first[value] + count[value] - 1 for value in values]


def _doubled_u(stratum: Stratum) -> int:
    ranks = doubled_midranks([*stratum.head, *stratum.base])
    heads = len(stratum.head)
    return sum(ranks[:heads]) - heads * (heads + 1)


def _chances(strata: Sequence[Stratum]) -> Floats:
    """Of each value of twice U, under exchange of the runs within strata."""
    total = np.ones(1)
    for stratum in strata:
        total = np.convolve(total, _stratum_chances(stratum))
    return total


def _stratum_chances(stratum: Stratum) -> Floats:
    """By counting, for every sum, the choices of as many ranks as the head has."""
    ranks, heads = doubled_midranks([*stratum.head, *stratum.base]), len(stratum.head)
    largest = sum(sorted(ranks)[-heads:])
    ways = np.zeros((heads + 1, largest + 1))
    ways[0, 0] = 1
    for taken, rank in enumerate(ranks):
        for size in range(min(taken + 1, heads), 0, -1):
            ways[size, rank:] += ways[size - 1, : largest + 1 - rank]
    least = heads * (heads + 1)  # U = 0
    found = ways[heads, least:]
    width = 2 * len(stratum.base) * heads + 1
    padded = np.zeros(width)
    padded[: len(found)] = found
    return padded / math.comb(len(ranks), heads)


def _variance(stratum: Stratum) -> float:
    base, head = len(stratum.base), len(stratum.head)
    total = base + head
    ties = sum(count**3 - count for count in Counter([*stratum.base, *stratum.head]).values())
    return base * head / 12 * (total + 1 - ties / (total * (total - 1)))
