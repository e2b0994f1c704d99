"""At pace 1 the embedded cluster keeps the times that were measured on exo 0.3.70."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rig.lab.exo.api_types import ChatRequest
from rig.lab.exo.behaviour import Behaviour, Timers, exo_0_3_70, sound, timers_for
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Simulation

MakeCluster = Callable[..., Simulation]
EXO = replace(exo_0_3_70(), deaf_election_chance=0.0)


def logic_of(sim: Simulation, name: str) -> NodeLogic:
    logic = sim.logic(name)
    assert logic is not None
    return logic


def master_of(sim: Simulation) -> str:
    return next(n for n in sim.names if (logic := sim.logic(n)) is not None and logic.is_master)


def host_of(sim: Simulation, model: str) -> str:
    (instance,) = logic_of(sim, master_of(sim)).state.instances_of(model)
    return next(n for n in sim.names if logic_of(sim, n).node_id == instance.nodes[0])


def when(sim: Simulation, condition: Callable[[], bool], within_s: float) -> float:
    """Seconds until `condition` holds, looked at every 0.1 s."""
    start = sim.now
    while not condition():
        assert sim.now - start < within_s, "the condition never held"
        sim.run_until(sim.now + 0.1)
    return sim.now - start


def serves(sim: Simulation, node: str, model: str = "lab/tiny-a") -> bool:
    request = sim.chat(node, ChatRequest(model, streamed=True, max_tokens=1))
    sim.run_until(sim.now + 0.4)
    return request.how == "finish"


def statuses(sim: Simulation, node: str, model: str) -> list[str]:
    state = logic_of(sim, node).state
    (instance,) = state.instances_of(model)
    return [state.runners[r].state for r in instance.runners]


def test_start_up(make_cluster: MakeCluster) -> None:
    """A restarted node is in the others' state after 4-5 s, its links are complete after at most 22 s."""
    sim = make_cluster(EXO)
    name = next(n for n in sim.names if n != master_of(sim))
    sim.crash(name)
    sim.run_until(sim.now + 60.0)
    sim.start(name)
    other, new_id = master_of(sim), logic_of(sim, name).node_id
    assert 3.0 < when(sim, lambda: new_id in logic_of(sim, other).state.nodes, 10.0) < 5.5
    edges = logic_of(sim, other).state.edges
    assert when(sim, lambda: len([e for e in edges if new_id in e]) == 4, 25.0) < 18.0


def test_silence_election_and_time_out(make_cluster: MakeCluster) -> None:
    sim = make_cluster(EXO, models={"lab/tiny-a": 1})
    master, host = master_of(sim), host_of(sim, "lab/tiny-a")
    victim = next(n for n in sim.names if n != master) if host == master else host
    lines = len(sim.log(master))
    frozen_at, victim_id = sim.now, logic_of(sim, victim).node_id
    sim.freeze(victim)
    elected = when(sim, lambda: len(sim.log(master)) > lines, 20.0)
    assert 10.4 - 1.0 + 3.2 <= elected <= 10.6 + 3.4  # silence counts from the last heartbeat
    assert sim.log(master)[-1][1] == "Node elected Master - maintaining self"
    when(sim, lambda: victim_id not in logic_of(sim, master).state.nodes, 50.0)
    assert 29.0 <= sim.now - frozen_at <= 41.0


def test_a_killed_master_is_succeeded_at_once_and_the_keeper_serves_after_about_23_s(make_cluster: MakeCluster) -> None:
    kept = replace(EXO, deployments_outlive_master=True)
    sim = make_cluster(kept, models={"lab/tiny-a": 1})
    old = master_of(sim)
    sim.crash(old)
    survivor = next(n for n in sim.names if n != old)
    assert 3.1 <= when(sim, lambda: any(logic_of(sim, n).is_master for n in sim.names if n != old), 5.0) <= 3.5
    took = 3.3 + when(sim, lambda: serves(sim, survivor), 40.0)
    assert 19.0 <= took <= 25.0


