"""Which of many spans of time may meet a window, without a look at each."""

from __future__ import annotations

import numpy as np

from rig.analysis.intake.attempts import Bools, Floats


class Near:
    """Spans [from_t, to_t] that are roughly in order, as requests are in that of their ends."""

    def __init__(self, from_t: Floats, to_t: Floats) -> None:
        self.from_t = from_t
        self.to_t = to_t
        self._ended_by = np.maximum.accumulate(to_t)  # none up to here ends later
        self._begun_by = np.minimum.accumulate(from_t[::-1])[::-1]  # none from here on begins earlier

    def __bool__(self) -> bool:
        return len(self.from_t) > 0

    @property
    def first_t(self) -> float:
        return float(self._begun_by[0])

    @property
    def last_t(self) -> float:
        return float(self._ended_by[-1])

    def reach(self, from_t: float, to_t: float) -> slice:
        """Outside of it none meets [from_t, to_t]."""
        return slice(int(np.searchsorted(self._ended_by, from_t)), int(np.searchsorted(self._begun_by, to_t, "right")))

    def meet(self, reach: slice, from_t: float, to_t: float) -> Bools:
        """Which of those in reach do."""
        return (from_t <= self.to_t[reach]) & (self.from_t[reach] <= to_t)
