"""One scenario as one run: its folder, its journal, observation around it; and its verdict, from the journal alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import rig
from rig.analysis.verdict import Verdict
from rig.clock import Pace, RunClock
from rig.config.inventory import Inventory
from rig.config.workload import Workload
from rig.injection.fault import Identity
from rig.journal.records import ActivityDied, AnyRecord, LockLost, PhaseStarted, RunEnded
from rig.journal.run import RunInfo, write_run
from rig.journal.write import Journal
from rig.nodes.node import Nodes
from rig.observe.observer import Observer
from rig.report.write import read_report, write_report
from rig.soak.describe import own_revision, software
from rig.soak.halting import Reason
from rig.soak.settings import watching
from rig.targets.target import Target
from rig.verify.asking import Asking
from rig.verify.clearing import Clearing
from rig.verify.harming import Harming
from rig.verify.known import Known, Names
from rig.verify.play import Player
from rig.verify.scenario import Scenario
from rig.verify.waiting import Waiting

_Phase = Literal["setup", "faults", "drain", "end"]
_SEEN_S: Final = 30.0  # until every node has been seen and one is master
_STOP_S: Final = 5.0
_LOOK_S: Final = 0.05
TAIL_S: Final = 3.0
"""At pace 1, watched after the last step, so that what it brings about is in the logs."""


@dataclass(frozen=True, kw_only=True)
class Stand:
    """What scenarios are played on: connected, locked, agreed to."""

    inventory: Inventory
    workload: Workload
    nodes: Nodes
    target: Target
    owner: str
    pids: dict[str, list[str]]
    rehearsed: frozenset[str]

    @property
    def pace(self) -> Pace:
        return Pace(1.0 if self.inventory.emulated is None else self.inventory.emulated.pace)

    @property
    def entries(self) -> dict[str, str]:
        return {name: node.api for name, node in self.inventory.nodes.items()}


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    folder: Path
    verdict: Verdict
    took_s: float


async def run_scenario(
    stand: Stand,
    scenario: Scenario,
    folder: Path,
    stop: asyncio.Event,
    reason: Callable[[], Reason],
    listen: Callable[[AnyRecord], None],
) -> Result:
    """Play it in an empty folder that exists. Raises TargetError when the target cannot be cleared, JournalError."""
    took_s = await journal_scenario(stand, scenario, folder, stop, reason, listen)
    report = read_report(folder)
    write_report(folder, report)
    return Result(scenario, folder, report.verdict, took_s)


async def journal_scenario(
    stand: Stand,
    scenario: Scenario,
    folder: Path,
    stop: asyncio.Event,
    reason: Callable[[], Reason],
    listen: Callable[[AnyRecord], None],
    clock: RunClock | None = None,
) -> float:
    """The same without reports; how long it took, in seconds of `clock` (another one under virtual time)."""
    clearing = Clearing(stand.target, stand.entries, stand.pace)
    await clearing.clear()
    clock = clock or RunClock()
    write_run(folder, _describe(stand, scenario, folder.name, clock))
    journal = Journal(folder, clock)
    try:
        journal.subscribe(listen)
        await _Run(stand, scenario, journal, Identity(run=folder.name, owner=stand.owner)).run(stop, reason)
    finally:
        journal.close()
    return clock.now()


class _Run:
    def __init__(self, stand: Stand, scenario: Scenario, journal: Journal, identity: Identity) -> None:
        self._scenario = scenario
        self._journal = journal
        self._names = Names(tuple(model.model for model in stand.workload.models), tuple(stand.inventory.nodes))
        pace, target, entries = stand.pace, stand.target, stand.entries
        self._pace = pace
        self._known = known = Known(self._names, target.instances)
        journal.subscribe(known.apply)
        self._observer = Observer(target, entries, journal, connections=stand.nodes, timing=watching(pace))
        harming = Harming(
            stand.nodes,
            target,
            known,
            journal,
            identity,
            pace,
            stand.rehearsed,
            emulated=stand.inventory.emulated is not None,
        )
        self._player = Player(
            known=known,
            asking=Asking(target, entries, stand.workload.models, known, journal, pace),
            harming=harming,
            waiting=Waiting(known, journal, pace),
            journal=journal,
            pace=pace,
        )

    async def run(self, stop: asyncio.Event, reason: Callable[[], Reason]) -> None:
        late_stop = asyncio.Event()
        observing = asyncio.create_task(self._observer.run(late_stop))
        ended, detail = reason(), ""
        try:
            self._enter("setup")
            await self._seen()
            await self._player.harming.look("start")
            self._enter("faults")
            played = await self._player.play(self._scenario, stop)
            if not played and not stop.is_set():
                detail = "the scenario could not be played to its end"
            await asyncio.sleep(self._pace.scale(TAIL_S))
            self._enter("drain")
            await self._observer.read_events()
            await self._player.harming.look("end")
        except Exception as error:
            ended, detail = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            late_stop.set()
            await asyncio.wait({observing}, timeout=_STOP_S)
            observing.cancel()
            await asyncio.gather(observing, return_exceptions=True)
            self._close(observing, "failed" if ended == "failed" else reason(), detail)

    def _close(self, observing: asyncio.Task[None], ended: Reason, detail: str) -> None:
        if self._journal.failed:
            return
        died = None if observing.cancelled() else observing.exception()
        t = self._journal.now()
        if died is not None:
            self._journal.write(ActivityDied(t=t, activity="observe", detail=f"{type(died).__name__}: {died}"))
        if ended == "aborted":  # by nothing but a lock that was lost, since when is not known
            self._journal.write(LockLost(t=t, since_t=0.0, reason="a lock on a node was lost"))
        self._enter("end")
        self._journal.write(RunEnded(t=self._journal.now(), reason=ended, detail=detail))

    async def _seen(self) -> None:
        """Bounded: a target of which nothing is seen is judged as unknown step by step."""
        limit_t = self._journal.now() + _SEEN_S
        view = self._known.view
        while self._journal.now() < limit_t:
            answering = [node for node in self._names.nodes if view.reachable(node)]
            told = [node for node in answering if view.facet(node, "deployments") is not None]
            named = [node for node in answering if view.facet(node, "node_id") is not None]
            if view.masters and len(told) == len(named) == len(self._names.nodes):
                return
            await asyncio.sleep(_LOOK_S)

    def _enter(self, phase: _Phase) -> None:
        self._journal.write(PhaseStarted(t=self._journal.now(), phase=phase))


def _describe(stand: Stand, scenario: Scenario, name: str, clock: RunClock) -> RunInfo:
    emulated = stand.inventory.emulated
    return RunInfo(
        run=name,
        wall_start=clock.wall_start,
        wall_start_iso=datetime.fromtimestamp(clock.wall_start, UTC).isoformat(timespec="seconds"),
        rig_version=rig.__version__,
        rig_revision=own_revision(),
        python=software()["python"],
        seed=0,
        duration_s=0.0,
        pace=stand.pace.factor,
        embedded=emulated is not None,
        behaviour=None if emulated is None else emulated.behaviour,
        inventory=stand.inventory.model_dump(mode="json"),
        workload={"name": stand.workload.name, "models": []},  # nothing is sent: no recovery is to be judged
        plan={
            "name": f"verify {scenario.name}",
            "kinds": {},
            "requires": [*scenario.proves, "as-expected"],
            "scenario": scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        },
        schedule=[],
        expected_faults=0,
        target_revisions=dict.fromkeys(stand.inventory.nodes),
        pids_allowed=stand.pids,
        versions=software(),
    )
