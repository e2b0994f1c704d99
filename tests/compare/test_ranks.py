"""The rank test against counting by hand, and against itself where two ways lead to one figure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from rig.compare import ranks
from rig.compare.ranks import RankTest, Stratum, doubled_midranks, rank_test


def outcome(*strata: Stratum) -> RankTest:
    found = rank_test(strata)
    assert found is not None
    return found


def by_hand(base: Sequence[float], head: Sequence[float]) -> float:
    """The share of all ways to deal the values in which the head's U is at least as large."""

    def u(one: Sequence[float], other: Sequence[float]) -> float:
        return sum((a > b) + (a == b) / 2 for a in one for b in other)

    values, observed = [*head, *base], u(head, base)
    deals = list(combinations(range(len(values)), len(head)))
    as_large = 0
    for deal in deals:
        chosen = [values[index] for index in deal]
        rest = [value for index, value in enumerate(values) if index not in deal]
        as_large += u(chosen, rest) >= observed
    return as_large / len(deals)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
        ([1.0, 5.0, 3.0], [4.0, 2.0]),
        ([1.0, 1.0, 2.0], [1.0, 2.0, 2.0, 3.0]),
        ([1.0, math.inf], [math.inf, math.inf, 0.5]),
        ([7.0, 7.0, 7.0], [7.0, 7.0]),
        ([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 3.0, 3.0]),
    ],
)
def test_exact_chances_are_those_of_counting(base: list[float], head: list[float]) -> None:
    found = outcome(Stratum(base, head))
    assert found.exact
    assert found.p_worse == pytest.approx(by_hand(base, head))
    assert found.p_better == pytest.approx(by_hand(head, base))


def test_strata_are_dealt_apart() -> None:
    """Two strata: the chances of their sums, counted over all pairs of deals."""
    one, other = Stratum([1.0, 2.0], [3.0, 4.0]), Stratum([5.0, 9.0, 6.0], [8.0])
    # U is 4 of 4 in the first (1 deal of 6), and 2 of 3 in the second (4 deals: 0, 1, 2, 3); the sum is 6 or more
    # in (4, 2), (4, 3) and (3, 3): of 24 pairs of deals 1 + 1 + 1.
    assert outcome(one, other).p_worse == pytest.approx(3 / 24)


def test_a_difference_between_kinds_is_none_between_runs() -> None:
    """The head had more of the slow kind by chance: pooled, it would look slower."""
    fast, slow = [1.0, 1.1, 1.2], [50.0, 51.0, 52.0]
    apart = outcome(Stratum(fast * 3, fast), Stratum(slow, slow * 3))
    pooled = outcome(Stratum([*fast * 3, *slow], [*fast, *slow * 3]))
    assert apart.longer == 0.5
    assert apart.p_worse > 0.4
    assert pooled.p_worse < 0.05


def test_what_never_ended_is_the_longest() -> None:
    assert outcome(Stratum([9e9] * 5, [math.inf] * 5)).p_worse == pytest.approx(1 / math.comb(10, 5))
    assert outcome(Stratum([math.inf] * 5, [math.inf] * 5)).longer == 0.5


def test_midranks_share_ties() -> None:
    assert doubled_midranks([5.0, 1.0, 5.0, 9.0]) == [5, 2, 5, 8]


def test_the_normal_approximation_meets_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    strata = [
        Stratum([round(rng.expovariate(1), 1) for _ in range(14)], [round(rng.expovariate(0.7), 1) for _ in range(13)])
        for _ in range(4)
    ]
    exact = outcome(*strata)
    monkeypatch.setattr(ranks, "MAX_EXACT", 0)
    normal = outcome(*strata)
    assert exact.exact
    assert not normal.exact
    assert normal.p_worse == pytest.approx(exact.p_worse, rel=0.05)
    assert normal.p_better == pytest.approx(exact.p_better, rel=0.05)


def test_equal_values_prove_nothing_however_many() -> None:
    found = outcome(Stratum([0.0] * 200, [0.0] * 300))
    assert (found.p_worse, found.p_better, found.longer) == (1.0, 1.0, 0.5)


def test_nothing_to_compare() -> None:
    assert rank_test([Stratum([1.0], []), Stratum([], [2.0])]) is None


def test_chances_are_honest_when_nothing_changed() -> None:
    """Of p values under no difference, no more than 5 % may lie below 5 %."""
    rng = random.Random(5)
    below = 0
    for _ in range(400):
        strata = [Stratum([rng.random() for _ in range(6)], [rng.random() for _ in range(6)]) for _ in range(3)]
        below += outcome(*strata).p_worse <= 0.05
    assert 4 <= below <= 32  # 20 expected; four standard deviations either way