def test_deployments_are_forgotten_by_a_new_master_in_exo(make_cluster: MakeCluster) -> None:
    for behaviour, kept in ((EXO, 0), (sound(), 1)):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        sim.crash(master_of(sim))
        sim.run_until(sim.now + 10.0)
        assert len(logic_of(sim, master_of(sim)).state.deployments) == kept


def test_instances_of_a_sound_cluster_survive_their_master(make_cluster: MakeCluster) -> None:
    clusters = [make_cluster(sound(), models={"lab/tiny-a": 1}, seed=seed) for seed in range(6)]
    sim = next(c for c in clusters if master_of(c) != host_of(c, "lab/tiny-a"))
    master, host = master_of(sim), host_of(sim, "lab/tiny-a")
    before = set(logic_of(sim, host).state.instances)
    sim.crash(master)
    assert when(sim, lambda: serves(sim, host), 10.0) < 6.0
    sim.run_until(sim.now + 60.0)
    assert set(logic_of(sim, host).state.instances) == before


@pytest.mark.parametrize(("model", "nodes", "low", "high"), [("lab/tiny-a", 1, 2.0, 7.2), ("lab/tiny-b", 2, 3.5, 12.0)])
def test_a_killed_runner_comes_back_in_its_instance(
    make_cluster: MakeCluster, model: str, nodes: int, low: float, high: float
) -> None:
    for behaviour in (EXO, sound()):
        sim = make_cluster(behaviour, models={model: nodes})
        master, host = master_of(sim), host_of(sim, model)
        before = set(logic_of(sim, master).state.instances)
        sim.kill_runner(host, sim.runners(host)[0])
        seen = when(sim, lambda: "RunnerFailed" in statuses(sim, master, model), 5.2)  # noqa: B023 - used at once
        back = when(sim, lambda: set(statuses(sim, master, model)) == {"RunnerReady"}, 15.0)  # noqa: B023
        assert low <= seen + back <= high
        assert set(logic_of(sim, master).state.instances) == before
        assert serves(sim, host, model)


def test_the_fifth_kill_of_one_instance_deletes_it_in_exo(make_cluster: MakeCluster) -> None:
    for behaviour, survives in ((EXO, False), (sound(), True)):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        master, host = master_of(sim), host_of(sim, "lab/tiny-a")
        (before,) = logic_of(sim, master).state.instances
        for _ in range(4):
            sim.kill_runner(host, sim.runners(host)[0])
            sim.run_until(sim.now + 10.0)
            assert list(logic_of(sim, master).state.instances) == [before]
        sim.kill_runner(host, sim.runners(host)[0])
        sim.run_until(sim.now + 10.0)
        assert (before in logic_of(sim, master).state.instances) is survives


def under_load(sim: Simulation, model: str) -> None:
    for node in sim.names:
        sim.chat(node, ChatRequest(model, streamed=True, prompt_tokens=5, max_tokens=400))
    sim.run_until(sim.now + 2.0)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_ring_that_breaks_under_load_wedges_its_survivor_in_exo(make_cluster: MakeCluster, rank: int) -> None:
    for behaviour, wedged in ((EXO, True), (sound(), False)):
        sim = make_cluster(behaviour, models={"lab/tiny-b": 2})
        under_load(sim, "lab/tiny-b")
        (instance,) = logic_of(sim, master_of(sim)).state.instances.values()
        names = [next(n for n in sim.names if logic_of(sim, n).node_id == node) for node in instance.nodes]
        sim.kill_runner(names[rank], instance.runners[rank])
        sim.run_until(sim.now + 60.0)
        assert serves(sim, names[0], "lab/tiny-b") is not wedged
        if wedged:  # SIGKILL of the hung runner cures it, but ends exo on the other nodes
            sim.kill_runner(names[1 - rank], instance.runners[1 - rank])
            sim.run_until(sim.now + 1.0)
            assert [n for n in sim.names if sim.logic(n) is None] == [n for n in sim.names if n != names[1 - rank]]


