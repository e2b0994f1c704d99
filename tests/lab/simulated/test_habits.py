"""What the rig makes of exo's habits: a soak under virtual time with each of them for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rig.analysis.analyse import Analysis, analyse_run
from rig.analysis.verdict import verdict_of
from rig.config.inventory import Embedded
from rig.config.workload import Lengths, Workload
from rig.faults.plan.plan import KindPlan, Plan
from rig.injection.aim import find_master
from rig.journal.read import read_run
from rig.journal.records import AnyRecord, Finding, Redeployed, RequestEnded, ViewChanged
from rig.lab.exo.defects import Changes
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.soak import simulated_soak
from rig.targets.exo.api import CALL_TIMEOUT_S
from rig.targets.exo.fields import ExoModel

A, B = "lab/tiny-a", "lab/tiny-b"
WORKLOAD = Workload(
    name="ring", models=[ExoModel(model=B, min_nodes=2)], clients=2, output_tokens=Lengths(low=3, high=6)
)
PLAN = Plan(
    name="crash", gap=(10.0, 20.0), baseline=30.0, settle=90.0, kinds={"node-crash": KindPlan(hold=(5.0, 10.0))}
)
QUIET = {"deaf_election_chance": 0.0}


def soak(folder: Path, *, length_s: float, timers: Mapping[str, float] | None = None, **behaviour: Any) -> Analysis:
    folder.mkdir()
    simulated_soak(
        Embedded(pace=1.0, seed=5, behaviour="exo-0.3.70", habits=False),
        WORKLOAD,
        PLAN,
        length_s=length_s,
        folder=folder,
        seed=5,
        changes=Changes({**QUIET, "deployments_outlive_master": True, "ring_wedges": False, **behaviour}, timers or {}),
    )
    return analyse_run(read_run(folder))


def records(folder: Path) -> list[AnyRecord]:
    return list(read_run(folder).records())


def statuses(analysis: Analysis, *names: str) -> list[str]:
    found = {one.name: one.status for one in verdict_of(analysis).checks}
    return [found[name] for name in names]


def test_the_slow_first_deployment_is_waited_for(tmp_path: Path) -> None:
    soak(tmp_path / "run", length_s=40.0)
    (posted,) = [one for one in records(tmp_path / "run") if isinstance(one, Redeployed)]
    assert posted.ok
    assert "created" in posted.detail
    assert posted.t > 12.0 > CALL_TIMEOUT_S


def test_a_ring_that_never_connects_is_not_recovered(tmp_path: Path) -> None:
    analysis = soak(tmp_path / "run", length_s=200.0, ring_stays_idle_chance=1.0)
    check = next(one for one in verdict_of(analysis).checks if one.name == "recovered")
    assert check.status == "fail"
    assert any(f"(node-crash), {B}: " in line for line in check.evidence)
    (fault, *_) = [one for one in analysis.faults if one.effective]
    assert fault.healed_t is not None
    seen = [one for one in records(tmp_path / "run") if isinstance(one, ViewChanged) and one.facet == "runners"]
    idle = [one for one in seen if one.t > fault.healed_t and list(one.value.values())[-2:] == ["RunnerIdle"] * 2]
    assert idle  # what the report has to go by


def test_a_runner_that_crashes_on_every_request_is_an_error_that_was_told(tmp_path: Path) -> None:
    analysis = soak(tmp_path / "run", length_s=240.0, runner_crash_chance=0.5)
    ended = [one for one in records(tmp_path / "run") if isinstance(one, RequestEnded)]
    told = [one for one in ended if "Traceback (most recent call last)" in one.evidence]
    assert len(told) >= 5
    assert {one.outcome for one in told} == {"error"}
    assert [one.kind for one in analysis.faults] == ["node-crash"] * len(analysis.faults)  # no crash of its own is one
    assert statuses(analysis, "accounting", "recovered", "nobody-else-died", "nothing-left-behind") == ["pass"] * 4


def test_an_instance_that_was_ready_between_two_polls_alone_breaks_no_backoff(tmp_path: Path) -> None:
    """Its runner crashes on the first request after each warm-up. Nobody reads the log, and no view shows it ready."""
    analysis = soak(tmp_path / "run", length_s=40.0, timers={"event_read_s": 1.0}, runner_crash_chance=1.0)
    seen = [one for one in records(tmp_path / "run") if isinstance(one, ViewChanged) and one.facet == "instances"]
    assert len({name for one in seen for name in one.value}) > 5
    assert "fail" not in statuses(analysis, "backoff", "backoff-reset")


def test_an_event_log_that_is_not_answered_in_time_is_a_finding(tmp_path: Path) -> None:
    analysis = soak(tmp_path / "run", length_s=40.0, timers={"event_read_s": 0.05})
    found = [one for one in records(tmp_path / "run") if isinstance(one, Finding) and one.code == "event-log-unread"]
    assert found
    assert all("no answer in time" in one.text for one in found)
    assert statuses(analysis, "one-placement", "one-in-flight", "run-finished") == ["unknown", "unknown", "pass"]


def test_the_master_is_found_while_a_node_that_has_just_started_claims_to_be_it(tmp_path: Path) -> None:
    cluster = VirtualCluster(
        Embedded(pace=1.0, seed=5, behaviour="exo-0.3.70", habits=False), tmp_path, changes=Changes(QUIET)
    )

    async def main(_: Any) -> tuple[str, str, set[str]]:
        sim = cluster.sim
        master = next(name for name in sim.names if (one := sim.logic(name)) is not None and one.is_master)
        for other in sim.names:
            if other != master:
                sim.crash(other)
                await asyncio.sleep(20.0)
                sim.start(other)
                await asyncio.sleep(1.0)
                claiming = {name for name in sim.names if (one := sim.logic(name)) is not None and one.is_master}
                found, _odd = await find_master(cluster.connections(), asyncio.Event())
                return master, found, claiming
        raise AssertionError("one node alone")

    master, found, claiming = cluster.run(main, limit_s=100.0)
    assert len(claiming) == 2
    assert found == master
