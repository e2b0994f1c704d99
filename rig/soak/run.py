"""The phases of one run: set up, baseline, faults, drain, end. Each activity is watched; its death is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Literal

from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.settings import settings_of
from rig.errors import FaultError, RigError, TargetError
from rig.injection.aim import AimContext
from rig.injection.fault import Identity
from rig.injection.injector import Injector
from rig.injection.lease import heal_all
from rig.injection.schedule import draw
from rig.journal.records import ActivityDied, AnyRecord, LockLost, Phase, PhaseStarted, RunEnded
from rig.journal.run import RunInfo
from rig.journal.write import Journal
from rig.load.backoff import Backoff
from rig.load.client import LoadDriver
from rig.load.deadlines import paced_grace_s
from rig.load.prober import Prober
from rig.nodes.node import Nodes
from rig.observe.observer import Observer
from rig.soak.awaited import awaited
from rig.soak.deployments import DeploymentsPosted
from rig.soak.forensics import Forensics
from rig.soak.halting import Halt
from rig.soak.idle import look_while_idle
from rig.soak.recovering import MOST_EVENTS, Recovering
from rig.soak.settings import SoakSettings
from rig.soak.successes import Successes
from rig.soak.unwedging import Unwedger
from rig.targets.now import instances_of
from rig.targets.target import Target
from rig.targets.views import Instance

Activity = Literal["load", "injection", "observe", "prober"]

HURRY_S: Final = 2.0  # how long requests in flight are awaited when the run is interrupted
ALONE_SHARE: Final = 0.2
"""Of the baseline, at most, to ask canaries one by one."""
_DRAIN_GRACE_S: Final = 15.0  # beyond the requests' own total deadline
_LOOK_S: Final = 0.05
_HEAL_LIMIT_S: Final = 60.0


class SoakRun:
    """Built once per run; `await run()` gives the reason it ended. Attributes may be read for a live view."""

    def __init__(
        self,
        settings: SoakSettings,
        info: RunInfo,
        nodes: Nodes,
        target: Target,
        journal: Journal,
        halt: Halt,
        *,
        rehearsed: frozenset[str],
        forensics: Forensics | None = None,
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.halt = halt
        self.phase: Phase = "setup"
        self.load_t: float | None = None  # when the load began
        self._target = target
        self._nodes = nodes
        self._forensics = forensics
        self._load_stop, self._fault_stop, self._late_stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._tasks: dict[Activity, asyncio.Task[None]] = {}
        identity = Identity(run=info.run, owner=settings.owner)
        self.observer = Observer(target, settings.entries, journal, connections=nodes, timing=settings.watching)
        self.load = LoadDriver(
            settings.workload,
            settings.entries,
            journal,
            seed=settings.seed,
            backoff=Backoff().paced(settings.pace),
            grace_s=paced_grace_s(settings.pace),
            token_a_chunk=target.token_a_chunk,
            alone_s=settings.plan.baseline * ALONE_SHARE,
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
            token_a_chunk=target.token_a_chunk,
        )
        self.tracker = RecoveryTracker(settings_of(info), live=True)
        self.successes = Successes(settings.models)
        self.recovering = Recovering(
            tracker=self.tracker,
            journal=journal,
            prober=self.prober,
            observer=self.observer,
            successes=self.successes,
            unwedger=Unwedger(nodes, journal, identity),
            nodes=list(settings.inventory.nodes),
        )
        self._posted = (
            None
            if target.deploys is None
            else DeploymentsPosted(
                target.deploys,
                settings.entries,
                settings.workload.models,
                journal,
                self.observer.view,
                vanished_s=settings.vanished_s,
            )
        )
        self.injector = Injector(
            plan=settings.plan,
            schedule=draw(settings.plan, settings.inventory, settings.models, settings.seed),
            context=AimContext(
                nodes=nodes,
                instances=self._instances,
                rehearsed=rehearsed,
                rdma_models=frozenset(
                    one.model for one in settings.workload.models if one.past_filters and one.nodes_needed > 1
                ),
                emulated=settings.inventory.emulated is not None,
            ),
            journal=journal,
            identity=identity,
            recovered=self._recovered,
        )
        journal.subscribe(self._see)

    @property
    def end_t(self) -> float | None:
        """When the load is to end, on the run's clock."""
        return None if self.load_t is None else self.load_t + self.settings.length_s

    async def run(self) -> RunEnded:
        """All phases. Writes the last record and returns it. Never leaves a fault in force that it could heal."""
        telling = asyncio.create_task(self._tell_unlocked())
        try:
            self._start("observe", self.observer.run(self._late_stop))
            await self._set_up()
            await self._under_load()
        except RigError as error:
            self.halt.call("failed", error.message)
        finally:
            await self._stop_all()
            telling.cancel()
        self._enter("end")
        ended = RunEnded(t=self.journal.now(), reason=self.halt.reason, detail=self.halt.detail)
        if not self.journal.failed:
            self.journal.write(ended)
        return ended

    async def _tell_unlocked(self) -> None:
        """At once: what fails from then on says nothing of the target."""
        await self.halt.unlocked.wait()
        now = self.journal.now()
        since_t = max(now - (asyncio.get_running_loop().time() - self.halt.unlocked_at), 0.0)
        if not self.journal.failed:
            self.journal.write(LockLost(t=now, since_t=since_t, reason=self.halt.detail))

    async def _set_up(self) -> None:
        """Deploy, and wait until every model has completed a probe."""
        self._enter("setup")
        if self._posted is not None:
            await self._posted.post_all()
        self.recovering.hurry(fast=True)
        self._start("prober", self.prober.run(self._late_stop))
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
        self._start("load", self.load.run(self._load_stop))
        self._enter("baseline")
        helping = None if self._posted is None else asyncio.create_task(self._posted.watch(self._late_stop))
        try:
            if await self.halt.within(self.settings.plan.baseline):
                return
            await self.observer.who_served(self.successes.response_ids())
            await self.observer.read_events(most_events=MOST_EVENTS)  # the first placements: this master may be next
            self._enter("faults")
            self.injector.strike_until_t = self.load_t + self.settings.strike_until_s
            self._start("injection", self.injector.run(self._fault_stop))
            await self.halt.within(self.load_t + self.settings.length_s - self.journal.now())
        finally:
            if helping is not None:
                helping.cancel()
                await asyncio.gather(helping, return_exceptions=True)

    async def _stop_all(self) -> None:
        """Heal first, then let what is in flight end, then look once more, then stop looking."""
        self._fault_stop.set()
        await self._wait("injection", _HEAL_LIMIT_S, hurry=False)
        if self.journal.failed:  # the injector could not go on; what it left in force is undone from the leases
            await heal_all(self._nodes)
        self._enter("drain")
        self._load_stop.set()
        total_s = self.settings.workload.deadlines.total
        await self._wait("load", total_s + _DRAIN_GRACE_S)
        if not self.halt.hurry.is_set():
            await self._collect_last()
            await self.observer.who_served(self.successes.response_ids())
            await self.observer.read_events()
            await look_while_idle(self._nodes, self.journal, self.settings.idle_s)
        self._late_stop.set()
        await self._wait("prober", HURRY_S)
        await self._wait("observe", HURRY_S)

    async def _wait(self, activity: Activity, limit_s: float, *, hurry: bool = True) -> None:
        """For its own end, which it has been told to come to; cancelled after that, or `HURRY_S` after a hurry."""
        task = self._tasks.get(activity)
        if task is None:
            return
        hurried = asyncio.create_task(self.halt.hurry.wait())
        await asyncio.wait({task, hurried} if hurry else {task}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if hurry and not task.done():
            await asyncio.wait({task}, timeout=min(limit_s, HURRY_S))
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _start(self, activity: Activity, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[activity] = asyncio.create_task(self._watched(activity, work))

    async def _watched(self, activity: Activity, work: Coroutine[Any, Any, None]) -> None:
        """A FaultError aborts the run; anything else is the death of an activity. Neither is ever a pass."""
        try:
            await work
        except FaultError as error:
            self.halt.call("aborted", error.message)
            if self.injector.fault is not None:
                await self._collect(self.injector.fault.planned.index)
        except Exception as error:  # whatever it is, the others must be stopped in order, and it must be said
            detail = f"{type(error).__name__}: {error}"
            self.halt.call("failed", f"{activity} died: {detail}")
            if not self.journal.failed:
                self.journal.write(ActivityDied(t=self.journal.now(), activity=activity, detail=detail))

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        if not self.journal.failed:
            self.journal.write(PhaseStarted(t=self.journal.now(), phase=phase))

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

    async def _instances(self) -> Sequence[Instance]:
        """What the injector asks at the strike: read anew from the best view."""
        view = self.observer.view
        if (best := view.best()) is None:
            raise TargetError("no node's API answers")
        return await instances_of(self._target, self.settings.entries[best], view.node_of)