def test_a_long_freeze_under_load_wedges_the_ring_in_exo(make_cluster: MakeCluster) -> None:
    for hold_s, wedged in ((10.0, False), (24.0, True)):
        sim = make_cluster(EXO, models={"lab/tiny-b": 2})
        under_load(sim, "lab/tiny-b")
        (instance,) = logic_of(sim, master_of(sim)).state.instances.values()
        names = [next(n for n in sim.names if logic_of(sim, n).node_id == node) for node in instance.nodes]
        victim = next(n for n in names if not logic_of(sim, n).is_master)
        sim.freeze(victim)
        sim.run_until(sim.now + hold_s)
        sim.resume(victim)
        sim.run_until(sim.now + 30.0)
        assert serves(sim, master_of(sim), "lab/tiny-b") is not wedged


def test_replay_in_exo_and_snapshot_in_sound(make_cluster: MakeCluster) -> None:
    """A rejoining node replays at about 500 events a second and shows old instances; a sound one is there at once."""
    for behaviour, low, high in ((EXO, 3.0, 7.0), (sound(), 0.0, 0.6)):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        master = master_of(sim)
        for _ in range(8):  # events: tokens
            sim.chat(master, ChatRequest("lab/tiny-a", streamed=True, max_tokens=300))
        sim.run_until(sim.now + 20.0)
        behind = logic_of(sim, master).replica.next_index
        assert behind > 2000
        victim = next(n for n in sim.names if n not in (master, host_of(sim, "lab/tiny-a")))
        sim.crash(victim)
        sim.start(victim)
        when(sim, lambda: logic_of(sim, victim).session == logic_of(sim, master).session, 6.0)  # noqa: B023
        took = when(sim, lambda: logic_of(sim, victim).replica.caught_up, 20.0)  # noqa: B023
        assert low <= took <= high
        assert abs(took - behind / 500.0) < 1.5 or behaviour.snapshot


def test_a_resumed_old_master_brings_its_old_state_in_exo_and_follows_in_sound(make_cluster: MakeCluster) -> None:
    for behaviour, old_wins in ((replace(EXO, deployments_outlive_master=True), True), (sound(), False)):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        old = master_of(sim)
        session = logic_of(sim, old).session
        sim.freeze(old)
        sim.run_until(sim.now + 20.0)
        others = [n for n in sim.names if n != old]
        assert any(logic_of(sim, n).is_master for n in others)
        sim.resume(old)
        sim.run_until(sim.now + 10.0)
        assert logic_of(sim, old).is_master is old_wins
        assert all((logic_of(sim, n).session == session) is old_wins for n in sim.names)


def test_both_sides_of_a_partition_elect_and_agree_again_after_it(make_cluster: MakeCluster) -> None:
    for behaviour in (EXO, sound()):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        alone = next(n for n in sim.names if not logic_of(sim, n).is_master)
        sim.partition([alone])
        sim.run_until(sim.now + 20.0)
        assert sum(logic_of(sim, n).is_master for n in sim.names) == 2
        sim.heal()
        sim.run_until(sim.now + 12.0)
        assert sum(logic_of(sim, n).is_master for n in sim.names) == 1
        assert len({logic_of(sim, n).session for n in sim.names}) == 1


