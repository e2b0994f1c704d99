"""How fast the target serves, in buckets of time, so that its level before and after each fault can be compared.

Memory is bounded: when there are too many buckets, neighbours are put together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rig.analysis.intake.attempts import Floats, Places, Rows
from rig.analysis.intake.ticks import Health
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault, Window
from rig.written import duration

BUCKET_S: Final = 0.5
MAX_BUCKETS: Final = 8192
LEAST_REQUESTS: Final = 20
SLOWER: Final = 2.0
"""Tokens so many times as far apart, or so many times fewer requests, to the end of the run: the level is lost."""
LAGGING: Final = 2.0
"""Where the controller's own lag has grown as much, the machine was busy: nothing is said."""


@dataclass(slots=True)
class Level:
    """Of one model in one stretch of time, `seconds` long (that of a whole window; a bucket's is not said)."""

    seconds: float = 0.0
    completed: int = 0
    gap_s: float = 0.0
    gaps: int = 0

    def add(self, other: Level) -> None:
        self.completed += other.completed
        self.gap_s += other.gap_s
        self.gaps += other.gaps

    @property
    def per_s(self) -> float:
        return self.completed / self.seconds

    @property
    def itl_s(self) -> float | None:
        return self.gap_s / self.gaps if self.gaps else None


@dataclass(slots=True)
class _Bucket:
    levels: dict[str, Level] = field(default_factory=dict[str, Level])
    lag_s: float = 0.0
    lags: int = 0


@dataclass
class SpeedWatch:
    width_s: float = BUCKET_S
    _buckets: dict[int, _Bucket] = field(default_factory=dict[int, _Bucket])

    def health(self, rows: Health) -> None:
        """The controller's own lag."""
        indices, places, counts = self._places(rows["t"])
        lag_s = np.bincount(places, rows["lag_max_s"], len(indices))
        for index, lag, lags in zip(indices, lag_s.tolist(), counts, strict=True):
            bucket = self._buckets[index]
            bucket.lag_s += lag
            bucket.lags += lags

    def take(self, attempts: Rows) -> None:
        """Requests of the load that ended."""
        good = attempts.where(attempts.ok)
        for model in sorted({way.model for way in good.ways}):
            rows = good.where(good.of_model(model))
            self._take(model, rows)

    def _take(self, model: str, rows: Rows) -> None:
        indices, places, counts = self._places(rows.ended_t)
        gap_s = np.bincount(places, rows.floats("gap_sum_s"), len(indices)).tolist()
        gaps = np.bincount(places, rows.rows["gap_count"], len(indices)).tolist()
        for at, index in enumerate(indices):
            level = self._buckets[index].levels.setdefault(model, Level())
            level.add(Level(completed=counts[at], gap_s=gap_s[at], gaps=int(gaps[at])))

    def _places(self, times: Floats) -> tuple[list[int], Places, list[int]]:
        """The buckets of these moments, in the width that they have when there is one for each; which of them each
        moment is in, and how many are in each."""
        for moment_t in (np.unique((times / self.width_s).astype(np.int64)) * self.width_s).tolist():
            self._bucket(moment_t)
        found, places, counts = np.unique(
            (times / self.width_s).astype(np.int64), return_inverse=True, return_counts=True
        )
        return found.tolist(), places, counts.tolist()

    def levels(self, window: Window) -> tuple[dict[str, Level], float]:
        """By model, of the buckets that lie in the window as a whole, and the mean of the controller's worst lags."""
        found: dict[str, Level] = {}
        lag_s, lags = 0.0, 0
        first, last = math.ceil(window.from_t / self.width_s), math.floor(window.to_t / self.width_s)
        for index in range(first, last):
            bucket = self._buckets.get(index)
            if bucket is None:
                continue
            lag_s, lags = lag_s + bucket.lag_s, lags + bucket.lags
            for model, level in bucket.levels.items():
                found.setdefault(model, Level()).add(level)
        for level in found.values():
            level.seconds = (last - first) * self.width_s
        return found, lag_s / lags if lags else 0.0

    def _bucket(self, at_t: float) -> _Bucket:
        if len(self._buckets) >= MAX_BUCKETS:
            self._widen()
        index = int(at_t / self.width_s)
        bucket = self._buckets.get(index)
        if bucket is None:
            bucket = self._buckets[index] = _Bucket()
        return bucket

    def _widen(self) -> None:
        self.width_s *= 2
        old, self._buckets = self._buckets, {}
        for index, bucket in old.items():
            new = self._buckets.setdefault(index // 2, _Bucket())
            new.lag_s += bucket.lag_s
            new.lags += bucket.lags
            for model, level in bucket.levels.items():
                new.levels.setdefault(model, Level()).add(level)


def calm_windows(
    baseline: Window | None, faults: Sequence[Fault], recoveries: Sequence[Recovery], load_end_t: float
) -> list[Window]:
    """The baseline, and from each fault's last recovery to the next strike or the end of the load."""
    struck = sorted((fault.struck_t, fault.number) for fault in faults if fault.struck_t is not None)
    ends: dict[int, float] = {}
    for recovery in recoveries:
        recovered_t = _recovered_t(recovery)
        ends[recovery.fault] = max(ends.get(recovery.fault, recovered_t), recovered_t)
    windows = [] if baseline is None else [Window(baseline.from_t, min(baseline.to_t, load_end_t))]
    untils = [*(strike_t for strike_t, _ in struck[1:]), load_end_t]
    for (_, number), until_t in zip(struck, untils, strict=False):
        from_t = ends.get(number, math.inf)
        if from_t < until_t:
            windows.append(Window(from_t, until_t))
    return windows


def _recovered_t(recovery: Recovery) -> float:
    if recovery.heal_t is None or recovery.recovery_class in ("not recovered", "censored"):
        return math.inf
    return recovery.heal_t + (recovery.sustained_s or 0.0)


@dataclass(frozen=True, slots=True)
class Slower:
    model: str
    from_t: float
    text: str


def slower(speed: SpeedWatch, windows: Sequence[Window]) -> tuple[list[Slower], int]:
    """Models whose level was lost and not regained by the end; and how many windows could be compared."""
    if not windows:
        return [], 0
    base, base_lag_s = speed.levels(windows[0])
    found: list[Slower] = []
    compared = 0
    for model, level in base.items():
        if level.completed < LEAST_REQUESTS:
            continue
        lost: list[Slower] = []
        for window in windows[1:]:
            after, lag_s = speed.levels(window)
            now = after.get(model)
            if now is None or now.completed < LEAST_REQUESTS or lag_s > LAGGING * base_lag_s + 0.02:
                continue
            compared += 1
            text = _slower(level, now)
            lost = (
                []
                if text is None
                else [*lost, Slower(model, window.from_t, f"{model} from {window.from_t:.1f} s: {text}")]
            )
        if len(lost) >= 2:
            found += lost
    return found, compared


def _slower(before: Level, after: Level) -> str | None:
    old, new = before.itl_s, after.itl_s
    if old and new and new > SLOWER * old:
        return f"tokens {duration(new)} apart, {duration(old)} before"
    if after.per_s * SLOWER < before.per_s:
        return f"{after.per_s:.1f} requests a second, {before.per_s:.1f} before"
    return None
