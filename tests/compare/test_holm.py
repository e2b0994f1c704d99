"""Holm's procedure with weights, by literals and by its promise."""

from __future__ import annotations

import random

import pytest

from rig.compare.holm import adjusted, rejected


def test_literals_without_weights() -> None:
    p = [0.010, 0.040, 0.030, 0.005]
    assert rejected(p, [1.0] * 4, 0.05) == [True, False, False, True]
    assert adjusted(p, [1.0] * 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_weight_buys_a_larger_share() -> None:
    p = [0.02, 0.9, 0.9, 0.9]
    assert rejected(p, [1.0] * 4, 0.05) == [False] * 4  # a quarter of 0.05
    assert rejected(p, [1.9, 1.0, 1.0, 1.0], 0.05) == [False] * 4
    assert rejected(p, [2.1, 1.0, 1.0, 1.0], 0.05) == [True, False, False, False]  # above two fifths


def test_what_is_found_gives_its_share_to_the_rest() -> None:
    assert rejected([0.001, 0.02], [1.0, 1.0], 0.03) == [True, True]
    assert rejected([0.5, 0.02], [1.0, 1.0], 0.03) == [False, False]


def test_adjusted_and_rejected_agree() -> None:
    rng = random.Random(7)
    for _ in range(200):
        p = [rng.random() ** 3 for _ in range(6)]
        weights = [rng.choice([0.2, 1.0, 3.0]) for _ in range(6)]
        found, alpha = adjusted(p, weights), rng.choice([0.01, 0.05, 0.2])
        assert rejected(p, weights, alpha) == [value <= alpha for value in found]


def test_nothing_is_called_out_too_often() -> None:
    """20 figures without any difference: any of them is given up in at most alpha of the comparisons."""
    rng = random.Random(8)
    weights = [1.0, *([1 / 19] * 19)]
    out = sum(any(rejected([rng.random() for _ in range(20)], weights, 0.05)) for _ in range(1000))
    assert 25 <= out <= 77  # 50 expected, four standard deviations