def test_a_restarted_node_has_a_new_id_and_leaves_a_ghost(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    victim = next(n for n in sim.names if not logic_of(sim, n).is_master)
    old_id = logic_of(sim, victim).node_id
    sim.crash(victim)
    sim.start(victim)
    assert logic_of(sim, victim).node_id != old_id
    sim.run_until(sim.now + 6.0)
    assert len(logic_of(sim, master_of(sim)).state.nodes) == 4
    assert 20.0 < when(sim, lambda: old_id not in logic_of(sim, master_of(sim)).state.nodes, 45.0) < 36.0


def test_pace_divides_what_is_waiting_and_not_what_is_work() -> None:
    paced = Timers().paced(10.0)
    assert paced.node_timeout_s == 3.0
    assert paced.keeper_grace_s == 1.5
    assert paced.replay_events_per_s == 5000.0
    assert (paced.token_s, paced.flush_s) == (Timers().token_s, Timers().flush_s)
    assert timers_for(sound(), pace=10.0, load_s=4.0).load_s == 0.4


def test_the_logic_at_a_pace_does_the_same_things_sooner() -> None:
    def run(behaviour: Behaviour, pace: float) -> list[str]:
        sim = Simulation(["n1", "n2", "n3"], behaviour=behaviour, timers=timers_for(behaviour, pace=pace), seed=3)
        sim.run_until(30.0 / pace)
        sim.ask("n1", lambda n, t: n.create_deployment(t, "lab/tiny-b", min_nodes=2))
        sim.run_until(45.0 / pace)
        return statuses(sim, "n3", "lab/tiny-b")

    assert run(sound(), 1.0) == run(sound(), 20.0) == ["RunnerReady", "RunnerReady"]


def test_a_node_that_left_and_returns_to_the_same_session_is_heard_again(make_cluster: MakeCluster) -> None:
    """What it says now must not be taken for what it said before it left."""
    sim = make_cluster(sound())
    master = master_of(sim)
    alone = next(n for n in sim.names if n != master)
    session = logic_of(sim, master).session
    sim.partition([alone])
    sim.run_until(sim.now + 50.0)
    assert logic_of(sim, alone).is_master
    assert logic_of(sim, alone).node_id not in logic_of(sim, master).state.nodes
    sim.heal()
    sim.run_until(sim.now + 12.0)
    assert {logic_of(sim, n).session for n in sim.names} == {session}
    assert logic_of(sim, alone).node_id in logic_of(sim, master).state.nodes


def test_old_state_does_not_leak_into_a_new_session(make_cluster: MakeCluster) -> None:
    """A node joins a session so young that it gets the events and not the state: what it knew before must go."""
    for seed in range(8):
        sim = make_cluster(sound(), models={"lab/tiny-a": 1}, seed=seed)
        old, host = master_of(sim), host_of(sim, "lab/tiny-a")
        if old != host:
            break
    else:
        raise AssertionError("no seed has master and host apart")
    alone = next(n for n in sim.names if n not in (old, host))
    sim.partition([alone])
    sim.run_until(sim.now + 30.0)
    sim.crash(old)
    sim.start(old)
    sim.run_until(sim.now + 25.0)
    (own,) = logic_of(sim, alone).state.instances  # of its own reign: the host had timed out there
    new = next(n for n in (old, host) if logic_of(sim, n).is_master)
    sim.heal()
    sim.run_until(sim.now + 8.0)
    assert logic_of(sim, alone).session == logic_of(sim, new).session
    assert logic_of(sim, new).replica.log.next_index < 256
    assert own not in logic_of(sim, new).state.instances
    assert set(logic_of(sim, alone).state.instances) == set(logic_of(sim, new).state.instances)


def test_masters_that_do_not_hear_each_other_out_are_found_out(make_cluster: MakeCluster) -> None:
    """After a deaf election two masters stay, until living peers are seen in another session for too long."""
    sim = make_cluster(replace(sound(), deaf_election_chance=1.0))
    victim = next(n for n in sim.names if not logic_of(sim, n).is_master)
    others = [n for n in sim.names if n != victim]
    sim.freeze(victim)
    sim.run_until(sim.now + 15.0)
    assert [logic_of(sim, n).is_master for n in others] == [True, True]
    sim.run_until(sim.now + 13.0)
    assert sum(logic_of(sim, n).is_master for n in others) == 1


def test_a_resumed_node_blames_nobody_for_its_own_pause(make_cluster: MakeCluster) -> None:
    """A frozen master that took the silence for the others' would time them out and take their instances away."""
    for behaviour, removed in ((sound(), False), (replace(sound(), notice_own_pause=False), True)):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
        master = master_of(sim)
        sim.freeze(master)
        sim.run_until(sim.now + 40.0)
        sim.resume(master)
        lines = [text for t, text in sim.log(master) if t >= sim.now]
        assert any("due to inactivity" in text for text in lines) is removed
