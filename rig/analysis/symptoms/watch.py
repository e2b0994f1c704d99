"""All that is watched for beside requests and recoveries, record by record; each reducer sees only its own kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.answers.watch import AnswerWatch
from rig.analysis.firsts import Firsts
from rig.analysis.intake.ticks import Health, Index, handed_over
from rig.analysis.symptoms.blind import Blind
from rig.analysis.symptoms.calm import Calm
from rig.analysis.symptoms.elections import ElectionWatch
from rig.analysis.symptoms.looking import Looking
from rig.analysis.symptoms.memory import MemoryWatch
from rig.analysis.symptoms.processes import ProcessWatch
from rig.analysis.symptoms.rings import Apart, RingWatch
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
from rig.targets.exo.keeper.rules import Rules
from rig.targets.exo.keeper.statuses import StatusWatch
from rig.targets.exo.keeper.story import Story
from rig.targets.exo.keeper.tape import KeeperTape

MAX_EXPECTED: Final = 2000
Feed = Callable[[AnyRecord], None]


@dataclass
class Watch:
    """`pace` and `embedded` are the run's. `stories`, `apart` and `load_end_t` are there once `finish` was called."""

    pace: float
    embedded: bool
    expected: list[Expected] = field(default_factory=lambda: Firsts[Expected](MAX_EXPECTED))
    stories: list[Story] = field(default_factory=list[Story])
    apart: list[Apart] = field(default_factory=list[Apart])
    load_end_t: float = 0.0

    def __post_init__(self) -> None:
        self.rules = Rules(self.pace)
        self.keeper = KeeperTape(self.rules)
        self.statuses = StatusWatch(self.rules)
        self.calm = Calm(self.pace)
        self.views = ViewWatch(self.calm, self.keeper.reigns)
        self.elections = ElectionWatch(self.calm)
        self.processes = ProcessWatch(self.pace)
        self.rings = RingWatch(self.pace)
        self.memory = MemoryWatch(own_word=not self.embedded, pace=self.pace)
        self.speed = SpeedWatch()
        self.answers = AnswerWatch()
        self.blind = Blind()
        self.looking = Looking()
        self._drained = False
        self.seen_t = 0.0  # of the latest record, told from outside
        state: list[Feed] = [self.keeper.feed, self.calm.feed, self.views.feed, self.elections.feed, self.memory.feed]
        self._routes: dict[type, list[Feed]] = {
            ViewChanged: [
                self.keeper.feed,
                self.statuses.feed,
                self.views.feed,
                self.memory.feed,
                self.processes.feed,
                self.rings.feed,
                self.answers.feed,
            ],
            Reachability: [self.views.feed, self.rings.feed, self.answers.feed],
            CanaryAnswered: [self.answers.feed],
            AnswerMalformed: [self.answers.feed],
            MasterSeen: state,
            FaultChanged: [*state, self.answers.feed],
            PhaseStarted: [self.calm.feed, self.memory.feed, self.answers.feed, self._phase],
            Unwedged: [self.calm.feed, self.processes.feed],
            EventSeen: [self.keeper.feed],
            EventLogRead: [self.keeper.feed],
            ApiCall: [self.keeper.feed],
            NodeMemory: [self.memory.feed],
            NodeProcesses: [self.processes.feed, self.memory.feed],
            Expected: [self._expect],
            Looked: [self.blind.feed, self.looking.feed],
            Finding: [self.blind.feed, self.keeper.feed],
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
        self.keeper.indices(run)

    def finish(self, end_t: float) -> None:
        """No record follows."""
        if not self._drained:
            self.load_end_t = self.seen_t
            self.views.finish(end_t)
        self.keeper.end_t = max(self.keeper.end_t, end_t)
        self.stories = self.keeper.stories()
        self.apart = self.rings.found(end_t)

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
