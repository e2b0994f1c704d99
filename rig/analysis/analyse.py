"""The analysis of a run: its journal, read once from front to back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rig.analysis.firsts import Firsts
from rig.analysis.intake.batches import Batch, batches
from rig.analysis.intake.pairing import Pairing
from rig.analysis.intake.reading import reading
from rig.analysis.intake.steps import Ended, Section, Step, steps
from rig.analysis.intake.ticks import Beside
from rig.analysis.kinds import KindRow, UnwedgingRow, kind_rows, unwedging_rows
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault, Window
from rig.analysis.recovery.rescue import Rescue
from rig.analysis.recovery.stalls import Stalls
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.requests.counting import RequestCounter
from rig.analysis.requests.during import During, Times
from rig.analysis.requests.settled import Listener
from rig.analysis.requests.tally import Tally
from rig.analysis.settings import Settings, settings_of
from rig.analysis.symptoms.watch import Watch
from rig.journal.read import ReadNotes, Run
from rig.journal.records import (
    ActivityDied,
    AnyRecord,
    FaultKind,
    Finding,
    HeldBack,
    PhaseStarted,
    Redeployed,
    RunEnded,
    Unwedged,
)
from rig.journal.run import RunInfo

MAX_LISTED: Final = 200
AT_ONCE: Final = 10_000
"""Requests of one source are counted when at least this many wait."""
UNLOCKED_S: Final = 90.0
"""Requests are not counted for this long: the loss of a lock may be noticed this late."""


@dataclass(kw_only=True)
class Analysis:
    """`end_t` is the time of the last record. Lists of records, `findings` among them, keep the first 200."""

    info: RunInfo
    settings: Settings
    end_t: float
    ended: RunEnded | None
    phases: list[PhaseStarted]
    faults: list[Fault]
    recoveries: list[Recovery]
    rescues: list[Rescue]
    kinds: list[KindRow]
    unwedgings: list[UnwedgingRow]
    requests: Tally
    probes: Tally
    held_back: HeldBack | None
    during: dict[FaultKind, Times]  # how long requests took while a fault went on
    stalls: Stalls
    unlocked_t: float | None  # since when another rig may have been at work on the nodes
    rejoins: dict[str, list[Window]]  # by node: from a restart until it had caught up
    orphans: int
    repeated: int
    redeployed: list[Redeployed]
    unwedged: list[Unwedged]
    findings: list[Finding]
    finding_count: int
    died: list[ActivityDied]
    watch: Watch
    notes: ReadNotes

    @property
    def baseline(self) -> Window | None:
        """The time of load without faults, from the phases."""
        return baseline_of(self.phases)

    @property
    def finished(self) -> bool:
        return self.ended is not None and self.ended.reason == "finished"


@dataclass
class _Said:
    """Records that are kept as they are."""

    ended: RunEnded | None = None
    held_back: HeldBack | None = None
    phases: list[PhaseStarted] = field(default_factory=lambda: Firsts[PhaseStarted](MAX_LISTED))
    redeployed: list[Redeployed] = field(default_factory=lambda: Firsts[Redeployed](MAX_LISTED))
    unwedged: list[Unwedged] = field(default_factory=lambda: Firsts[Unwedged](MAX_LISTED))
    findings: list[Finding] = field(default_factory=lambda: Firsts[Finding](MAX_LISTED))
    finding_count: int = 0
    died: list[ActivityDied] = field(default_factory=lambda: Firsts[ActivityDied](MAX_LISTED))

    def feed(self, record: AnyRecord) -> None:
        match record:
            case RunEnded():
                self.ended = record
            case HeldBack():
                self.held_back = record
            case PhaseStarted():
                self.phases.append(record)
            case Redeployed():
                self.redeployed.append(record)
            case Unwedged():
                self.unwedged.append(record)
            case Finding():
                self.finding_count += 1
                self.findings.append(record)
            case ActivityDied():
                self.died.append(record)
            case _:
                pass


def baseline_of(phases: Sequence[PhaseStarted]) -> Window | None:
    """From the start of the phase `baseline` to the start of the next phase."""
    for index, phase in enumerate(phases):
        if phase.phase == "baseline":
            later = phases[index + 1 : index + 2]
            return Window(phase.t, later[0].t if later else math.inf)
    return None


def analyse(
    info: RunInfo,
    records: Iterable[AnyRecord],
    notes: ReadNotes | None = None,
    listener: Listener | None = None,
    beside: Beside | None = None,
) -> Analysis:
    """One pass over the records, in the order of the journal. Never fails on what a journal can hold.

    `listener` receives each request and probe as it was counted, some time after its last record; `beside` receives
    all other records as they come.
    """
    return analyse_batches(info, batches(records), notes, listener, beside)


def analyse_batches(
    info: RunInfo,
    found: Iterable[Batch],
    notes: ReadNotes | None = None,
    listener: Listener | None = None,
    beside: Beside | None = None,
) -> Analysis:
    """The same from the batches that the intake makes of records."""
    walk = _Walk(info, listener, beside)
    for step in steps(found, walk.pairing):
        walk.take(step)
    return walk.finish(notes or ReadNotes())


class _Walk:
    """Hands each step of the journal down to its judges: recoveries first, then requests, which depend on them."""

    def __init__(self, info: RunInfo, listener: Listener | None, beside: Beside | None) -> None:
        self.pairing = Pairing()
        self._info, self._listener, self._beside = info, listener, beside
        self._tracker = tracker = RecoveryTracker(settings_of(info))
        self._context = context = tracker.context
        self._said = _Said()
        self._watch = watch = Watch(context, info.embedded)
        self._during = During(tracker.settings)
        self._load, self._probes = RequestCounter("load", context), RequestCounter("probe", context)
        self._feeds = [tracker.note, watch.feed, self._said.feed]
        self._indices = [context.indices, watch.indices]
        if beside is not None:
            self._feeds.append(beside.feed)
            self._indices.append(beside.indices)

    def take(self, step: Step) -> None:
        match step:
            case Ended():
                self._tracker.take(step)
                self._watch.seen_t = step.last_t
            case Section():
                self._close(step)
            case np.ndarray():
                self._context.health(step)
                self._watch.look(step)
            case list():
                for indices in self._indices:
                    indices(step)
            case _:
                for feed in self._feeds:
                    feed(step)

    def _close(self, section: Section) -> None:
        if len(section.health):
            self._watch.speed.health(section.health)
            if self._beside is not None:
                self._beside.health(section.health)
        self._tracker.settle()
        for counter in (self._load, self._probes):
            counter.ended(section.attempts)
            if counter.waiting >= AT_ONCE:
                self._settle(counter, min(self._tracker.settled_t(), self._context.now_t - UNLOCKED_S))

    def _settle(self, counter: RequestCounter, before_t: float) -> None:
        recoveries, rescues = self._tracker.recoveries, self._tracker.rescues
        for settled in counter.settle(before_t, recoveries, rescues, baseline_of(self._said.phases)):
            if counter is self._load:
                self._watch.speed.take(settled.attempts)
                settled = self._during.take(settled, recoveries)  # noqa: PLW2901
            if self._listener is not None:
                self._listener.settled(settled)

    def finish(self, notes: ReadNotes) -> Analysis:
        tracker, context, said, pairing = self._tracker, self._context, self._said, self.pairing
        recoveries, settings = tracker.finish(), tracker.settings
        self._watch.finish(context.now_t)
        for counter in (self._load, self._probes):
            self._settle(counter, math.inf)
        if self._listener is not None:
            for start in (*self._load.unfinished(pairing), *self._probes.unfinished(pairing)):
                self._listener.unfinished(start, context.now_t)
        faults, requests, by_kind = context.faults.all(), self._load.finish(pairing), self._during.by_kind
        return Analysis(
            info=self._info,
            settings=settings,
            end_t=context.now_t,
            ended=said.ended,
            phases=said.phases,
            faults=faults,
            recoveries=recoveries,
            rescues=tracker.rescues,
            kinds=kind_rows(settings.plan_kinds, faults, recoveries, requests.by_fault),
            unwedgings=unwedging_rows(said.unwedged, requests.by_unwedging),
            requests=requests,
            probes=self._probes.finish(pairing),
            held_back=said.held_back,
            during={kind: by_kind[kind] for kind in dict.fromkeys(fault.kind for fault in faults) if kind in by_kind},
            stalls=context.stalls,
            unlocked_t=None if math.isinf(context.unlocked_t) else context.unlocked_t,
            rejoins=context.windows.rejoins.windows(),
            orphans=pairing.orphans,
            repeated=pairing.repeated,
            redeployed=said.redeployed,
            unwedged=said.unwedged,
            findings=said.findings,
            finding_count=said.finding_count,
            died=said.died,
            watch=self._watch,
            notes=notes,
        )


def analyse_run(run: Run) -> Analysis:
    """The run in a folder. Raises JournalError when its files cannot be read."""
    with reading(run) as found:
        analysis = analyse_batches(run.info, found)
    analysis.notes = run.notes
    return analysis
