"""The keeper's promises, one by one, and that each switch breaks the promise it is named after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from rig.lab.exo.api_types import Reply
from rig.lab.exo.behaviour import Behaviour, exo_0_3_70, sound
from rig.lab.exo.events import (
    DeploymentPlacementFailed,
    InstanceCreated,
    InstanceDeleted,
)
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Simulation

MakeCluster = Callable[..., Simulation]


def master(sim: Simulation) -> NodeLogic:
    return next(n for name in sim.names if (n := sim.logic(name)) is not None and n.is_master)


class Placements:
    """When instances came and went, by the master's log looked at every 50 ms."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.created: list[tuple[float, str]] = []
        self.deleted: list[float] = []
        self.refused: list[tuple[float, str]] = []
        self._next = master(sim).replica.next_index
        self._watch()

    def _watch(self) -> None:
        log = master(self.sim).replica.log
        for entry in log.read(self._next, log.next_index - self._next):
            match entry.event:
                case InstanceCreated(instance):
                    self.created.append((self.sim.now, instance.model_id))
                case InstanceDeleted():
                    self.deleted.append(self.sim.now)
                case DeploymentPlacementFailed(_, reason):
                    self.refused.append((self.sim.now, reason))
                case _:
                    pass
        self._next = log.next_index
        self.sim.at(self.sim.now + 0.05, self._watch)


def deploy(sim: Simulation, model: str = "lab/tiny-a", min_nodes: int = 1) -> Reply:
    return cast("Reply", sim.ask("n1", lambda n, t: n.create_deployment(t, model, min_nodes=min_nodes)))


def status(sim: Simulation, model: str = "lab/tiny-a") -> dict[str, Any]:
    listed = cast("list[dict[str, Any]]", master(sim).deployments()["deployments"])
    (found,) = [d for d in listed if d["deployment"]["modelCard"]["modelId"] == model]
    return found


def the_instance(sim: Simulation) -> str:
    (instance,) = master(sim).state.instances
    return instance


def lose(sim: Simulation) -> None:
    """Delete the one instance there is, before or after it is ready."""
    instance = the_instance(sim)
    sim.ask("n2", lambda n, t: n.delete_instance(t, instance))


def test_deployed_placed_serving(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    reply = deploy(sim)
    assert (reply.status, reply.body["message"]) == (200, "Command received.")
    sim.run_until(sim.now + 0.3)
    assert status(sim)["status"] in ("placing", "starting")
    sim.run_until(sim.now + 1.3)
    assert status(sim)["status"] == "starting"
    assert status(sim)["deployment"]["instanceId"] == the_instance(sim)
    sim.run_until(sim.now + 3.0)
    assert status(sim)["status"] == "serving"


@pytest.mark.parametrize(("behaviour", "early"), [(sound(), False), (replace(sound(), keeper_grace=False), True)])
def test_nothing_is_placed_in_the_first_15_s(make_cluster: MakeCluster, behaviour: Behaviour, *, early: bool) -> None:
    sim = make_cluster(replace(behaviour, carry_instances=False), models={"lab/tiny-a": 1})
    old = next(n for n in sim.names if (logic := sim.logic(n)) is not None and logic.is_master)
    sim.crash(old)
    sim.run_until(sim.now + 3.4)
    elected_at, placements = sim.now, Placements(sim)
    sim.run_until(sim.now + 25.0)
    assert len(placements.created) == 1
    waited = placements.created[0][0] - elected_at
    assert (waited < 5.0) if early else (14.5 <= waited <= 17.0)


@pytest.mark.parametrize(("behaviour", "kept"), [(sound(), True), (replace(sound(), keeper_rate_limit=False), False)])
def test_one_placement_a_second_in_order_of_id(make_cluster: MakeCluster, behaviour: Behaviour, *, kept: bool) -> None:
    sim = make_cluster(behaviour)
    placements = Placements(sim)
    for model in ("lab/tiny-a", "lab/tiny-b", "lab/tiny-c"):
        deploy(sim, model)
    sim.run_until(sim.now + 5.0)
    times = [t for t, _ in placements.created]
    gaps = [b - a for a, b in pairwise(times)]
    assert len(gaps) == 2
    assert all(g >= 0.9 for g in gaps) is kept
    by_id = [d.model_id for _, d in sorted(master(sim).state.deployments.items())]
    assert [m for _, m in placements.created] == by_id or not kept


def losses(sim: Simulation, count: int) -> list[float]:
    """Lose the instance `count` times before it is ready; the waits until each next placement."""
    placements, waits = Placements(sim), list[float]()
    for _ in range(count):
        before = len(placements.created)
        lost_at = sim.now
        lose(sim)
        while len(placements.created) == before and sim.now < lost_at + 90.0:
            sim.run_until(sim.now + 0.1)
        waits.append(sim.now - lost_at)
    return waits


def test_lost_before_ready_waits_longer_each_time_and_ready_resets_it(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    deploy(sim)
    sim.run_until(sim.now + 1.6)
    waits = losses(sim, 5)
    assert [round(w / 10.0) for w in waits] == [1, 2, 4, 6, 6]
    assert all(w >= expected for w, expected in zip(waits, (10, 20, 40, 60, 60), strict=True))
    sim.run_until(sim.now + 5.0)
    assert status(sim)["status"] == "serving"
    assert losses(sim, 1)[0] < 1.5  # lost after ready: at once
    assert 10.0 <= losses(sim, 1)[0] <= 11.5  # and the backoff begins anew


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (replace(sound(), keeper_backoff=False), [0, 0, 0]),
        (replace(sound(), keeper_backoff_grows=False), [1, 1, 1]),
    ],
)
def test_backoff_defects(make_cluster: MakeCluster, behaviour: Behaviour, expected: list[int]) -> None:
    sim = make_cluster(behaviour)
    deploy(sim)
    sim.run_until(sim.now + 1.6)
    assert [round(w / 10.0) for w in losses(sim, 3)] == expected


