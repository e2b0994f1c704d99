"""Medians with confidence intervals by bootstrap, from a fixed seed: a comparison repeats to the digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from rig.compare.ranks import Floats, Stratum

SEED: Final = 1
DRAWS: Final = 2000
LEVEL: Final = 0.95
SHORTEST_S: Final = 1e-3
"""Less than this is not told apart: ratios to nothing are no figures."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and where it lies with 95 % confidence; infinite where that is so."""

    value: float
    low: float
    high: float


def median_of(values: Sequence[float]) -> Interval | None:
    """The median, `inf` where the middle one never ended."""
    if not values:
        return None
    return _interval(_median(np.asarray(values)[None, :])[0], _medians(values, np.random.default_rng(SEED)))


def ratio_of_medians(base: Sequence[float], head: Sequence[float]) -> Interval | None:
    """Head over base."""
    if not base or not head:
        return None
    rng = np.random.default_rng(SEED)
    drawn = _ratio(_medians(head, rng), _medians(base, rng))
    value = _ratio(_median(np.asarray(head)[None, :]), _median(np.asarray(base)[None, :]))[0]
    return _interval(value, drawn)


def ratio_of_means(base: Sequence[float], head: Sequence[float]) -> Interval | None:
    """Of counts: head over base, 1 where both are nothing."""
    if not base or not head:
        return None
    rng = np.random.default_rng(SEED)
    drawn = _count_ratio(_means(head, rng), _means(base, rng))
    return _interval(_count_ratio(np.asarray([fmean(head)]), np.asarray([fmean(base)]))[0], drawn)


def _means(values: Sequence[float], rng: np.random.Generator) -> Floats:
    some = np.asarray(values, dtype=float)
    return some[rng.integers(0, len(some), (DRAWS, len(some)))].mean(axis=1)


def _count_ratio(head: Floats, base: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(head == base, 1.0, head / base)


def typical_ratio(strata: Sequence[Stratum]) -> Interval | None:
    """The middle one of the ratios of all pairs within strata (Hodges and Lehmann), head over base."""
    usable = [(np.asarray(s.base, dtype=float), np.asarray(s.head, dtype=float)) for s in strata if s.base and s.head]
    if not usable:
        return None
    rng = np.random.default_rng(SEED)
    value = float(np.median(np.concatenate([_pairs(base, head) for base, head in usable])))
    drawn = [
        float(np.median(np.concatenate([_pairs(_redraw(base, rng), _redraw(head, rng)) for base, head in usable])))
        for _ in range(DRAWS // 4)
    ]
    return _interval(value, np.asarray(drawn))


def _redraw(values: Floats, rng: np.random.Generator) -> Floats:
    return values[rng.integers(0, len(values), len(values))]


def _pairs(base: Floats, head: Floats) -> Floats:
    return _ratio(np.repeat(head, len(base)), np.tile(base, len(head)))


def _ratio(head: Floats, base: Floats) -> Floats:
    """Two that never ended are equal."""
    top, bottom = np.maximum(head, SHORTEST_S), np.maximum(base, SHORTEST_S)
    with np.errstate(invalid="ignore"):
        found = top / bottom
    return np.where(np.isinf(top) & np.isinf(bottom), 1.0, found)


def _medians(values: Sequence[float], rng: np.random.Generator) -> Floats:
    some = np.asarray(values, dtype=float)
    return _median(some[rng.integers(0, len(some), (DRAWS, len(some)))])


def _median(rows: Floats) -> Floats:
    """By row; the mean of the two in the middle, infinite when one of them is."""
    ordered, count = np.sort(rows, axis=1), rows.shape[1]
    return (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2


def _interval(value: float, drawn: Floats) -> Interval:
    ordered = np.sort(drawn)
    edge = (1 - LEVEL) / 2
    low = ordered[math.floor(edge * len(ordered))]
    high = ordered[min(math.ceil((1 - edge) * len(ordered)), len(ordered)) - 1]
    return Interval(float(value), float(low), float(high))
