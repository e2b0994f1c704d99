"""Everything about the keeper that the records of a run hold, taken in one by one; stories when they have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.intake.ticks import Index
from rig.analysis.recovery.reigns import Reigns
from rig.journal.records import AnyRecord, ApiCall
from rig.targets.exo.keeper.eventlog import EventLogs
from rig.targets.exo.keeper.rules import IN_FLIGHT_S, Rules
from rig.targets.exo.keeper.story import Story, tell
from rig.targets.exo.keeper.unread import Unread
from rig.targets.exo.keeper.viewlog import ViewLogs

MAX_CALLS: Final = 2000


@dataclass
class KeeperTape:
    """`reigns` take in each record before this does."""

    rules: Rules
    reigns: Reigns
    calls: list[ApiCall] = field(default_factory=lambda: Firsts[ApiCall](MAX_CALLS))
    end_t: float = 0.0

    def __post_init__(self) -> None:
        self.events = EventLogs(self.reigns)
        self.views = ViewLogs(self.reigns)
        self.unread = Unread(self.reigns)

    def indices(self, run: Sequence[Index]) -> None:
        """How far each node's log had come."""
        if run:
            self.end_t = max(self.end_t, run[-1][2])
            self.events.indices(run)
            self.views.heard(run)

    def feed(self, record: AnyRecord) -> None:
        """All others."""
        self.end_t = max(self.end_t, record.t)
        self.events.feed(record)
        self.views.feed(record)
        self.unread.feed(record)
        if isinstance(record, ApiCall):
            self.calls.append(record)

    def stories(self) -> list[Story]:
        """Sessions by their logs first, then reigns by views where no log was read. May be asked for at any time."""
        period_s, hand_s = self.rules.report_s, self.rules.scaled(IN_FLIGHT_S)
        read = self.events.chronicles(period_s)
        seen = self.views.chronicles(self.events.reigns_read(), period_s, self.end_t)
        return [tell(chronicle, self.calls, hand_s) for chronicle in (*read, *seen)]
