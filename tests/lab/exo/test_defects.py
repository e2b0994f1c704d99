"""What each switch that no rule of the keeper is about does, and that it does nothing when it is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rig.lab.exo.api_types import ChatRequest
from rig.lab.exo.behaviour import Behaviour, Timers, sound, timers_for
from rig.lab.exo.defects import DEFECTS, changes_of
from rig.lab.exo.effects import EndStream, StreamToken
from rig.lab.exo.simulated import Seen
from rig.lab.exo.simulation import Simulation

MakeCluster = Callable[..., Simulation]
A = "lab/tiny-a"


def masters(sim: Simulation) -> list[str]:
    return [name for name in sim.names if (logic := sim.logic(name)) is not None and logic.is_master]


def host_of(sim: Simulation, model: str = A) -> str:
    """The node that runs the model's one runner."""
    return next(name for name in sim.names if sim.runners(name) and model)


@pytest.mark.parametrize("stay", [False, True])
def test_two_masters_that_meet_again(make_cluster: MakeCluster, *, stay: bool) -> None:
    sim = make_cluster(replace(sound(), masters_stay=stay))
    (old,) = masters(sim)
    sim.partition([old])
    sim.run_until(sim.now + 40.0)
    assert len(masters(sim)) == 2
    sim.heal()
    sim.run_until(sim.now + 40.0)
    assert len(masters(sim)) == (2 if stay else 1)


@pytest.mark.parametrize("deadly", [False, True])
def test_a_killed_runner_ends_exo_elsewhere(make_cluster: MakeCluster, *, deadly: bool) -> None:
    sim = make_cluster(replace(sound(), runner_kill_ends_exo=deadly), models={A: 1})
    host = host_of(sim)
    sim.kill_runner(host, sim.runners(host)[0])
    sim.run_until(sim.now + 5.0)
    assert [name for name in sim.names if sim.logic(name) is None] == (
        [n for n in sim.names if n != host] if deadly else []
    )


@pytest.mark.parametrize("unnoticed", [False, True])
def test_a_dead_runner_that_nobody_notices_stays_ready(make_cluster: MakeCluster, *, unnoticed: bool) -> None:
    sim = make_cluster(replace(sound(), runner_death_unnoticed=unnoticed), models={A: 1})
    host = host_of(sim)
    killed = sim.runners(host)[0]
    sim.kill_runner(host, killed)
    sim.run_until(sim.now + 30.0)
    logic = sim.logic(masters(sim)[0])
    assert logic is not None
    assert logic.state.runners[killed].state in ("RunnerReady", "RunnerRunning")
    assert bool(sim.runners(host)) is not unnoticed


@pytest.mark.parametrize("blind", [False, True])
def test_a_restarted_node_that_sees_only_itself(make_cluster: MakeCluster, *, blind: bool) -> None:
    sim = make_cluster(replace(sound(), restarted_sees_itself=blind))
    other = next(name for name in sim.names if name not in masters(sim))
    sim.crash(other)
    sim.start(other)
    sim.run_until(sim.now + 60.0)
    seen = {name: len(logic.state.nodes) for name in sim.names if (logic := sim.logic(name)) is not None}
    assert seen == {name: 1 if blind and name == other else 3 for name in sim.names}


@pytest.mark.parametrize("endless", [False, True])
def test_elections_without_end_begin_with_the_first_loss(make_cluster: MakeCluster, *, endless: bool) -> None:
    sim = make_cluster(replace(sound(), endless_election=endless))

    def results(since: float) -> int:
        return sum(t > since and "lected" in text for t, text in sim.log(sim.names[0]))

    assert results(30.0) == 0
    sim.crash(sim.names[2])
    sim.start(sim.names[2])
    sim.run_until(sim.now + 30.0)
    since = sim.now
    sim.run_until(since + 60.0)
    assert (results(since) > 10) is endless


def test_orphans_are_left_where_runners_outlive_their_main(make_cluster: MakeCluster) -> None:
    behaviour = replace(sound(), runner_kill_ends_exo=True, runners_end_with_main=False)
    sim = make_cluster(behaviour, models={A: 3})
    host = sim.names[0]
    sim.kill_runner(host, sim.runners(host)[0])
    sim.run_until(sim.now + 5.0)
    assert [len(sim.orphans(name)) for name in sim.names] == [0, 1, 1]


def test_memory_that_is_never_given_back(make_cluster: MakeCluster) -> None:
    sim = make_cluster(replace(sound(), leak_memory=True, leak_bytes=1000), models={A: 1})
    host = host_of(sim)
    before = sim.memory_used(host)
    sim.kill_runner(host, sim.runners(host)[0])
    sim.run_until(sim.now + 15.0)
    assert sim.runners(host)
    assert sim.memory_used(host) == 2 * before + 1000
    sim.crash(host)
    assert sim.memory_used(host) >= 1000


def test_every_defect_names_fields_that_there_are() -> None:
    for name in DEFECTS:
        changes = changes_of([name], 3)
        assert isinstance(replace(sound(), **changes.behaviour), Behaviour)
        assert isinstance(timers_for(sound(), pace=10.0, changes=changes.timers), Timers)


