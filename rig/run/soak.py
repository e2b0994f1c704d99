"""The phases of a soak: set up, baseline, faults, drain, end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.settings import settings_of
from rig.errors import TargetError
from rig.injection.injector import Injector
from rig.injection.lease import heal_all
from rig.journal.records import AnyRecord, Phase, RunEnded
from rig.journal.run import RunInfo
from rig.load.backoff import Backoff
from rig.load.canary import Learning
from rig.load.client import LoadDriver
from rig.load.deadlines import paced_grace_s
from rig.load.prober import Prober
from rig.run.activities import HURRY_S
from rig.run.awaited import awaited
from rig.run.compose import Parts, put_together
from rig.run.deployments import DeploymentsPosted
from rig.run.describe import describe
from rig.run.forensics import Forensics
from rig.run.idle import look_while_idle
from rig.run.recovering import MOST_EVENTS, Recovering
from rig.run.settings import SoakSettings
from rig.run.stand import Stand
from rig.run.successes import Successes
from rig.run.unwedging import Unwedger

ALONE_SHARE: Final = 0.2
"""Of the baseline, at most, to ask canaries one by one."""
_DRAIN_GRACE_S: Final = 15.0  # beyond the requests' own total deadline
_LOOK_S: Final = 0.05
_HEAL_LIMIT_S: Final = 60.0


@contextmanager
def soak_on(stand: Stand, settings: SoakSettings, forensics: Forensics | None) -> Generator[SoakRun]:
    """Yields a soak that is ready to run and journals into the folder of its settings. Raises JournalError."""
    clock = stand.clock()
    info = describe(settings, stand, clock)
    with put_together(
        stand, info, settings.folder, clock, workload=settings.workload, entries=settings.entries
    ) as parts:
        yield SoakRun(parts, stand, settings, info, forensics)


class SoakRun:
    """One soak: `await run()` returns its last record. The public attributes may be read for a live view."""

    def __init__(
        self, parts: Parts, stand: Stand, settings: SoakSettings, info: RunInfo, forensics: Forensics | None
    ) -> None:
        self.settings = settings
        self.journal = journal = parts.journal
        self.halt = stand.halt
        self.load_t: float | None = None  # when the load began
        self.observer = parts.observer
        self._activities = parts.activities
        self._nodes = stand.nodes
        self._forensics = forensics
        self._load_stop, self._fault_stop, self._late_stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.load = LoadDriver(
            settings.workload,
            settings.entries,
            journal,
            seed=settings.seed,
            requests=None,
            backoff=Backoff().paced(settings.pace),
            grace_s=paced_grace_s(settings.pace),
            token_a_chunk=stand.target.token_a_chunk,
            access=None,
            learning=Learning(settings.plan.baseline * ALONE_SHARE, settings.plan.baseline),
        )
        self.prober = Prober(
            settings.models,
            settings.entries,
            journal,
            fast_s=settings.probe_fast_s,
            slow_s=settings.probe_slow_s,
            node_per_s=settings.probes_per_node_s,
            limit_s=settings.probe_limit_s,
            patience_s=settings.probe_patience_s,
            connect_s=settings.workload.deadlines.connect,
            grace_s=paced_grace_s(settings.pace),
            token_a_chunk=stand.target.token_a_chunk,
        )
        self.tracker = RecoveryTracker(settings_of(info), live=True)
        self.successes = Successes(settings.models)
        self.recovering = Recovering(
            tracker=self.tracker,
            journal=journal,
            prober=self.prober,
            observer=self.observer,
            successes=self.successes,
            unwedger=Unwedger(stand.nodes, journal, parts.identity),
            nodes=list(settings.inventory.nodes),
        )
        self._posted = (
            None
            if stand.target.deploys is None
            else DeploymentsPosted(
                stand.target.deploys,
                settings.entries,
                settings.workload.models,
                journal,
                self.observer.view,
                vanished_s=settings.vanished_s,
            )
        )
        self.injector = Injector(
            plan=settings.plan,
            schedule=settings.schedule(),
            context=parts.context,
            journal=journal,
            identity=parts.identity,
            recovered=self._recovered,
            strike_until_t=lambda: (self.load_t or 0.0) + settings.strike_until_s,
        )
        journal.subscribe(self._see)

    @property
    def phase(self) -> Phase:
        return self._activities.phase

    @property
    def end_t(self) -> float | None:
        """When the load is to end, on the run's clock."""
        return None if self.load_t is None else self.load_t + self.settings.length_s

    async def run(self) -> RunEnded:
        """All phases. Writes the last record and returns it. Never leaves a fault in force that it could heal."""
        return await self._activities.conduct(self._course, self._stop_all)

    async def _course(self) -> str:
        self._activities.start("observe", self.observer.run(self._late_stop))
        await self._set_up()
        await self._under_load()
        return ""

    async def _set_up(self) -> None:
        """Deploy, and wait until every model has completed a probe."""
        self._activities.enter("setup")
        if self._posted is not None:
            await self._posted.post_all()
        self.recovering.hurry(fast=True)
        self._activities.start("prober", self.prober.run(self._late_stop))
        deadline_t = self.journal.now() + self.settings.setup_limit_s
        while not self.halt.event.is_set():
            if self.successes.all_since(0.0):
                self.recovering.hurry(fast=False)
                return
            if self.journal.now() > deadline_t:
                raise TargetError(
                    f"served nothing within {self.settings.setup_limit_s:.0f} s: {'. '.join(self.awaited())}",
                    remedy="look at the target's log on the nodes named here",
                )
            await asyncio.sleep(_LOOK_S)

    def awaited(self) -> list[str]:
        """A line for each model that has not served yet: what it is waiting for."""
        return awaited(self.observer.view, self.successes.silent_since(0.0))

    async def _under_load(self) -> None:
        self.load_t = self.journal.now()
        self._activities.start("load", self.load.run(self._load_stop))
        self._activities.enter("baseline")
        helping = None if self._posted is None else asyncio.create_task(self._posted.watch(self._late_stop))
        try:
            if await self.halt.within(self.settings.plan.baseline):
                return
            await self.observer.who_served(self.successes.response_ids())
            await self.observer.read_events(most_events=MOST_EVENTS)  # the first placements: this master may be next
            self._activities.enter("faults")
            self._activities.start("injection", self.injector.run(self._fault_stop), aborted=self._collect_aborted)
            await self.halt.within(self.load_t + self.settings.length_s - self.journal.now())
        finally:
            if helping is not None:
                helping.cancel()
                await asyncio.gather(helping, return_exceptions=True)

    async def _stop_all(self) -> None:
        """Heal first, then let what is in flight end, then look once more, then stop looking."""
        self._fault_stop.set()
        await self._activities.wait("injection", _HEAL_LIMIT_S, hurry=False)
        if self.journal.failed:  # the injector could not go on; what it left in force is undone from the leases
            await heal_all(self._nodes)
        self._activities.enter("drain")
        self._load_stop.set()
        total_s = self.settings.workload.deadlines.total
        await self._activities.wait("load", total_s + _DRAIN_GRACE_S)
        if not self.halt.hurry.is_set():
            await self._collect_last()
            await self.observer.who_served(self.successes.response_ids())
            await self.observer.read_events()
            await look_while_idle(self._nodes, self.journal, self.settings.idle_s)
        self._late_stop.set()
        await self._activities.wait("prober", HURRY_S)
        await self._activities.wait("observe", HURRY_S)

    async def _collect_aborted(self) -> None:
        if self.injector.fault is not None:
            await self._collect(self.injector.fault.planned.index)

    def _see(self, record: AnyRecord) -> None:
        self.tracker.feed(record)
        self.successes.apply(record)
        self.recovering.apply(record)

    async def _recovered(self, fault: int) -> bool:
        """Whether the target recovered from it by itself; what tells of it is collected either way."""
        recovered = await self.recovering(fault)
        await self._collect(fault)
        return recovered

    async def _collect(self, fault: int) -> None:
        if self._forensics is not None:
            await self._forensics.collect(fault, self.observer.view.told())

    async def _collect_last(self) -> None:
        """Of a fault whose recovery was not awaited any more, because the run was over."""
        last = self.injector.fault
        if last is not None and self._forensics is not None and not self._forensics.has(last.planned.index):
            await self._collect(last.planned.index)
