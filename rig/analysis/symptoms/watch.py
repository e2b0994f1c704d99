"""All that is watched for beside requests and recoveries, record by record; each reducer sees only its own kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.answers.watch import AnswerWatch
from rig.analysis.firsts import Firsts
from rig.analysis.intake.ticks import Health, Index, handed_over
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.judged import judged_of
from rig.analysis.recovery.reigns import Reigns
from rig.analysis.symptoms.blind import Blind
from rig.analysis.symptoms.calm import Calm
from rig.analysis.symptoms.elections import ElectionWatch
from rig.analysis.symptoms.looking import Looking
from rig.analysis.symptoms.memory import MemoryWatch
from rig.analysis.symptoms.processes import ProcessWatch
from rig.analysis.symptoms.speed import SpeedWatch
from rig.analysis.symptoms.views import ViewWatch
from rig.journal.records import (
    AnswerMalformed,
    AnyRecord,
    ApiCall,
    CanaryAnswered,
    EventLogRead,
    EventSeen,
    Expected,
    FaultChanged,
    Finding,
    Looked,
    MasterSeen,
    NodeMemory,
    NodeProcesses,
    PhaseStarted,
    Reachability,
    Unwedged,
    ViewChanged,
)

MAX_EXPECTED: Final = 2000
Feed = Callable[[AnyRecord], None]


@dataclass
class Watch:
    """`embedded` is the run's; `load_end_t` is there once `finish` was called. `context` is fed each record first."""

    context: Context
    embedded: bool
    expected: list[Expected] = field(default_factory=lambda: Firsts[Expected](MAX_EXPECTED))
    load_end_t: float = 0.0

    def __post_init__(self) -> None:
        settings = self.context.settings
        self.judged = judged = judged_of(settings.target)
        pace = settings.pace
        self.reigns = Reigns()
        self.own = None if judged.watch is None else judged.watch(self.context, self.reigns)
        self.calm = Calm(pace)
        self.views = ViewWatch(self.calm, self.reigns, judged)
        self.elections = ElectionWatch(self.calm)
        self.processes = ProcessWatch(pace, judged)
        self.memory = MemoryWatch(own_word=not self.embedded, workers=judged.workers, pace=pace)
        self.speed = SpeedWatch()
        self.answers = AnswerWatch()
        self.blind = Blind()
        self.looking = Looking()
        self._drained = False
        self.seen_t = 0.0  # of the latest record, told from outside
        own: list[Feed] = [] if self.own is None else [self.own.feed]
        state = [self.reigns.feed, *own, self.calm.feed, self.views.feed, self.elections.feed, self.memory.feed]
        self._routes: dict[type, list[Feed]] = {
            ViewChanged: [
                self.reigns.feed,
                *own,
                self.views.feed,
                self.memory.feed,
                self.processes.feed,
                self.answers.feed,
            ],
            Reachability: [self.views.feed, *own, self.answers.feed],
            CanaryAnswered: [self.answers.feed],
            AnswerMalformed: [self.answers.feed],
            MasterSeen: state,
            FaultChanged: [*state, self.answers.feed],
            PhaseStarted: [self.calm.feed, self.memory.feed, self.answers.feed, self._phase],
            Unwedged: [self.calm.feed, self.processes.feed],
            EventSeen: own,
            EventLogRead: own,
            ApiCall: own,
            NodeMemory: [self.memory.feed],
            NodeProcesses: [self.processes.feed, self.memory.feed],
            Expected: [self._expect],
            Looked: [self.blind.feed, self.looking.feed],
            Finding: [self.blind.feed, *own],
        }

    def feed(self, record: AnyRecord) -> None:
        """All but those of requests."""
        if handed_over(record, self._health, self.indices):
            return
        for feed in self._routes.get(type(record), ()):
            feed(record)

    def look(self, rows: Health) -> None:
        """Time has passed."""
        times: list[float] = rows["t"].tolist()
        self.views.look(*times)
        self.elections.look(*times)

    def indices(self, run: Sequence[Index]) -> None:
        if self.own is not None:
            self.own.indices(run)

    def finish(self, end_t: float) -> None:
        """No record follows."""
        if not self._drained:
            self.load_end_t = self.seen_t
            self.views.finish(end_t)
        if self.own is not None:
            self.own.finish(end_t)

    def _health(self, rows: Health) -> None:
        self.speed.health(rows)
        self.look(rows)

    def _phase(self, record: AnyRecord) -> None:
        if isinstance(record, PhaseStarted) and record.phase in ("drain", "end") and not self._drained:
            self._drained = True
            self.load_end_t = self.seen_t
            self.views.finish(record.t)

    def _expect(self, record: AnyRecord) -> None:
        if isinstance(record, Expected):
            self.expected.append(record)