def said(request: Said) -> str:
    return "".join(request.texts)


class Said:
    """What a client is sent, in its order."""

    def __init__(self, sim: Simulation, node: str, prompt: int, tokens: int = 12) -> None:
        self.texts: list[str] = []
        self.whole = False
        wanted = ChatRequest(A, streamed=True, max_tokens=tokens, prompt_hash=prompt)
        self.request = sim.chat(node, wanted, self._show)

    def _show(self, seen: Seen) -> None:
        match seen:
            case StreamToken(text=text):
                self.texts.append(text)
            case EndStream(how="finish", text=text):
                self.texts.append(text)
                self.whole = True
            case _:
                pass


def ask(sim: Simulation, prompt: int, *, node: str | None = None) -> str:
    """The whole answer, asked alone."""
    asked = Said(sim, node or host_of(sim), prompt)
    sim.run_until(sim.now + 10.0)
    assert asked.whole
    return said(asked)


def test_a_sound_cluster_answers_each_prompt_alike(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound(), models={A: 1})
    answers = {prompt: ask(sim, prompt) for prompt in (1, 2)}
    assert answers[1] != answers[2]
    assert [ask(sim, prompt, node=node) for prompt in (1, 2) for node in sim.names] == [
        answers[prompt] for prompt in (1, 2) for _ in sim.names
    ]
    together = [Said(sim, sim.names[prompt], prompt) for prompt in (1, 2)]
    sim.run_until(sim.now + 10.0)
    assert [said(asked) for asked in together] == [answers[1], answers[2]]
    sim.kill_runner(host_of(sim), sim.runners(host_of(sim))[0])
    sim.run_until(sim.now + 60.0)
    assert ask(sim, 1) == answers[1], "and after a reload"


@pytest.mark.parametrize("wrong", [False, True])
def test_another_shard_after_a_reload(make_cluster: MakeCluster, *, wrong: bool) -> None:
    sim = make_cluster(replace(sound(), wrong_shard_on_reload=wrong), models={A: 1})
    before = ask(sim, 1)
    assert ask(sim, 1) == before
    sim.kill_runner(host_of(sim), sim.runners(host_of(sim))[0])
    sim.run_until(sim.now + 60.0)
    assert (ask(sim, 1) != before) is wrong


@pytest.mark.parametrize(("chance", "count"), [(0.0, 1), (0.5, 2), (1.0, 1)])
def test_nodes_with_other_weights(make_cluster: MakeCluster, chance: float, count: int) -> None:
    behaviour = replace(sound(), odd_weights_chance=chance)
    assert len({ask(make_cluster(behaviour, models={A: 1}, seed=seed), 1) for seed in range(8)}) == count


@pytest.mark.parametrize("times", [0, 1, 2])
def test_the_first_token_after_a_pause(make_cluster: MakeCluster, times: int) -> None:
    sim = make_cluster(replace(sound(), sends_after_resume=times), models={A: 1}, token_s=0.2)
    host = host_of(sim)
    whole = Said(sim, host, 1)
    sim.run_until(sim.now + 10.0)
    expected = whole.texts
    paused = Said(sim, host, 1)
    sim.run_until(sim.now + 1.0)
    sim.freeze(host)
    came = len(paused.texts)
    assert 0 < came < 11
    sim.run_until(sim.now + 5.0)
    sim.resume(host)
    sim.run_until(sim.now + 10.0)
    assert paused.texts == [*expected[:came], *expected[came : came + 1] * times, *expected[came + 1 :]]


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_streams_are_swapped_once_a_runner_was_loaded_anew(make_cluster: MakeCluster, chance: float) -> None:
    sim = make_cluster(replace(sound(), swap_chance=chance), models={A: 1}, token_s=0.2)
    answers = [ask(sim, prompt) for prompt in (1, 2)]

    def together() -> list[str]:
        both = [Said(sim, host_of(sim), prompt) for prompt in (1, 2)]
        sim.run_until(sim.now + 10.0)
        assert all(asked.whole for asked in both)
        return [said(asked) for asked in both]

    assert together() == answers, "the first runner is sound"
    sim.kill_runner(host_of(sim), sim.runners(host_of(sim))[0])
    sim.run_until(sim.now + 60.0)
    assert together() == (answers[::-1] if chance else answers)


@pytest.mark.parametrize("stale", [False, True])
def test_the_answer_of_a_request_that_was_cancelled(make_cluster: MakeCluster, *, stale: bool) -> None:
    sim = make_cluster(replace(sound(), stale_after_cancel=stale), models={A: 1}, token_s=0.2)
    answers = [ask(sim, prompt) for prompt in (1, 2)]
    left = Said(sim, host_of(sim), 1)
    sim.run_until(sim.now + 1.0)
    sim.leave(left.request)
    sim.run_until(sim.now + 1.0)
    assert ask(sim, 2) == answers[0 if stale else 1]
    assert ask(sim, 2) == answers[1], "once"
