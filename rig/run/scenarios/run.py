"""One scenario as one run: its folder, its journal, observation around it; and its verdict, from the journal alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from rig.analysis.verdict import Verdict
from rig.clock import RunClock
from rig.config.workload import Workload
from rig.errors import JournalError
from rig.journal.records import AnyRecord, RunEnded
from rig.journal.run import RunInfo
from rig.report.write import read_report, write_report
from rig.run.compose import Parts, put_together
from rig.run.describe import describe_run
from rig.run.scenarios.asking import Asking
from rig.run.scenarios.clearing import Clearing
from rig.run.scenarios.harming import Harming
from rig.run.scenarios.known import Known, Names
from rig.run.scenarios.play import Player
from rig.run.scenarios.scenario import Scenario
from rig.run.scenarios.waiting import Waiting
from rig.run.stand import Stand

Listener: TypeAlias = Callable[[AnyRecord], None]

_SEEN_S: Final = 30.0  # until every node has been seen and one is master
_STOP_S: Final = 5.0
_LOOK_S: Final = 0.05
TAIL_S: Final = 3.0
"""At pace 1, watched after the last step, so that what it brings about is in the logs."""


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    folder: Path
    verdict: Verdict
    took_s: float


async def run_scenario(stand: Stand, workload: Workload, scenario: Scenario, folder: Path, listen: Listener) -> Result:
    """Play it in an empty folder that exists. Raises TargetError when the target cannot be cleared, JournalError."""
    took_s = await journal_scenario(stand, workload, scenario, folder, listen)
    report = read_report(folder)
    write_report(folder, report)
    return Result(scenario, folder, report.verdict, took_s)


async def journal_scenario(
    stand: Stand, workload: Workload, scenario: Scenario, folder: Path, listen: Listener
) -> float:
    """The same without reports; how long it took, in seconds of the run's clock."""
    await Clearing(stand.target, stand.entries, stand.pace).clear()
    clock = stand.clock()
    info = _describe(stand, workload, scenario, folder.name, clock)
    with put_together(stand, info, folder, clock, workload=workload, entries=stand.entries) as parts:
        parts.journal.subscribe(listen)
        await _ScenarioRun(parts, stand, workload, scenario).run()
        if parts.journal.failed:
            raise JournalError(stand.halt.detail)
    return clock.now()


class _ScenarioRun:
    def __init__(self, parts: Parts, stand: Stand, workload: Workload, scenario: Scenario) -> None:
        self._scenario = scenario
        self._parts = parts
        self._halt = stand.halt
        self._late_stop = asyncio.Event()
        self._names = Names(tuple(model.model for model in workload.models), tuple(stand.inventory.nodes))
        journal, pace = parts.journal, stand.pace
        self._pace = pace
        self._known = known = Known(self._names)
        journal.subscribe(known.apply)
        self._player = Player(
            known=known,
            asking=Asking(stand.target, stand.entries, workload.models, known, journal, pace, stand.token),
            harming=Harming(parts.context, known, journal, parts.identity, pace),
            waiting=Waiting(known, journal, pace),
            journal=journal,
            pace=pace,
        )

    async def run(self) -> RunEnded:
        return await self._parts.activities.conduct(self._course, self._stop)

    async def _course(self) -> str:
        activities, observer = self._parts.activities, self._parts.observer
        activities.start("observe", observer.run(self._late_stop))
        activities.enter("setup")
        await self._seen()
        await self._player.harming.look("start")
        activities.enter("faults")
        played = await self._player.play(self._scenario, self._halt.event)
        await asyncio.sleep(self._pace.scale(TAIL_S))
        activities.enter("drain")
        await observer.read_events()
        await self._player.harming.look("end")
        return "" if played or self._halt.event.is_set() else "the scenario could not be played to its end"

    async def _stop(self) -> None:
        self._late_stop.set()
        await self._parts.activities.wait("observe", _STOP_S)

    async def _seen(self) -> None:
        """Bounded: a target of which nothing is seen is judged as unknown step by step."""
        limit_t = self._parts.journal.now() + _SEEN_S
        view = self._known.view
        while self._parts.journal.now() < limit_t:
            answering = [node for node in self._names.nodes if view.reachable(node)]
            told = [node for node in answering if view.facet(node, "deployments") is not None]
            named = [node for node in answering if view.facet(node, "node_id") is not None]
            if view.masters and len(told) == len(named) == len(self._names.nodes):
                return
            await asyncio.sleep(_LOOK_S)


def _describe(stand: Stand, workload: Workload, scenario: Scenario, name: str, clock: RunClock) -> RunInfo:
    return replace(
        describe_run(name, stand, clock),
        workload={"name": workload.name, "models": []},  # nothing is sent: no recovery is to be judged
        plan={
            "name": f"verify {scenario.name}",
            "kinds": {},
            "requires": [*scenario.proves, "as-expected"],
            "scenario": scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        },
    )
