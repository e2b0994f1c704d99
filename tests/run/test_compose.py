"""One composition: nothing by which a run touches the world has a default, and scenarios have a soak's safeguards."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rig.config.inventory import Embedded
from rig.config.workload import Workload
from rig.injection.aim import AimContext
from rig.injection.fault import Identity
from rig.journal.read import read_run
from rig.journal.records import ActivityDied, AnyRecord, LockLost, RunEnded, Step
from rig.journal.write import Journal
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.loop import VirtualLoop
from rig.load.client import LoadDriver
from rig.load.prober import Prober
from rig.observe.observer import Observer
from rig.run import soak
from rig.run.compose import Parts, put_together
from rig.run.deployments import DeploymentsPosted
from rig.run.scenarios.read import load_scenario
from rig.run.scenarios.run import journal_scenario
from rig.run.soak import SoakRun, soak_on
from rig.run.stand import Stand
from rig.targets.exo.fields import ExoModel

WORKLOAD = Workload(name="few", models=[ExoModel(model="lab/tiny-a")])


@pytest.mark.parametrize(
    "made", [Stand, Parts, AimContext, Identity, Observer, SoakRun, put_together, soak_on, journal_scenario]
)
def test_nothing_of_a_run_has_a_default(made: Callable[..., Any]) -> None:
    parameters = inspect.signature(made).parameters.values()
    assert [one.name for one in parameters if one.default is not inspect.Parameter.empty] == []


def called_in(module: ModuleType, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


@pytest.mark.parametrize("part", [LoadDriver, Prober, DeploymentsPosted])
def test_a_soak_leaves_nothing_to_the_defaults_of_its_parts(part: Callable[..., Any]) -> None:
    """Others may: `rig load` has no pace, for one."""
    (call,) = called_in(soak, part.__name__)
    parameters = list(inspect.signature(part).parameters)
    given = {*parameters[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
    assert set(parameters) - given == set()


def play(folder: Path, prepare: Callable[[Stand], tuple[Stand, Callable[[AnyRecord], None]]]) -> list[AnyRecord]:
    """A scenario on simulated nodes. `prepare` may change what it stands on, and gets every record."""
    scenario = load_scenario("deploy-places")
    cluster = VirtualCluster(Embedded(pace=10.0, seed=1), folder)

    async def main(loop: VirtualLoop) -> None:
        stand, listen = prepare(cluster.stand(loop))
        await journal_scenario(stand, WORKLOAD, scenario, folder, listen)

    cluster.run(main, limit_s=120.0)
    return list(read_run(folder).records())


def test_a_scenario_says_at_once_since_when_its_lock_was_lost(tmp_path: Path) -> None:
    def prepare(stand: Stand) -> tuple[Stand, Callable[[AnyRecord], None]]:
        def lose(record: AnyRecord) -> None:
            if isinstance(record, Step) and record.state == "done" and not stand.halt.event.is_set():
                stand.halt.unlock(asyncio.get_running_loop().time() - 0.1, "a lock on a node was lost")

        return stand, lose

    records = play(tmp_path, prepare)
    (lost,) = [record for record in records if isinstance(record, LockLost)]
    (ended,) = [record for record in records if isinstance(record, RunEnded)]
    assert lost.since_t == pytest.approx(lost.t - 0.1, abs=0.01)
    assert (ended.reason, ended.detail) == ("aborted", "a lock on a node was lost")
    assert sum(isinstance(record, Step) and record.state == "done" for record in records) == 1


def test_a_scenario_whose_observation_dies_has_failed(tmp_path: Path) -> None:
    async def dies(_: Journal) -> None:
        await asyncio.sleep(3.0)
        raise ZeroDivisionError("of all things")

    records = play(tmp_path, lambda stand: (dataclasses.replace(stand, health=dies), lambda _: None))
    (died,) = [record for record in records if isinstance(record, ActivityDied)]
    (ended,) = [record for record in records if isinstance(record, RunEnded)]
    assert (died.activity, died.detail) == ("observe", "ZeroDivisionError: of all things")
    assert (ended.reason, ended.detail) == ("failed", "observe died: ZeroDivisionError: of all things")
