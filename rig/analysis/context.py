"""Everything that requests and recoveries are judged against, fed record by record in the order of the journal."""

from __future__ import annotations

from typing import Final

from rig.analysis.faults import FaultLog
from rig.analysis.routes import Routes
from rig.analysis.settings import Settings
from rig.analysis.sightings import Sightings
from rig.analysis.stalls import Stalls
from rig.analysis.windows import Windows
from rig.journal.records import (
    AnyRecord,
    FaultChanged,
    MasterSeen,
    Own,
    Reachability,
    Unwedged,
    ViewChanged,
)

HORIZON_S: Final = 5.0
"""How late a record about a moment may be written, apart from those of a fault that is known to be going on."""


class Context:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.faults = FaultLog()
        self.windows = Windows(
            self.faults, tolerance_s=settings.tolerance_s, settle_s=settings.settle_s, unseen_s=2 * settings.sustained_s
        )
        self.sightings = Sightings()
        self.stalls = Stalls(settings.pace)
        self.unwedged: dict[int, list[Unwedged]] = {}
        self.now_t = 0.0  # of the latest record
        self.routes: Routes = dict.fromkeys(
            (ViewChanged, Reachability, FaultChanged, Unwedged, MasterSeen, Own), [self.feed]
        )

    def pass_to(self, t: float) -> None:
        """Records of requests, which are not fed, were written up to then."""
        if t > self.now_t:
            self.now_t = t

    def feed(self, record: AnyRecord) -> None:
        self.pass_to(record.t)
        if type(record) is Own:
            self.stalls.feed(record)
            return
        match record:
            case ViewChanged(facet="event_index"):
                self.windows.rejoins.index(record)
                return
            case Reachability():
                self.windows.rejoins.see(record)
            case FaultChanged():
                self.windows.changed(self.faults.feed(record), record.at_t)
            case Unwedged():
                self.unwedged.setdefault(record.fault, []).append(record)
                self.windows.unwedged(record)
            case _:
                pass
        self.sightings.feed(record)
