"""Whose an instance is, when it was ready, and what was there before."""

from __future__ import annotations

from typing import Any

from rig.analysis.moments import Span
from rig.journal.records import ApiCall
from rig.targets.exo.keeper.chronicle import Chronicle, Entry
from rig.targets.exo.keeper.story import Story, tell

M = "lab/tiny-a"


def story(*said: tuple[str, dict[str, Any]], calls: tuple[ApiCall, ...] = (), history: int = 0) -> Story:
    """Entries one after another, each at the second of its order (from 1)."""
    entries = [Entry(n, name, data, Span(n - 0.5, float(n))) for n, (name, data) in enumerate(said, 1)]
    end = Entry(len(said) + 1, "end", {}, Span(100.0, 100.0))
    chronicle = Chronicle(
        node="n", node_id="a", session="s", exact=True, begun=Span(0.0, 0.0), entries=entries, end=end, period_s=1.0,
        history=history,
    )  # fmt: skip
    return tell(chronicle, calls, 30.0)


def created(instance: str, *runners: str, model: str = M) -> tuple[str, dict[str, Any]]:
    return "InstanceCreated", instance_of(*runners, model=model) | {"instance": instance}


def instance_of(*runners: str, model: str = M) -> dict[str, Any]:
    return {"model": model, "runners": {f"id-{n}": runner for n, runner in enumerate(runners)}}


def deleted(instance: str) -> tuple[str, dict[str, Any]]:
    return "InstanceDeleted", {"instance": instance}


def deployed(deployment: str = "d", model: str = M) -> tuple[str, dict[str, Any]]:
    return "DeploymentCreated", {"deployment": deployment, "model": model}


def undeployed(deployment: str = "d") -> tuple[str, dict[str, Any]]:
    return "DeploymentDeleted", {"deployment": deployment}


def placed(instance: str, deployment: str = "d") -> tuple[str, dict[str, Any]]:
    return "DeploymentPlaced", {"deployment": deployment, "instance": instance}


def refused(error: str, deployment: str = "d") -> tuple[str, dict[str, Any]]:
    return "DeploymentPlacementFailed", {"deployment": deployment, "error": error}


def runner(name: str, status: str = "RunnerReady") -> tuple[str, dict[str, Any]]:
    return "RunnerStatusUpdated", {"runner": name, "status": status}


def carried(**state: Any) -> tuple[str, dict[str, Any]]:
    return "StateCarried", state


def by_hand(asked_t: float, t: float, model: str = M, subject: str | None = None, what: Any = "place") -> ApiCall:
    return ApiCall(t=t, what=what, node="n", asked_t=asked_t, status=200, model=model, subject=subject)


def whose(told: Story) -> dict[str, str]:
    return {life.id: life.whose for life in told.lives.values()}


def test_a_life_is_from_its_making_up_to_its_end() -> None:
    life = story(created("i"), deleted("i"), deleted("i"), deleted("other")).lives["i"]
    assert [life.alive_at(order) for order in (0, 1, 2)] == [False, True, False]
    assert life.gone is not None
    assert life.gone.order == 2


def test_a_deployment_stands_from_its_making_up_to_its_deletion() -> None:
    told = story(deployed(), undeployed(), undeployed(), deployed("e", "other"))
    one = told.deployments["d"]
    assert [one.stands_at(order) for order in (0, 1, 2, 3)] == [False, True, False, False]
    assert told.deployed_at(M, 1) is one
    assert told.deployed_at(M, 3) is None
    assert told.deployed_at("other", 1) is None


def test_what_a_deployment_names_is_the_keepers() -> None:
    told = story(deployed(), refused("no memory"), created("i"), placed("i"), created("j"))
    assert whose(told) == {"i": "keeper", "j": "unknown"}
    one = told.deployments["d"]
    assert ([life.id for life in one.placements], one.error, told.lives["i"].deployment) == (["i"], None, "d")
    assert [error for _, error in one.refusals] == ["no memory"]
    assert [life.id for life in told.placements()] == ["i"]


def test_a_reason_stands_until_it_is_placed() -> None:
    assert story(deployed(), refused("no memory")).deployments["d"].error == "no memory"


def test_what_is_said_of_an_unknown_deployment_is_nobodys() -> None:
    told = story(created("i"), placed("i", "x"), refused("why", "x"), undeployed("x"))
    assert (whose(told), told.deployments) == ({"i": "unknown"}, {})


def test_what_says_neither_instance_nor_reason_changes_nothing() -> None:
    told = story(deployed(), ("DeploymentStatusUpdated", {"deployment": "d"}))
    assert (told.named, told.deployments["d"].error) == ({}, None)


