from __future__ import annotations

from rig.analysis.firsts import Firsts


def test_it_keeps_the_first_ones() -> None:
    kept = Firsts[int](2)
    for number in range(4):
        kept.append(number)
    assert kept == [0, 1]
