"""What exo 0.3.70 does now and then, and what it costs to look at it, under virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rig.lab.exo.api_types import ChatRequest
from rig.lab.exo.behaviour import Behaviour, exo_0_3_70, named, sound, timers_for
from rig.lab.exo.context import Context
from rig.lab.exo.events import RunnerStatusUpdated
from rig.lab.exo.habits import Costs, falls_on
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Simulation
from tests.lab.exo.test_timing import logic_of, master_of, serves, when

MakeCluster = Callable[..., Simulation]
EXO = replace(exo_0_3_70(), deaf_election_chance=0.0, deployments_outlive_master=True)
A, B = "lab/tiny-a", "lab/tiny-b"


def states_of(sim: Simulation, node: str, model: str) -> list[str]:
    state = logic_of(sim, node).state
    runners = [runner for instance in state.instances_of(model) for runner in instance.runners]
    return [state.runners[runner].state if runner in state.runners else "" for runner in runners]


def test_chances_follow_from_the_seed_and_sound_has_none() -> None:
    chances = {(b.ring_stays_idle_chance, b.runner_crash_chance) for b in (named("exo-0.3.70", n) for n in range(20))}
    assert len(chances) == 20
    assert named("exo-0.3.70", 3) == named("exo-0.3.70", 3)
    assert all(0.1 <= ring <= 0.4 and 0.02 <= crash <= 0.1 for ring, crash in chances)
    assert named("sound", 3) == sound()
    fell = sum(falls_on("ring", f"instance-{n}", 0.3) for n in range(1000))
    assert 250 < fell < 350


def test_a_ring_rebuilt_after_a_crash_can_stay_idle_for_ever(make_cluster: MakeCluster) -> None:
    sim = make_cluster(replace(EXO, ring_stays_idle_chance=1.0), models={B: 2})
    assert serves(sim, master_of(sim), B)  # the first one is built before anything was lost
    victim = next(n for n in sim.names if n != master_of(sim) and sim.runners(n))
    sim.crash(victim)
    sim.run_until(sim.now + 5.0)
    sim.start(victim)
    before = set(logic_of(sim, master_of(sim)).state.instances)
    when(sim, lambda: bool(set(logic_of(sim, master_of(sim)).state.instances) - before), 90.0)
    sim.run_until(sim.now + 100.0)
    master = master_of(sim)
    assert states_of(sim, master, B) == ["RunnerIdle", "RunnerIdle"]
    assert any(text == "runner connecting" for name in sim.names for _, text in sim.log(name))
    told: Any = logic_of(sim, master).deployments()["deployments"]
    assert [one["status"] for one in told] == ["starting"]
    assert not serves(sim, master, B)


def test_without_that_the_ring_is_rebuilt(make_cluster: MakeCluster) -> None:
    sim = make_cluster(EXO, models={B: 2})
    victim = next(n for n in sim.names if n != master_of(sim) and sim.runners(n))
    sim.crash(victim)
    sim.run_until(sim.now + 5.0)
    sim.start(victim)
    sim.run_until(sim.now + 100.0)
    assert serves(sim, master_of(sim), B)


def test_a_runner_can_crash_on_every_request(make_cluster: MakeCluster) -> None:
    sim = make_cluster(replace(EXO, runner_crash_chance=1.0, instance_dies_at_kill=None), models={A: 1})
    master = master_of(sim)
    pids = {name: sim.processes(name)[0].pid for name in sim.names}
    for _ in range(3):
        request = sim.chat("n1", ChatRequest(A, streamed=True, max_tokens=5))
        when(sim, lambda r=request: r.how is not None, 10.0)
        assert (request.how, request.tokens) == ("error_event", 0)
        assert request.message.startswith("Traceback (most recent call last):")
        when(sim, lambda: states_of(sim, master, A) == ["RunnerWarmingUp"], 10.0)
        when(sim, lambda: states_of(sim, master, A) == ["RunnerReady"], 10.0)
    failed = [
        entry.event.status.error
        for entry in logic_of(sim, master).replica.log
        if isinstance(entry.event, RunnerStatusUpdated) and entry.event.status.state == "RunnerFailed"
    ]
    assert len(failed) == 3
    assert all(error.startswith("Traceback") for error in failed)
    assert {name: sim.processes(name)[0].pid for name in sim.names} == pids


def test_the_fifth_crash_of_an_instance_deletes_it_as_the_fifth_kill_does(make_cluster: MakeCluster) -> None:
    sim = make_cluster(replace(EXO, runner_crash_chance=1.0), models={A: 1})
    (first,) = logic_of(sim, master_of(sim)).state.instances
    crashes = 0
    while first in logic_of(sim, master_of(sim)).state.instances:
        request = sim.chat("n1", ChatRequest(A, streamed=True, max_tokens=5))
        when(sim, lambda r=request: r.how is not None, 10.0)
        crashes += 1
        assert crashes <= 5
    assert crashes == 5


@pytest.mark.parametrize("behaviour", [sound(), EXO])
def test_a_node_that_was_started_again_claims_to_be_master_for_a_few_seconds(
    make_cluster: MakeCluster, behaviour: Behaviour
) -> None:
    sim = make_cluster(behaviour)
    master = master_of(sim)
    other = next(n for n in sim.names if n != master)
    sim.crash(other)
    sim.run_until(sim.now + 15.0)
    sim.start(other)
    assert sim.log(other)[-1][1] == "Node elected Master - promoting self"
    assert 2.5 <= when(sim, lambda: not logic_of(sim, other).is_master, 10.0) <= 5.0
    assert logic_of(sim, master).is_master
    assert sim.log(other)[-1][1] == f"Node {logic_of(sim, master).node_id} elected master - demoting self"


@pytest.mark.parametrize("pace", [1.0, 5.0])
def test_what_a_look_costs_at_a_pace(pace: float) -> None:
    ctx = Context(
        "n", "a", exo_0_3_70(), timers_for(exo_0_3_70(), pace=pace), random.Random(1), STOCK_MODELS, 0, restarted=False
    )
    costs = Costs(ctx)
    one_s = costs.state(100.0, whole=False, open_requests=0)
    assert 0.09 / pace <= one_s <= 0.18 / pace
    behind_s = costs.state(100.0, whole=False, open_requests=0)  # it waits for the one before
    assert one_s + 0.09 / pace <= behind_s <= one_s + 0.18 / pace
    assert costs.state(200.0, whole=True, open_requests=4) == pytest.approx(2 * 0.5 / pace)
    assert costs.events(32_000, open_requests=0) == pytest.approx(16.0 / pace)
    assert costs.events(24_000, open_requests=4) > 20.0 / pace  # 95 s into a load of 12 clients on three nodes
    assert costs.deployment(300.0) == pytest.approx(12.0 / pace)
    assert costs.deployment(300.0 + 4.0 / pace) == pytest.approx(8.0 / pace)  # a second one meanwhile
    assert costs.deployment(313.0) == 0.0


def test_a_sound_node_answers_at_once(make_cluster: MakeCluster) -> None:
    logic: NodeLogic = logic_of(make_cluster(sound()), "n1")
    asked = [("GET", ["state"]), ("GET", ["state", "runners"]), ("GET", ["events"]), ("POST", ["deployments"])]
    assert [logic.takes(50.0, method, path) for method, path in asked] == [0.0] * 4
    logic = logic_of(make_cluster(EXO), "n1")
    assert all(logic.takes(50.0, method, path) > 0.0 for method, path in asked)
    assert logic.takes(50.0, "GET", ["node_id"]) == logic.takes(50.0, "GET", ["deployments"]) == 0.0
