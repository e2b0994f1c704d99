"""A whole soak under virtual time: the rig's own code against simulated nodes, quickly, and the same each time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rig.analysis.analyse import Analysis, analyse_run
from rig.analysis.verdict import verdict_of
from rig.config.inventory import Embedded
from rig.config.workload import Lengths, Workload
from rig.errors import ClusterError
from rig.faults.plan.plan import KindPlan, Plan, settings_of
from rig.journal.read import read_run
from rig.journal.records import AnyRecord, LockLost, Own, RunEnded
from rig.lab.simulated.soak import simulated_soak
from rig.soak.run import SoakRun
from rig.targets.exo.fields import ExoModel

PACE = 6.0
WORKLOAD = Workload(
    name="few",
    models=[ExoModel(model="lab/tiny-a"), ExoModel(model="lab/tiny-b", min_nodes=2)],
    clients=4,
    output_tokens=Lengths(low=3, high=6),
)
PLAN = Plan(
    name="two",
    gap=(10.0, 20.0),
    baseline=30.0,
    settle=90.0,
    kinds={"node-crash": KindPlan(hold=(5.0, 10.0)), "partition": KindPlan(hold=(15.0, 20.0))},
)


def soak(folder: Path, seed: int, *, length_s: float = 35.0, limit_s: float = 200.0) -> RunEnded:
    folder.mkdir()
    spec = Embedded(pace=PACE, seed=seed)
    return simulated_soak(spec, WORKLOAD, PLAN, length_s=length_s, folder=folder, seed=seed, limit_s=limit_s)


def story(folder: Path) -> list[tuple[float, str]]:
    """What happened when; not what the rig measured of this machine."""
    records: list[AnyRecord] = list(read_run(folder).records())
    return [(round(record.t, 6), type(record).__name__) for record in records if not isinstance(record, Own)]


def test_a_simulated_soak_is_a_soak_and_follows_from_its_seed(tmp_path: Path) -> None:
    assert soak(tmp_path / "a", 5).reason == "finished"
    analysis: Analysis = analyse_run(read_run(tmp_path / "a"))
    assert sum(fault.effective for fault in analysis.faults) >= 2
    assert {fault.kind for fault in analysis.faults if fault.effective} == {"node-crash", "partition"}
    assert analysis.requests.total.completed > 100
    assert analysis.requests.total.lost == 0
    failed = [check.name for check in verdict_of(analysis).checks if check.status == "fail"]
    assert failed == []
    assert analysis.info.inventory["emulated"]["simulated"] is True
    soak(tmp_path / "b", 5)
    assert story(tmp_path / "a") == story(tmp_path / "b")


def test_a_simulation_is_bounded_in_real_time(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="not done in time"):
        soak(tmp_path / "a", 5, length_s=100_000.0, limit_s=0.5)


def test_what_a_simulated_node_cannot_do_is_skipped_with_its_reason(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"kinds": {"cpu-hog": settings_of("cpu-hog", hold=(5.0, 10.0))}})
    folder = tmp_path / "a"
    folder.mkdir()
    simulated_soak(Embedded(pace=PACE, seed=5), WORKLOAD, plan, length_s=35.0, folder=folder, seed=5, limit_s=200.0)
    faults = analyse_run(read_run(folder)).faults
    assert {(fault.kind, fault.state) for fault in faults} == {("cpu-hog", "skipped")}
    assert {fault.reason for fault in faults} == {"a simulated node cannot do what cpu-hog.sh does"}


def test_a_run_that_lost_its_lock_says_at_once_since_when_and_fails_no_target(tmp_path: Path) -> None:
    async def taken(run: SoakRun) -> None:
        under_load = asyncio.Event()
        run.journal.subscribe(lambda record: under_load.set() if run.phase == "baseline" and record.t > 4 else None)
        await under_load.wait()
        run.halt.unlock(asyncio.get_running_loop().time() - 1.5, "a lock on a node was lost: taken by another rig")

    spec = Embedded(pace=PACE, seed=3)
    simulated_soak(spec, WORKLOAD, PLAN, length_s=35.0, folder=tmp_path, seed=3, limit_s=200.0, beside=taken)
    run = read_run(tmp_path)
    (lost,) = [record for record in run.records() if isinstance(record, LockLost)]
    (ended,) = [record for record in run.records() if isinstance(record, RunEnded)]
    assert lost.since_t == pytest.approx(lost.t - 1.5, abs=0.05)
    assert (ended.reason, ended.t > lost.t) == ("aborted", True)
    analysis = analyse_run(run)
    assert analysis.unlocked_t == lost.since_t
    assert verdict_of(analysis).exit_code == 3
