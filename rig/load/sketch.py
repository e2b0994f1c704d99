"""A sketch of many durations in few buckets: quantiles with a bounded relative error, memory bounded whatever comes.

Bucket `i` holds what is in (g^(i-1), g^i] with g = (1 + e) / (1 - e): its middle is at most the share `e` away from
anything in it (Masson, Rim, Lee: DDSketch, 2019). Durations are held to 1 µs … 10,000 s, so that there are at most
about 23 / ln g buckets (580 at 2 %). Two sketches of the same error are merged by adding their counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

RELATIVE_ERROR: Final = 0.02
SHORTEST_S: Final = 1e-6
LONGEST_S: Final = 1e4


class LogSketch:
    """Counts by logarithmic bucket. `counts` is keyed by bucket number."""

    __slots__ = ("_gamma", "_per_log", "counts")

    def __init__(self, relative_error: float = RELATIVE_ERROR) -> None:
        self._gamma = (1 + relative_error) / (1 - relative_error)
        self._per_log = 1 / math.log(self._gamma)
        self.counts: dict[int, int] = {}

    def add(self, value_s: float, count: int = 1) -> None:
        held = SHORTEST_S if value_s < SHORTEST_S else min(value_s, LONGEST_S)
        bucket = math.ceil(math.log(held) * self._per_log)
        self.counts[bucket] = self.counts.get(bucket, 0) + count

    def add_all(self, values_s: NDArray[np.float64]) -> None:
        """Many at once."""
        held = np.clip(values_s, SHORTEST_S, LONGEST_S)
        found, counts = np.unique(np.ceil(np.log(held) * self._per_log).astype(np.int64), return_counts=True)
        for bucket, count in zip(found.tolist(), counts.tolist(), strict=True):
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    def add_counts(self, buckets: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Parts of what other sketches of the same error wrote, as columns."""
        found, places = np.unique(buckets, return_inverse=True)
        sums = np.bincount(places, weights=counts, minlength=len(found))
        for bucket, count in zip(found.tolist(), sums.tolist(), strict=True):
            self.counts[bucket] = self.counts.get(bucket, 0) + int(count)

    def merge(self, counts: Mapping[str, int]) -> None:
        """Add what another sketch of the same error wrote with `record`."""
        for key, count in counts.items():
            bucket = int(key)
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    def record(self) -> dict[str, int]:
        """As written to the journal: bucket number as text → count."""
        return {str(bucket): count for bucket, count in sorted(self.counts.items())}

    def quantile(self, share: float) -> float | None:
        """The value below or at which `share` (0 … 1) of the values are, in seconds; None when there are none."""
        return self.quantiles((share,))[0]

    def quantiles(self, shares: Iterable[float], *, infinite: int = 0) -> list[float | None]:
        """The same for each share, of the values and of so many more that never ended: infinity where it is one."""
        count, ordered = sum(self.counts.values()), sorted(self.counts.items())
        total = count + infinite
        ranks = [max(1, math.ceil(share * total)) for share in shares]
        if not total:
            return [None] * len(ranks)
        return [math.inf if rank > count else self._rank(ordered, rank) for rank in ranks]

    def _rank(self, ordered: list[tuple[int, int]], rank: int) -> float:
        seen = 0
        for bucket, count in ordered:
            seen += count
            if seen >= rank:
                return 2 * self._gamma**bucket / (self._gamma + 1)
        raise AssertionError("a rank beyond the number of values")


class GapSketch(LogSketch):
    """The sketch of inter-token gaps in `records.Gaps.sketch`: always at `RELATIVE_ERROR`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(RELATIVE_ERROR)
