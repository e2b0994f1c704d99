"""A journal, read once from front to back, to everything that is said of the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.intake.batches import Batch, batches
from rig.analysis.intake.reading import reading
from rig.analysis.intake.ticks import Beside, Health, Index
from rig.analysis.kinds import KindRow, UnwedgingRow, kind_rows, unwedging_rows
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault, Window
from rig.analysis.recovery.rescue import Rescue
from rig.analysis.recovery.stalls import Stalls
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.requests.counting import RequestCounter
from rig.analysis.requests.during import During, Times
from rig.analysis.requests.settled import Listener, Settled
from rig.analysis.requests.tally import Tally
from rig.analysis.settings import Settings, settings_of
from rig.analysis.symptoms.speed import SpeedWatch
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
    RequestStarted,
    RunEnded,
    Unwedged,
)
from rig.journal.run import RunInfo

MAX_LISTED: Final = 200
AT_ONCE: Final = 10_000
"""So many requests of one source are waited for before they are counted."""
UNLOCKED_S: Final = 90.0
"""And so long: that a lock was lost is found out as late."""


@dataclass(kw_only=True)
class Analysis:
    """`end_t` is the time of the last record. Of `findings` and the like the first 200 are kept."""

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
        """The time of load without faults, as far as the phases tell."""
        return baseline_of(self.phases)

    @property
    def finished(self) -> bool:
        return self.ended is not None and self.ended.reason == "finished"


@dataclass
class _Said:
    """What records say outright."""

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

    def baseline(self) -> Window | None:
        return baseline_of(self.phases)


class _OfLoad:
    """What is said of the load is heard more than once."""

    def __init__(
        self, speed: SpeedWatch, during: During, recoveries: Sequence[Recovery], listener: Listener | None
    ) -> None:
        self._speed, self._during, self._recoveries, self._listener = speed, during, recoveries, listener

    def settled(self, batch: Settled) -> None:
        self._speed.take(batch.attempts)
        marked = self._during.take(batch, self._recoveries)
        if self._listener is not None:
            self._listener.settled(marked)

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        if self._listener is not None:
            self._listener.unfinished(start, end_t)


class _Ticks:
    """Hands over what was written of a batch's health and indices before each other record."""

    def __init__(
        self,
        batch: Batch,
        looks: Sequence[Callable[[Health], None]],
        indexed: Sequence[Callable[[Sequence[Index]], None]],
    ) -> None:
        self._health, self._indices = batch.health, batch.indices
        self._looks, self._indexed = looks, indexed
        self._at = (0, 0)

    def pass_to(self, health: int, indices: int) -> None:
        (first, earliest), self._at = self._at, (health, indices)
        if first < health:
            for look in self._looks:
                look(self._health[first:health])
        if earliest < indices:
            for index in self._indexed:
                index(self._indices[earliest:indices])


def baseline_of(phases: Sequence[PhaseStarted]) -> Window | None:
    """From the beginning of the phase of that name to that of the next."""
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

    `listener` is told how each request and probe was counted, some time after its last record; `beside` of other
    records as they come.
    """
    return analyse_batches(info, batches(records), notes, listener, beside)


def analyse_batches(
    info: RunInfo,
    found: Iterable[Batch],
    notes: ReadNotes | None = None,
    listener: Listener | None = None,
    beside: Beside | None = None,
) -> Analysis:
    """The same of records that were put together before."""
    tracker = RecoveryTracker(settings_of(info))
    settings, context, pairing = tracker.settings, tracker.context, tracker.pairing
    watch, said = Watch(context, info.embedded), _Said()
    during = During(settings)
    load = RequestCounter("load", context, _OfLoad(watch.speed, during, tracker.recoveries, listener))
    probes = RequestCounter("probe", context, listener)
    feeds: list[Callable[[AnyRecord], None]] = [tracker.note, watch.feed, said.feed]
    indexed = [context.indices, watch.indices]
    if beside is not None:
        feeds.append(beside.feed)
        indexed.append(beside.indices)
    for batch in found:
        attempts = pairing.join(batch)
        ended = served = fed = 0
        ticks = _Ticks(batch, [context.health, watch.look], indexed)
        for stretch in batch.stretches:
            for at in range(fed, stretch.others):
                ticks.pass_to(*batch.before[at])
                for feed in feeds:
                    feed(batch.others[at])
            part = attempts.part(slice(ended, stretch.attempts))
            tracker.take(part, batch.served[served : stretch.served], stretch.now_t, pairing.open_t(stretch))
            ended, served, fed = stretch.attempts, stretch.served, stretch.others
            watch.seen_t = stretch.last_t
        ticks.pass_to(len(batch.health), len(batch.indices))
        if len(batch.health):
            watch.speed.health(batch.health)
            if beside is not None:
                beside.health(batch.health)
        pairing.close(batch)
        tracker.settle()
        for counter in (load, probes):
            counter.ended(attempts)
            if counter.waiting >= AT_ONCE:
                before_t = min(tracker.settled_t(), context.now_t - UNLOCKED_S)
                counter.settle(before_t, tracker.recoveries, tracker.rescues, said.baseline())
    recoveries = tracker.finish()
    watch.finish(context.now_t)
    for counter in (load, probes):
        counter.settle(math.inf, tracker.recoveries, tracker.rescues, said.baseline())
    faults, requests = context.faults.all(), load.finish(pairing)
    return Analysis(
        info=info,
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
        probes=probes.finish(pairing),
        held_back=said.held_back,
        during={
            kind: during.by_kind[kind]
            for kind in dict.fromkeys(fault.kind for fault in faults)
            if kind in during.by_kind
        },
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
        watch=watch,
        notes=notes or ReadNotes(),
    )


def analyse_run(run: Run) -> Analysis:
    """The run in a folder. Raises JournalError when its files cannot be read."""
    with reading(run) as found:
        analysis = analyse_batches(run.info, found)
    analysis.notes = run.notes
    return analysis
