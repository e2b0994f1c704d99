"""What a client sees when things go wrong: the table of exo 0.3.70 as measured, and what a sound cluster says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rig.lab.exo.api_types import ChatRequest
from rig.lab.exo.behaviour import Behaviour, exo_0_3_70, sound
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Request, Simulation

MakeCluster = Callable[..., Simulation]
EXO = replace(exo_0_3_70(), deaf_election_chance=0.0)
LONG = 200  # tokens: 10 s at 0.05 s a token
OVER_S = 200.0


def ask(sim: Simulation, node: str, *, streamed: bool = True, tokens: int = LONG, model: str = "lab/tiny-a") -> Request:
    return sim.chat(node, ChatRequest(model, streamed=streamed, prompt_tokens=10, max_tokens=tokens))


def logic_of(sim: Simulation, name: str) -> NodeLogic:
    logic = sim.logic(name)
    assert logic is not None
    return logic


def host_of(sim: Simulation, model: str = "lab/tiny-a") -> str:
    """The node of rank 0."""
    state = next(n for name in sim.names if (n := sim.logic(name)) is not None).state
    (instance,) = state.instances_of(model)
    return next(name for name in sim.names if logic_of(sim, name).node_id == instance.nodes[0])


def master_of(sim: Simulation) -> str:
    return next(name for name in sim.names if logic_of(sim, name).is_master)


def a_cluster(make_cluster: MakeCluster, behaviour: Behaviour, *, host_is_master: bool = False) -> Simulation:
    """One where the model's host is (not) the master."""
    for seed in range(20):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1}, seed=seed)
        if (host_of(sim) == master_of(sim)) is host_is_master:
            return sim
    raise AssertionError("no seed gives such a cluster")


def both(sim: Simulation, node: str) -> tuple[Request, Request]:
    """A streamed request and one that is not, both with their first tokens."""
    requests = ask(sim, node), ask(sim, node, streamed=False)
    sim.run_until(sim.now + 2.0)
    assert all(r.tokens > 0 and r.how is None for r in requests)
    return requests


def test_normal_requests_finish_on_every_node(make_cluster: MakeCluster) -> None:
    for behaviour in (sound(), EXO):
        sim = make_cluster(behaviour, models={"lab/tiny-a": 1, "lab/tiny-b": 2})
        requests = [ask(sim, n, streamed=s, tokens=5, model=m) for n in sim.names for s in (True, False) for m in (
            "lab/tiny-a", "lab/tiny-b"
        )]  # fmt: skip
        sim.run_until(sim.now + 5.0)
        assert [(r.how, r.tokens) for r in requests] == [("finish", 4)] * 12


