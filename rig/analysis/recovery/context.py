"""What requests and recoveries are judged against, fed record by record in the order of the journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rig.analysis.intake.attempts import Bools, Rows
from rig.analysis.intake.ticks import Health, Index, handed_over
from rig.analysis.recovery.faults import Fault, FaultLog, Window
from rig.analysis.recovery.sightings import Sightings
from rig.analysis.recovery.stalls import Stalls
from rig.analysis.recovery.windows import Windows
from rig.analysis.settings import Settings
from rig.journal.records import AnyRecord, FaultChanged, LockLost, Reachability, Unwedged

HORIZON_S: Final = 5.0
"""How late a record about a moment may be written, apart from those of a fault that is known to be going on."""


class Context:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.faults = FaultLog()
        self.windows = Windows(
            self.faults,
            tolerance_s=settings.tolerance_s,
            lead_s=settings.lead_s,
            settle_s=settings.settle_s,
            unseen_s=2 * settings.sustained_s,
        )
        self.sightings = Sightings()
        self.stalls = Stalls(settings.pace)
        self.unwedged: dict[int, list[Unwedged]] = {}
        self.unlocked_t = math.inf  # since when another rig may have been at work
        self.now_t = 0.0  # of the latest record

    def pass_to(self, t: float) -> None:
        """Records of requests, which are not fed, were written up to `t`."""
        self.now_t = max(self.now_t, t)

    def forget(self, before_t: float) -> None:
        """Let go of faults and windows that were over by then."""
        for number in self.faults.forget(before_t):
            self.unwedged.pop(number, None)
        self.windows.forget(before_t)

    def feed(self, record: AnyRecord) -> None:
        self.pass_to(record.t)
        if handed_over(record, self.health, self.indices):
            return
        match record:
            case Reachability():
                self.windows.rejoins.see(record)
            case FaultChanged():
                self.windows.changed(self.faults.feed(record), record.at_t)
            case Unwedged():
                self.unwedged.setdefault(record.fault, []).append(record)
                self.windows.unwedged(record)
            case LockLost():
                self.unlocked_t = min(self.unlocked_t, record.since_t)
            case _:
                pass
        self.sightings.feed(record)

    def restarts(self, fault: Fault) -> Window | None:
        """From the first restart by which the rig unwedged the target after this fault to the end of the last."""
        records = self.unwedged.get(fault.number)
        if not records:
            return None
        return Window(min(record.started_t for record in records), max(record.ended_t for record in records))

    def voids(self, rows: Rows) -> Bools:
        """Boolean mask of the failures that say nothing of the target: the rig itself stalled, or another rig may have
        been at work on its nodes. A completed request is never void.
        """
        return self.stalls.voids(rows) | (~rows.ok & (rows.ended_t >= self.unlocked_t))

    def health(self, rows: Health) -> None:
        self.stalls.take(rows)

    def indices(self, run: Sequence[Index]) -> None:
        self.windows.rejoins.indices(run)
