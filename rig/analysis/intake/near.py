"""Finds which of many spans of time may overlap a window, without a look at each span."""

from __future__ import annotations

import numpy as np

from rig.analysis.intake.attempts import Bools, Floats


class Near:
    """Spans [from_t, to_t], roughly in order, as requests are that are sorted by their ends."""

    def __init__(self, from_t: Floats, to_t: Floats) -> None:
        self.from_t = from_t
        self.to_t = to_t
        self._ended_by = np.maximum.accumulate(to_t)  # no span up to here ends later
        self._begun_by = np.minimum.accumulate(from_t[::-1])[::-1]  # no span from here on begins earlier

    def __bool__(self) -> bool:
        return len(self.from_t) > 0

    @property
    def first_t(self) -> float:
        return float(self._begun_by[0])

    @property
    def last_t(self) -> float:
        return float(self._ended_by[-1])

    def reach(self, from_t: float, to_t: float) -> slice:
        """The slice outside of which no span overlaps [from_t, to_t]."""
        return slice(int(np.searchsorted(self._ended_by, from_t)), int(np.searchsorted(self._begun_by, to_t, "right")))

    def meet(self, reach: slice, from_t: float, to_t: float) -> Bools:
        """Mask over the slice: the spans that overlap [from_t, to_t]."""
        return (from_t <= self.to_t[reach]) & (self.from_t[reach] <= to_t)
