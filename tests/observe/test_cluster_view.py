from __future__ import annotations

from typing import Any

import pytest

from rig.journal.records import AnyRecord, Facet, MasterSeen, Reachability, ViewChanged
from rig.observe.cluster_view import ClusterView
from rig.targets.exo.api import Exo


def _view(node: str, facet: Facet, value: Any) -> ViewChanged:
    return ViewChanged(t=1, node=node, facet=facet, since_t=None, value=value)


def _reach(node: str, *, reachable: bool) -> Reachability:
    return Reachability(t=1, node=node, since_t=None, reachable=reachable)


INSTANCES = {"i": {"model": "m", "runners": {"A": "r1", "B": "r2"}, "port": 50000}}
START: list[AnyRecord] = [
    _reach("a", reachable=True),
    _reach("b", reachable=True),
    _view("a", "node_id", "A"),
    _view("b", "node_id", "B"),
    _view("a", "event_index", 100),
    _view("b", "event_index", 90),
    _view("a", "instances", INSTANCES),
    _view("a", "runners", {"r1": "RunnerReady", "r2": "RunnerRunning"}),
    _view("a", "nodes", ["A", "B", "GHOST"]),
    _view("b", "instances", {}),
]


@pytest.fixture
def view() -> ClusterView:
    view = ClusterView(["a", "b"], Exo())
    for record in START:
        view.apply(record)
    return view


def test_instances_are_told_by_names_of_the_inventory(view: ClusterView) -> None:
    instance = view.instances()["i"]
    assert instance.workers == {"a": "r1", "b": "r2"}
    assert (instance.model, instance.port, instance.ready, instance.strangers) == ("m", 50000, True, ())
    assert view.instances(of="b") == {}


def test_an_instance_is_ready_when_every_runner_is(view: ClusterView) -> None:
    view.apply(_view("a", "runners", {"r1": "RunnerReady", "r2": "RunnerLoading"}))
    assert not view.instances()["i"].ready
    view.apply(_view("a", "runners", {"r1": "RunnerReady"}))
    assert not view.instances()["i"].ready


def test_a_restarted_node_keeps_its_name_for_both_ids_but_its_ghost_is_not_live(view: ClusterView) -> None:
    assert view.live_nodes() == ["a", "b"]
    view.apply(_view("b", "node_id", "B2"))
    assert (view.node_of("B"), view.node_of("B2"), view.node_of("GHOST")) == ("b", "b", None)
    assert view.live_nodes() == ["a"]


def test_an_unknown_node_is_a_stranger(view: ClusterView) -> None:
    view.apply(_view("a", "instances", {"i": {"model": "m", "runners": {"A": "r1", "X": "r2"}, "port": None}}))
    assert view.instances()["i"].workers == {"a": "r1"}
    assert view.instances()["i"].strangers == ("X",)


def test_the_best_view_is_a_master_s_that_answers_else_the_furthest(view: ClusterView) -> None:
    assert view.best() == "a"
    view.apply(MasterSeen(t=2, node="b", is_master=True, source="log", at_t=2))
    assert view.best() == "b"
    view.apply(_reach("b", reachable=False))
    assert view.best() == "a"
    view.apply(_reach("a", reachable=False))
    assert view.best() is None
    assert view.instances() == {}


def test_how_far_a_view_is_behind(view: ClusterView) -> None:
    assert (view.lag("a"), view.lag("b")) == (0, 10)
    view.apply(_reach("a", reachable=False))
    assert view.lag("b") is None


def test_before_anything_was_seen_nothing_is_known() -> None:
    view = ClusterView(["a"], Exo())
    assert (view.best(), view.reachable("a"), view.lag("a"), view.masters) == (None, None, None, frozenset())
    assert (view.instances(), view.deployments(), view.live_nodes()) == ({}, {}, [])
