"""When the controller itself stalled or slept, from its own health records.

A deadline that ran out during a stall says nothing of the target: the rig did not read in time what had arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from rig.analysis.firsts import Firsts
from rig.analysis.intake.attempts import Bools, Rows, by_deadline
from rig.analysis.intake.ticks import Health, health_row, healths
from rig.journal.records import AnyRecord, Own, RequestEnded

STALL_S: Final = 1.0
"""From this event-loop lag on, a deadline that ran out is in doubt (at pace 1)."""
LEAST_STALL_S: Final = 0.25
"""The least threshold, at any pace: a busy machine always lags a little."""
SLEPT_S: Final = 2.0
"""When wall clock and monotonic clock drift apart by this much, the machine slept, or its clock was set."""
MAX_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Stall:
    """A stall somewhere in [from_t, to_t]."""

    from_t: float
    to_t: float
    length_s: float
    slept: bool = False


class Stalls:
    """The stalls of a run: the first 10,000 are kept; `count` and `total_s` are of all."""

    def __init__(self, pace: float) -> None:
        self._threshold_s = max(STALL_S / pace, LEAST_STALL_S)
        self._drift_s: float | None = None
        self.kept: list[Stall] = Firsts(MAX_KEPT)
        self.count = 0
        self.total_s = 0.0
        self.observed_s = 0.0
        self.records = 0
        self.lag_max_s = 0.0
        self.cpu_max_percent = 0.0
        self.rss_max_bytes = 0
        self.open_files_max = 0

    def take(self, rows: Health) -> None:
        """At least one row, in the order of writing."""
        lag_s, drift_s = rows["lag_max_s"], rows["wall_drift_s"]
        self.records += len(rows)
        self.observed_s += float(rows["interval_s"].sum())
        self.lag_max_s = max(self.lag_max_s, float(lag_s.max()))
        self.cpu_max_percent = max(self.cpu_max_percent, float(rows["cpu_percent"].max()))
        self.rss_max_bytes = max(self.rss_max_bytes, int(rows["rss_bytes"].max()))
        self.open_files_max = max(self.open_files_max, int(rows["open_files"].max()))
        before_s = drift_s[0] if self._drift_s is None else self._drift_s
        drifted_s = np.abs(np.diff(drift_s, prepend=before_s))
        self._drift_s = float(drift_s[-1])
        slept = drifted_s >= SLEPT_S
        for at in np.flatnonzero((lag_s >= self._threshold_s) | slept).tolist():
            to_t, length_s = float(rows["t"][at]), float(max(lag_s[at], drifted_s[at]))
            self._keep(Stall(to_t - float(rows["interval_s"][at]), to_t, length_s, bool(slept[at])))

    def _keep(self, stall: Stall) -> None:
        self.count += 1
        self.total_s += stall.length_s
        self.kept.append(stall)

    def feed(self, record: AnyRecord) -> None:
        """Take a single record; all but the rig's own health are ignored."""
        if isinstance(record, Own):
            self.take(healths([health_row(record)]))

    def may_have_ended(self, end: RequestEnded) -> bool:
        """Whether a stall makes the end of this request void, see `voids`."""
        return by_deadline(end) and self._across(end.started_t, end.ended_t)

    def voids(self, rows: Rows) -> Bools:
        """Mask of the outcomes that say nothing of the target: the rig itself failed, or it stalled across the moment
        at which its own deadline decided.

        A sleep anywhere within the request makes it void as well: peers give up a connection that nobody reads. A stall
        can void only losses by the rig's own deadlines, and its connect time-outs.
        """
        found = rows.own_failure.copy()
        if self.kept:
            for at in np.flatnonzero(rows.by_deadline).tolist():
                found[at] |= self._across(float(rows.started_t[at]), float(rows.ended_t[at]))
        return found

    def _across(self, started_t: float, ended_t: float) -> bool:
        for stall in reversed(self.kept):
            if stall.to_t < started_t:
                return False
            decided = stall.from_t <= ended_t <= stall.to_t + stall.length_s
            if decided or (stall.slept and stall.from_t <= ended_t):
                return True
        return False
