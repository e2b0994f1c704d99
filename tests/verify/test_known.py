"""Conditions of scenarios, judged by what the journal holds."""

from __future__ import annotations

from typing import Any

import pytest

from rig.journal.records import MasterSeen, Reachability, ViewChanged
from rig.run.scenarios.known import Known, Names
from rig.run.scenarios.scenario import Condition

A, B = "lab/tiny-a", "lab/tiny-b"


class Told:
    """Two nodes that agree on everything, told to `known` in the order of the calls."""

    def __init__(self) -> None:
        names = Names((A, B), ("node-1", "node-2"), {"a": A}, {"a": "d"}, {"mine": "h"})
        self.known = Known(names)
        for number in (1, 2):
            node = f"node-{number}"
            self.known.apply(Reachability(t=0, node=node, since_t=None, reachable=True))
            self.known.apply(ViewChanged(t=0, node=node, facet="node_id", since_t=None, value=f"id-{number}"))
        self.view("nodes", ["id-1", "id-2"])
        self.claim("node-1")

    def view(self, facet: Any, value: Any) -> None:
        for node in ("node-1", "node-2"):
            self.known.apply(ViewChanged(t=1, node=node, facet=facet, since_t=0, value=value))

    def claim(self, node: str) -> None:
        for other in ("node-1", "node-2"):
            self.known.apply(MasterSeen(t=1, node=other, is_master=other == node, source="log", at_t=1))

    def instances(self, **models: str) -> None:
        listed = {name: {"model": model, "runners": {"id-1": f"r-{name}"}, "port": 1} for name, model in models.items()}
        self.view("instances", listed)

    def deployment(self, instance: str | None = None, error: str | None = None) -> None:
        status = "cant_place" if error else "serving" if instance else "placing"
        told = {"model": A, "status": status, "instance": instance, "error": error, "min_nodes": 1}
        self.view("deployments", {"d": told})


def holds(told: Told, before: Told | None = None, **condition: Any) -> bool | None:
    earlier = (before or told).known.now()
    return told.known.holds(Condition(**condition), earlier)[0]


def test_placed_is_an_instance_that_was_not_there_before() -> None:
    told = Told()
    told.instances(i=A, k=B)
    before = told.known.now()
    assert told.known.holds(Condition(placed="a"), before)[0] is False
    told.instances(j=A, k=B)
    assert told.known.holds(Condition(placed="a"), before)[0] is True
    told.instances(i=A, m=B)
    assert told.known.holds(Condition(placed="a"), before)[0] is False


def test_serving_takes_every_runner_to_be_ready() -> None:
    told = Told()
    told.instances(i=A)
    told.view("runners", {"r-i": "RunnerLoading"})
    assert holds(told, serving="a") is False
    told.view("runners", {"r-i": "RunnerRunning"})
    assert holds(told, serving="a") is True


def test_alone_counts_the_model_whoever_placed_it() -> None:
    told = Told()
    told.instances(h=A)
    assert holds(told, alone="a") is True
    told.instances(h=A, i=A)
    assert holds(told, alone="a") is False


def test_refused_takes_a_reason_and_no_instance() -> None:
    told = Told()
    told.deployment(error="no memory")
    assert holds(told, refused="a") is True
    told.deployment()
    assert holds(told, refused="a") is False
    told.deployment(error="no memory")
    told.instances(i=A)
    assert holds(told, refused="a") is False


def test_gone_and_there_follow_the_instance_of_before() -> None:
    told = Told()
    told.instances(i=A, h=B)
    told.deployment(instance="i")
    before = told.known.now()
    assert told.known.holds(Condition(there="a"), before)[0] is True
    told.instances(j=A)
    assert told.known.holds(Condition(gone="a"), before)[0] is True
    assert told.known.holds(Condition(there="a"), before)[0] is False
    assert told.known.holds(Condition(there="mine"), before)[0] is False


def test_nothing_of_a_model() -> None:
    told = Told()
    told.instances(k=B)
    assert holds(told, nothing_of=1) is True
    assert holds(told, nothing_of=2) is False


@pytest.mark.parametrize(
    ("wanted", "with_all", "with_one"), [("all", True, False), ("fewer", False, True), (1, False, True)]
)
def test_nodes(wanted: Any, with_all: bool, with_one: bool) -> None:  # noqa: FBT001 (expectations)
    told = Told()
    assert holds(told, nodes=wanted) is with_all
    told.view("nodes", ["id-1"])
    assert holds(told, nodes=wanted) is with_one


def test_a_new_master_is_another_one() -> None:
    told = Told()
    before = told.known.now()
    assert told.known.holds(Condition(new_master=True), before)[0] is False
    told.claim("node-2")
    assert told.known.holds(Condition(new_master=True), before)[0] is True


def test_without_a_node_that_answers_nothing_is_known() -> None:
    told = Told()
    for node in ("node-1", "node-2"):
        told.known.apply(Reachability(t=2, node=node, since_t=1, reachable=False))
    assert holds(told, nothing_of=1) is None
