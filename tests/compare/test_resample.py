"""Medians and ratios with intervals."""

from __future__ import annotations

import math
import random

import pytest

from rig.compare.ranks import Stratum
from rig.compare.resample import median_of, ratio_of_medians, typical_ratio


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = random.Random(2)
    held = 0
    for _ in range(100):
        found = median_of([rng.lognormvariate(0, 0.5) for _ in range(40)])
        assert found is not None
        held += found.low <= 1.0 <= found.high
    assert held >= 88


def test_it_repeats_to_the_digit() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 9.0]
    assert median_of(values) == median_of(values)


def test_one_value_is_its_own_interval_and_none_has_none() -> None:
    found = median_of([3.0])
    assert found is not None
    assert (found.value, found.low, found.high) == (3.0, 3.0, 3.0)
    assert median_of([]) is None
    assert ratio_of_medians([], [1.0]) is None
    assert typical_ratio([Stratum([], [1.0])]) is None


def test_what_never_ended_makes_medians_infinite_not_wrong() -> None:
    found = median_of([1.0, 2.0, math.inf, math.inf, math.inf])
    assert found is not None
    assert found.value == math.inf
    assert found.low < math.inf
    few = median_of([1.0, 2.0, 3.0, math.inf])
    assert few is not None
    assert few.value == 2.5


def test_ratios() -> None:
    base, head = [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]
    plain = ratio_of_medians(base, head)
    assert plain is not None
    assert plain.value == 2.0
    assert plain.low < 2.0 < plain.high
    never = ratio_of_medians([math.inf] * 3, [math.inf] * 3)
    assert never is not None
    assert never.value == 1.0


def test_the_typical_ratio_compares_within_strata() -> None:
    """Each kind takes 1.5 times as long; the mixture of kinds is another in each run."""
    rng = random.Random(4)
    strata = [
        Stratum(
            [centre * rng.lognormvariate(0, 0.1) for _ in range(base)],
            [1.5 * centre * rng.lognormvariate(0, 0.1) for _ in range(head)],
        )
        for centre, base, head in ((1.0, 20, 5), (30.0, 5, 20))
    ]
    found = typical_ratio(strata)
    assert found is not None
    assert found.value == pytest.approx(1.5, rel=0.05)
    assert found.low > 1.3
    assert found.high < 1.7