@pytest.mark.parametrize(
    ("behaviour", "low", "high"),
    [
        (replace(sound(), keeper_backoff_when_ready=True), 9.5, 11.5),
        (replace(sound(), keeper_replaces=False), 60.0, 100.0),
    ],
)
def test_replacement_defects(make_cluster: MakeCluster, behaviour: Behaviour, low: float, high: float) -> None:
    sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
    assert low <= losses(sim, 1)[0] <= high


def test_a_deployment_does_not_name_an_instance_that_is_gone(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    deploy(sim)
    sim.run_until(sim.now + 1.6)
    lose(sim)
    sim.run_until(sim.now + 0.1)
    assert (status(sim)["status"], status(sim)["deployment"]["instanceId"]) == ("placing", None)


def test_a_runner_that_dies_before_ready_counts_as_a_loss_in_sound(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    placements = Placements(sim)
    deploy(sim)
    sim.run_until(sim.now + 1.6)
    (name,) = [n for n in sim.names if sim.runners(n)]
    sim.kill_runner(name, sim.runners(name)[0])
    sim.run_until(sim.now + 20.0)
    assert len(placements.created) == 2
    assert 10.0 <= placements.created[1][0] - placements.deleted[0] <= 11.5


def test_what_does_not_fit_says_why_once(make_cluster: MakeCluster) -> None:
    for behaviour, times in (
        (sound(), 1),
        (replace(sound(), keeper_reason_once=False), 4),
        (replace(sound(), keeper_says_why=False), 0),
    ):
        sim = make_cluster(behaviour)
        placements = Placements(sim)
        deploy(sim, "lab/too-big")
        sim.run_until(sim.now + 100.0)
        assert len(placements.refused) == times
        if times:
            assert {reason for _, reason in placements.refused} == {"No cycles found with sufficient memory"}
            assert status(sim, "lab/too-big")["status"] == "cant_place"
            gaps = [b[0] - a[0] for a, b in pairwise(placements.refused)]
            assert all(29.5 <= g <= 31.5 for g in gaps)
        else:
            assert status(sim, "lab/too-big")["status"] == "placing"


@pytest.mark.parametrize(("behaviour", "low", "high"), [(sound(), 0.0, 2.0), (
    replace(sound(), keeper_retries_on_change=False), 2.0, 35.0
)])  # fmt: skip
def test_tried_again_as_soon_as_links_change(
    make_cluster: MakeCluster, behaviour: Behaviour, low: float, high: float
) -> None:
    """Three nodes are wanted; the third comes back 3 s after an attempt by time, and its links some seconds later."""
    sim = make_cluster(behaviour)
    victim = next(n for n in sim.names if (logic := sim.logic(n)) is not None and not logic.is_master)
    sim.crash(victim)
    sim.run_until(sim.now + 60.0)
    placements = Placements(sim)
    sim.ask(next(n for n in sim.names if n != victim), lambda n, t: n.create_deployment(t, "lab/tiny-a", min_nodes=3))
    sim.run_until(sim.now + 31.5)
    assert len(placements.refused) == 1
    sim.start(victim)
    while len(master(sim).state.edges) < 6:
        sim.run_until(sim.now + 0.1)
    complete_at = sim.now
    sim.run_until(sim.now + 35.0)
    ((placed_at, _),) = placements.created
    assert low <= placed_at - complete_at <= high


def test_an_instance_placed_by_hand_is_adopted_and_left_alone(make_cluster: MakeCluster) -> None:
    for behaviour, instances in ((sound(), 1), (replace(sound(), keeper_adopts=False), 2)):
        sim = make_cluster(behaviour)
        sim.ask("n2", lambda n, t: n.place_instance(t, "lab/tiny-a"))
        sim.run_until(sim.now + 5.0)
        by_hand = the_instance(sim)
        reply = deploy(sim)
        sim.run_until(sim.now + 5.0)
        assert len(master(sim).state.instances) == instances
        if instances == 1:
            assert status(sim)["status"] == "serving"
            assert status(sim)["deployment"]["instanceId"] is None
        sim.ask("n3", lambda n, t, d=reply.body["deployment_id"]: n.delete_deployment(t, d))
        sim.run_until(sim.now + 5.0)
        assert list(master(sim).state.instances) == [by_hand]


def test_deleting_takes_the_keepers_instance_and_nothing_comes_back(make_cluster: MakeCluster) -> None:
    for behaviour, left in ((sound(), 0), (replace(sound(), delete_takes_instance=False), 1)):
        sim = make_cluster(behaviour)
        reply = deploy(sim)
        sim.run_until(sim.now + 5.0)
        sim.ask("n3", lambda n, t, d=reply.body["deployment_id"]: n.delete_deployment(t, d))
        sim.run_until(sim.now + 40.0)
        assert len(master(sim).state.instances) == left
        assert master(sim).state.deployments == {}


def test_deleting_during_a_placement(make_cluster: MakeCluster) -> None:
    for behaviour, left in ((sound(), 0), (replace(sound(), deleted_comes_back=True), 1)):
        sim = make_cluster(behaviour)
        placements = Placements(sim)
        reply = deploy(sim)
        # The placement is decided within a second and lands 0.2 s later: delete at each moment of that time.
        for _ in range(200):
            sim.run_until(sim.now + 0.01)
            if placements.created or _in_flight(sim):
                break
        sim.ask("n3", lambda n, t, d=reply.body["deployment_id"]: n.delete_deployment(t, d))
        sim.run_until(sim.now + 40.0)
        assert len(master(sim).state.instances) == left


def _in_flight(sim: Simulation) -> bool:
    return master(sim).placements_in_flight > 0


def test_a_second_deployment_is_409_and_an_unknown_one_404(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound(), models={"lab/tiny-a": 1})
    (existing,) = master(sim).state.deployments
    reply = deploy(sim)
    assert (reply.status, reply.body["error"]["message"]) == (
        409,
        f"lab/tiny-a is already kept running by deployment {existing}",
    )
    unknown = cast("Reply", sim.ask("n2", lambda n, t: n.delete_deployment(t, "no-such")))
    assert unknown.body == {
        "error": {"message": "Deployment not found", "type": "Not Found", "param": None, "code": 404}
    }
    assert deploy(sim, "no/such-model").status == 404


def test_two_at_the_same_moment_through_different_nodes_make_one(make_cluster: MakeCluster) -> None:
    for behaviour, count in ((sound(), 1), (replace(sound(), duplicates_refused=False), 2)):
        sim = make_cluster(behaviour)
        for name in ("n1", "n2"):
            sim.ask(name, lambda n, t: n.create_deployment(t, "lab/tiny-a"))
        sim.run_until(sim.now + 5.0)
        assert len(master(sim).state.deployments) == count


def test_double_placement_is_a_defect(make_cluster: MakeCluster) -> None:
    sim = make_cluster(replace(sound(), double_placement=True), models={"lab/tiny-a": 1})
    assert len(master(sim).state.instances) == 2


def test_a_ghost_and_a_zombie_stay(make_cluster: MakeCluster) -> None:
    for behaviour, nodes, instances in (
        (sound(), 2, 1),
        (replace(sound(), ghost_nodes=True), 3, 1),
        (replace(sound(), zombie_instances=True), 2, 1),
    ):
        sim = make_cluster(behaviour, models={"lab/tiny-b": 2})
        before = the_instance(sim)
        hosts = master(sim).state.instances[before].nodes
        victim = next(
            n for n in sim.names if (x := sim.logic(n)) is not None and x.node_id in hosts and not x.is_master
        )
        sim.crash(victim)
        sim.run_until(sim.now + 60.0)
        assert len(master(sim).state.nodes) == nodes
        assert len(master(sim).state.instances) == instances
        assert (before in master(sim).state.instances) is (behaviour != sound())


def test_with_deployments_that_outlive_their_master_the_flawed_cluster_has_a_correct_keeper(
    make_cluster: MakeCluster,
) -> None:
    sim = make_cluster(
        replace(exo_0_3_70(deployments_outlive_master=True), deaf_election_chance=0.0), models={"lab/tiny-a": 1}
    )
    old = next(n for n in sim.names if (logic := sim.logic(n)) is not None and logic.is_master)
    sim.crash(old)
    sim.run_until(sim.now + 30.0)
    assert status(sim)["status"] == "serving"
