from __future__ import annotations

import math

from rig.analysis.recovery.figures import Figure, distribution
from rig.load.sketch import LogSketch


def test_empty() -> None:
    assert distribution([]).count == 0
    assert distribution([]).median is None


def test_all_ended() -> None:
    found = distribution([4.0, 1.0, 2.0, 3.0])
    assert found.median == Figure(2.5)
    assert found.p90 == Figure(4.0)
    assert found.worst == Figure(4.0)


def test_what_never_ended_is_longer_than_everything() -> None:
    found = distribution([1.0, 2.0, 500.0], [240.0])
    assert found.median == Figure(251.0)
    assert found.worst == Figure(500.0, above=True)
    assert distribution([1.0], [240.0]).worst == Figure(240.0, above=True)


def test_a_median_on_what_never_ended_says_above() -> None:
    assert distribution([1.0], [240.0]).median == Figure(120.5, above=True)
    assert distribution([1.0], [240.0, 300.0]).median == Figure(240.0, above=True)


def test_p90_of_ten_is_the_ninth() -> None:
    assert distribution([float(value) for value in range(1, 11)]).p90 == Figure(9.0)


def test_percentiles_with_failures_as_infinite() -> None:
    sketch = LogSketch()
    for _ in range(90):
        sketch.add(1.0)
    p50, p90, p99 = sketch.quantiles((0.5, 0.9, 0.99), infinite=10)
    assert p50 is not None
    assert abs(p50 - 1.0) < 0.03
    assert p90 == p50
    assert p99 == math.inf
    assert LogSketch().quantiles((0.5,), infinite=0) == [None]
    assert LogSketch().quantiles((0.5,), infinite=3) == [math.inf]