def test_no_instance_is_404(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    assert [ask(sim, "n1").how, ask(sim, "n2", model="no/such").how] == ["http 404", "http 404"]


@pytest.mark.parametrize(("behaviour", "ends"), [(EXO, ("clean_end", "cut_json")), (sound(), ("error_event", "abort"))])
def test_instance_deleted(make_cluster: MakeCluster, behaviour: Behaviour, ends: tuple[str, str]) -> None:
    sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
    requests = both(sim, "n2")
    (instance,) = logic_of(sim, "n2").state.instances
    sim.ask("n2", lambda n, t: n.delete_instance(t, instance))
    sim.run_until(sim.now + 1.0)
    assert tuple(r.how for r in requests) == ends


@pytest.mark.parametrize(
    ("behaviour", "ends"), [(EXO, ("error_event", "empty_body")), (sound(), ("error_event", "abort"))]
)
def test_runner_killed(make_cluster: MakeCluster, behaviour: Behaviour, ends: tuple[str, str]) -> None:
    sim = make_cluster(behaviour, models={"lab/tiny-a": 1})
    requests = both(sim, "n2")
    killed_at = sim.now
    sim.kill_runner(host_of(sim), sim.runners(host_of(sim))[0])
    sim.run_until(sim.now + 6.0)
    assert tuple(r.how for r in requests) == ends
    assert all(r.ended is not None and r.ended - killed_at <= 5.2 for r in requests)
    assert requests[0].message == "Runner shutdown before completing command (signal=9 (Killed))"


@pytest.mark.parametrize(
    ("behaviour", "ends", "low", "high"),
    [(EXO, ("clean_end", "cut_json"), 40.0, 51.0), (sound(), ("error_event", "abort"), 29.0, 41.0)],
)
def test_another_node_killed(
    make_cluster: MakeCluster, behaviour: Behaviour, ends: tuple[str, str], low: float, high: float
) -> None:
    sim = a_cluster(make_cluster, behaviour)
    host = host_of(sim)
    entry = next(n for n in sim.names if n not in (host, master_of(sim)))
    requests = both(sim, entry)
    killed_at = sim.now
    sim.crash(host)
    sim.run_until(sim.now + 60.0)
    assert tuple(r.how for r in requests) == ends
    for request in requests:
        assert request.ended is not None
        assert low <= request.ended - killed_at <= high


def test_own_node_killed_breaks_the_connection(make_cluster: MakeCluster) -> None:
    sim = make_cluster(EXO, models={"lab/tiny-a": 1})
    requests = both(sim, "n2")
    sim.crash("n2")
    assert [(r.how, r.ended) for r in requests] == [("broken", sim.now)] * 2


def test_master_killed_hangs_for_ever_in_exo_and_ends_soon_in_sound(make_cluster: MakeCluster) -> None:
    sim = a_cluster(make_cluster, EXO)
    master, host = master_of(sim), host_of(sim)
    entry = next(n for n in sim.names if n not in (master, host))
    requests = *both(sim, entry), ask(sim, host)
    sim.crash(master)
    sim.run_until(sim.now + 1.0)
    late = ask(sim, entry)
    sim.run_until(sim.now + OVER_S)
    assert [r.how for r in (*requests, late)] == [None] * 4

    sim = a_cluster(make_cluster, sound())
    master, host = master_of(sim), host_of(sim)
    entry = next(n for n in sim.names if n not in (master, host))
    requests = both(sim, entry)
    sim.crash(master)
    sim.run_until(sim.now + 1.0)
    late = ask(sim, entry, tokens=5)
    sim.run_until(sim.now + 4.0)
    assert [r.how for r in (*requests, late)] == ["error_event", "abort", "finish"]


def test_waits_for_an_instance_that_is_not_ready(make_cluster: MakeCluster) -> None:
    sim = make_cluster(EXO)
    sim.ask("n1", lambda n, t: n.place_instance(t, "lab/tiny-a"))
    sim.run_until(sim.now + 0.1)
    request = ask(sim, "n3", tokens=3)
    sim.run_until(sim.now + 0.5)
    assert (request.how, request.tokens) == (None, 0)
    sim.run_until(sim.now + 4.0)
    assert request.how == "finish"


def test_a_short_freeze_of_the_host_completes(make_cluster: MakeCluster) -> None:
    sim = a_cluster(make_cluster, EXO)
    host = host_of(sim)
    requests = both(sim, next(n for n in sim.names if n not in (host, master_of(sim))))
    sim.freeze(host)
    sim.run_until(sim.now + 4.0)
    sim.resume(host)
    sim.run_until(sim.now + 15.0)
    assert [r.how for r in requests] == ["finish", "finish"]


def test_a_host_frozen_45_s_is_dropped_and_the_stream_goes_on_in_exo(make_cluster: MakeCluster) -> None:
    """The instance goes one pass after the node: the host is back in between, as it was in the measurement (40.4 s)."""
    survived: list[bool] = []
    for seed in range(6):
        sim = make_cluster(EXO, models={"lab/tiny-a": 1}, seed=seed)
        host, master = host_of(sim), master_of(sim)
        if host == master:
            continue
        request = ask(sim, next(n for n in sim.names if n not in (host, master)))
        sim.run_until(sim.now + 2.0)
        sim.freeze(host)
        sim.run_until(sim.now + 41.5)
        assert len(logic_of(sim, master).state.nodes) == 2
        sim.resume(host)
        sim.run_until(sim.now + 20.0)
        survived.append(request.how == "finish")
    assert survived
    assert any(survived)


def test_a_stopped_runner_is_replaced_in_sound(make_cluster: MakeCluster) -> None:
    """The runner alone hangs: nobody dies, so progress has to be watched."""
    sim = make_cluster(replace(sound(), requests_hang=True), models={"lab/tiny-a": 1})
    requests = [ask(sim, "n1", tokens=2) for _ in range(60)]
    sim.run_until(sim.now + 61.0 + 5.0)
    hows = {r.how for r in requests}
    assert "error_event" in hows
    assert None not in hows
    assert any("makes no progress: killing it" in text for n in sim.names for _, text in sim.log(n))
    assert max((r.ended or sim.now) - r.started for r in requests) < 40.0  # not left to the request's own minute


def test_a_cancelled_request_frees_its_runner(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound(), models={"lab/tiny-a": 1})
    request = ask(sim, "n2", tokens=10_000)
    sim.run_until(sim.now + 2.0)
    (instance,) = logic_of(sim, "n1").state.instances.values()
    assert len(logic_of(sim, "n1").state.active_tasks(instance.instance_id)) == 1
    sim.ask("n2", lambda n, t: (None, n.client_gone(t, request.id)))
    sim.run_until(sim.now + 1.0)
    state = logic_of(sim, "n1").state
    assert state.active_tasks(instance.instance_id) == []
    assert state.runners[instance.runners[0]].state == "RunnerReady"
    assert request.id not in logic_of(sim, "n2").open_requests


def test_a_request_without_progress_ends_after_a_minute_in_sound(make_cluster: MakeCluster) -> None:
    """Also when nothing in the cluster says that its host is gone."""
    sim = a_cluster(make_cluster, replace(sound(), ghost_nodes=True))
    host = host_of(sim)
    entry = next(n for n in sim.names if n not in (host, master_of(sim)))
    requests = both(sim, entry)
    sim.crash(host)
    sim.run_until(sim.now + 58.0)
    assert [r.how for r in requests] == [None, None]
    sim.run_until(sim.now + 4.0)
    assert [r.how for r in requests] == ["error_event", "abort"]
