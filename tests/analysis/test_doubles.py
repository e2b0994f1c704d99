"""More than one instance of a deployed model in the master's view."""

from __future__ import annotations

from typing import Any

from rig.journal.records import ApiCall, MasterSeen, ViewChanged
from rig.targets.exo.judged import watched
from rig.targets.exo.keeper.doubles import InstanceWatch
from tests.analysis.tape import A, B, Tape


def doubled(
    *names: str, since_t: float | None = 19.5, claimed_t: float = 10.0, call: ApiCall | None = None, **more: Any
) -> InstanceWatch:
    tape = Tape((A, B))
    tape.add(MasterSeen(t=claimed_t, node="n", is_master=True, source="log", at_t=claimed_t, at_error_s=0.2))
    tape.view(11, "n", "deployments", {"d": {"model": A}})
    if call is not None:
        tape.add(call)
    value = {name: {"model": A} for name in names} | {"x": {"model": B}, "y": {"model": B}} | more
    tape.add(ViewChanged(t=20, node="n", facet="instances", since_t=since_t, value=value))
    return watched(tape.analyse()).doubles


def place(what: Any = "place", subject: str | None = "i") -> ApiCall:
    return ApiCall(t=15, what=what, node="n", asked_t=14, status=200, model=A, subject=subject)


def test_they_are_named() -> None:
    (found,) = doubled("i", "j", odd=7).doubles
    assert (found.node, found.model, found.instances, found.since_t, found.seen_t) == ("n", A, ("i", "j"), 19.5, 20)


def test_one_of_a_model_is_as_it_should_be() -> None:
    found = doubled("i")
    assert (found.doubles, found.judged) == ([], 1)


def test_a_second_one_may_be_placed_by_hand() -> None:
    assert doubled("i", "j", call=place()).doubles == []
    assert len(doubled("i", "j", call=place(subject="k")).doubles) == 1
    assert len(doubled("i", "j", call=place(subject=None)).doubles) == 1
    assert len(doubled("i", "j", call=place("deploy")).doubles) == 1


def test_a_view_is_judged_when_the_claim_is_surely_older() -> None:
    assert doubled("i", "j", claimed_t=19.4).judged == 0
    assert doubled("i", "j", claimed_t=19.2).judged == 1
    assert doubled("i", "j", since_t=None).judged == 0