def test_ready_is_when_every_runner_serves() -> None:
    told = story(created("i", "r", "q"), runner("r"), runner("q", "RunnerLoading"), runner("q", "RunnerRunning"))
    life = told.lives["i"]
    assert life.ready is not None
    assert (life.ready.order, life.was_ready) == (4, True)
    assert not story(created("i", "r", "q"), runner("r")).lives["i"].was_ready
    assert not story(created("i"), runner("r")).lives["i"].was_ready
    again = story(created("i", "r"), runner("r"), runner("r", "RunnerFailed"), runner("r")).lives["i"].ready
    assert again is not None
    assert again.order == 2


def test_what_is_asked_for_by_hand_is_nobody_elses() -> None:
    assert whose(story(created("i"), calls=(by_hand(0.2, 0.4),))) == {"i": "hand"}
    assert whose(story(created("i"), calls=(by_hand(0.2, 0.4, "other"),))) == {"i": "unknown"}
    assert whose(story(created("i"), calls=(by_hand(0.2, 0.4, what="delete-instance"),))) == {"i": "unknown"}
    assert whose(story(created("i"), calls=(by_hand(1.1, 1.2),))) == {"i": "unknown"}  # asked for later


def test_what_is_asked_for_appears_in_time() -> None:
    late = [("NodeReported", {"node": "x"})] * 32
    assert whose(story(*late, created("i"), calls=(by_hand(2.2, 2.6),)))["i"] == "hand"
    assert whose(story(*late, created("i"), calls=(by_hand(2.2, 2.4),)))["i"] == "unknown"


def test_what_a_deployment_adopted_is_by_hand_only_if_it_is_the_one_asked_for() -> None:
    adopted = (deployed(), created("i"), placed("i"))
    assert whose(story(*adopted, calls=(by_hand(1.2, 1.4, subject="i"),))) == {"i": "hand"}
    assert whose(story(*adopted, calls=(by_hand(1.2, 1.4, subject="j"),))) == {"i": "keeper"}
    assert whose(story(*adopted, calls=(by_hand(1.2, 1.4, subject="j"), by_hand(1.2, 1.4, subject="i")))) == {
        "i": "hand"
    }


def test_a_session_begins_with_what_was_there() -> None:
    state = carried(
        instances={"i": instance_of("r"), "j": instance_of("q", "p"), "k": instance_of()},
        deployments={"d": {"model": M, "instance": "i", "error": "why"}, "e": {"model": "x", "instance": "gone"}},
        runners={"r": "RunnerRunning", "q": "RunnerReady", "p": "RunnerLoading"},
    )
    told = story(state, runner("p"), created("new"), placed("i"), calls=(by_hand(0.2, 0.4),))
    assert whose(told) == {"i": "carried", "j": "carried", "k": "carried", "new": "hand"}
    lives = told.lives
    assert [lives[name].was_ready for name in "ijk"] == [True, True, False]
    assert (lives["i"].ready, lives["i"].deployment, lives["j"].deployment) == (None, "d", None)
    assert lives["j"].ready is not None
    assert (told.deployments["d"].error, told.deployments["d"].placements) == (None, [])
    assert not story(state).lives["j"].was_ready
    assert story(state).deployments["d"].error == "why"


def test_what_is_carried_over_again_while_it_is_there_is_the_same() -> None:
    told = story(created("i", "r"), carried(instances={"i": instance_of("r")}))
    assert (whose(told), told.lives["i"].since) == ({"i": "unknown"}, 0)


def test_what_went_and_is_carried_over_again_lived_twice() -> None:
    told = story(created("i", "r"), deleted("i"), carried(instances={"i": instance_of("r")}))
    assert [(name, life.alive_at(1), life.alive_at(2), life.alive_at(3)) for name, life in told.lives.items()] == [
        ("i", False, False, True),
        ("i, which went", True, False, False),
    ]


def test_what_came_before_the_run_is_how_things_stood() -> None:
    told = story(
        deployed(),
        created("gone", "g"),
        placed("gone"),
        deleted("gone"),
        refused("no memory"),
        created("i", "r"),
        placed("i"),
        runner("r"),
        deployed("e", "x"),
        undeployed("e"),
        ("NodeTimedOut", {"node": "y"}),
        ("NodeReported", {"node": "x"}),
        refused("later"),
        history=12,
    )
    assert whose(told) == {"i": "carried"}
    life, one = told.lives["i"], told.deployments["d"]
    assert (life.made, life.ready, life.was_ready, list(told.deployments)) == (None, None, True, ["d"])
    assert (one.made, one.from_before, one.placements) == (None, True, [])
    assert [error for _, error in one.refusals] == ["later"]
    assert [change.name for change in told.changes] == ["NodeReported"]


def test_a_session_that_is_all_of_before_the_run_has_only_how_things_stood() -> None:
    told = story(deployed(), created("i"), history=50)
    assert (whose(told), told.deployments["d"].from_before) == ({"i": "carried"}, True)
    assert story(deployed()).deployments["d"].from_before is False
