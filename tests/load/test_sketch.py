from __future__ import annotations

import math
from random import Random

import pytest

from rig.load.sketch import RELATIVE_ERROR, GapSketch, LogSketch


@pytest.mark.parametrize("error", [RELATIVE_ERROR, 0.005])
def test_quantiles_are_within_the_relative_error(error: float) -> None:
    rng = Random(3)
    values = sorted(rng.lognormvariate(-4, 1.5) for _ in range(5000))
    sketch = LogSketch(error)
    for value in values:
        sketch.add(value)
    for share in (0.01, 0.1, 0.5, 0.9, 0.99, 1.0):
        exact = values[max(1, math.ceil(share * len(values))) - 1]
        found = sketch.quantile(share)
        assert found is not None
        assert abs(found - exact) <= error * exact * 1.0001


def test_what_never_ended_lies_above_all_and_changes_nothing_where_there_is_none() -> None:
    for count in range(1, 300):
        sketch = LogSketch()
        for number in range(count):
            sketch.add(1.1**number)  # each in a bucket of its own
        of_these = [sketch.quantile((rank - 0.5) / count) for rank in range(1, count + 1)]
        for infinite in (0, 1, 7):
            ranks = [math.ceil(share * (count + infinite)) for share in (0.5, 0.9, 0.99)]
            wanted = [of_these[rank - 1] if rank <= count else math.inf for rank in ranks]
            assert sketch.quantiles((0.5, 0.9, 0.99), infinite=infinite) == wanted, (count, infinite)
    assert LogSketch().quantiles((0.5,), infinite=2) == [math.inf]


def test_buckets_are_bounded() -> None:
    sketch = GapSketch()
    rng = Random(4)
    for _ in range(20_000):
        sketch.add(10 ** rng.uniform(-12, 12))
    sketch.add(0.0)
    sketch.add(-1.0)
    assert len(sketch.counts) <= 580
    assert sum(sketch.counts.values()) == 20_002


def test_what_was_written_is_merged_to_the_same_quantiles() -> None:
    one, other, both = GapSketch(), GapSketch(), GapSketch()
    for number in range(1, 1000):
        (one if number % 3 else other).add(number / 1000)
        both.add(number / 1000)
    merged = GapSketch()
    merged.merge(one.record())
    merged.merge(other.record())
    assert merged.counts == both.counts
    assert merged.quantiles((0.5, 0.99)) == both.quantiles((0.5, 0.99))


def test_an_empty_sketch_has_no_quantiles() -> None:
    assert GapSketch().quantiles((0.0, 0.5, 1.0)) == [None, None, None]
    assert GapSketch().record() == {}
