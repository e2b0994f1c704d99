from __future__ import annotations

import json
from typing import Any

import pytest

from rig.targets.exo import shapes
from tests.observe.api import DATA, STATE

B9, C7, F4 = "b9bd7b7626dac658a9440a4e67d2e39d", "c71496d203d4b1c041b18678517ed583", "4f890f33bc2ed7fcf6fdf7ba562c1160"


def _load(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def test_instances_of_a_captured_state() -> None:
    instances = shapes.instances(STATE["instances"])
    assert instances["423624f8-6f1c-4e62-a1a0-0521dc5fe276"] == {
        "model": "lab/tiny-a",
        "runners": {B9: "6a400727-c742-46d3-b53e-129a30d42513"},
        "port": 51361,
    }
    pair = instances["bac2cb9d-48e2-4d38-a087-2a0bf8b0f5e7"]
    assert pair["model"] == "lab/tiny-b"
    assert len(pair["runners"]) == 2


def test_topology_of_a_captured_state() -> None:
    nodes, links = shapes.nodes_and_links(STATE["topology"])
    assert nodes == [F4, B9, C7]
    assert links == sorted([source, sink] for source in nodes for sink in nodes if source != sink)


def test_a_link_without_a_connection_is_none() -> None:
    assert shapes.nodes_and_links({"nodes": ["b", "a"], "connections": {"a": {"b": []}, "b": {"a": [{}]}}}) == (
        ["a", "b"],
        [["b", "a"]],
    )


def test_runners_and_memory_of_a_captured_state() -> None:
    assert set(shapes.runners(STATE["runners"]).values()) == {"RunnerReady"}
    total = STATE["nodeMemory"][B9]["ramTotal"]["inBytes"]
    memory = shapes.memory(STATE["nodeMemory"])
    assert set(memory) == {F4, B9, C7}
    assert abs(memory[B9] - 8589934592) <= total / 200


def test_deployments_as_a_flat_list() -> None:
    deployments = shapes.deployments(_load("deployments_mixed.json"))
    assert [(view["model"], view["status"]) for view in deployments.values()] == [
        ("lab/tiny-a", "serving"),
        ("lab/tiny-b", "serving"),
        ("lab/too-big", "cant_place"),
    ]
    assert deployments["3bff123b-2291-49c3-b55a-4f351f1cb11c"] == {
        "model": "lab/tiny-b",
        "status": "serving",
        "instance": "bac2cb9d-48e2-4d38-a087-2a0bf8b0f5e7",
        "error": None,
        "min_nodes": 2,
    }


def test_deployments_upstream() -> None:
    deployments = shapes.deployments(_load("deployments_upstream_cant_place.json"))
    big = next(view for view in deployments.values() if view["model"] == "lab/too-big")
    assert big == {
        "model": "lab/too-big",
        "status": "cant_place",
        "instance": None,
        "error": "No cycles found with sufficient memory",
        "min_nodes": 1,
    }
    assert {view["status"] for view in deployments.values()} == {"serving", "cant_place"}


def test_deployments_in_the_state_have_no_status() -> None:
    deployments = shapes.deployments(_load("state_deployments_upstream.json"))
    assert {view["model"] for view in deployments.values()} >= {"lab/tiny-b", "lab/too-big"}
    assert {view["status"] for view in deployments.values()} == {None}


def test_no_deployments() -> None:
    assert shapes.deployments(_load("deployments_upstream_after_master_crash.json")) == {}
    assert shapes.deployments([]) == {}
    assert shapes.deployments(None) == {}


def test_requests_among_the_tasks() -> None:
    instance = "38ffba7e-2ac5-4671-8d51-dd235ff93ecd"
    assert dict(shapes.tasks(_load("tasks.json"))) == {
        "730564ba-e182-402f-8fb0-03b65ab98b53": instance,
        "97ebea9c-fc7c-40c3-a323-3f7ddd0a0a33": instance,
    }


def test_missing_keys_and_nulls_are_not_known() -> None:
    nothing: dict[str, Any] = {"model": None, "runners": {}, "port": None}
    assert shapes.instances({"i": {"MlxRingInstance": {}}}) == {"i": nothing}
    assert shapes.instances({"i": {"MlxRingInstance": None}}) == {"i": nothing}
    assert shapes.instances({"i": {"NewInstance": {"shardAssignments": None}}}) == {"i": nothing}
    assert shapes.nodes_and_links({}) == ([], [])
    assert shapes.memory({"n": None}) == {}


def test_both_spellings_and_both_writings_of_a_tag() -> None:
    snake = {"type": "MlxRingInstance", "ephemeral_port": 5, "shard_assignments": {"model_id": "m"}}
    assert shapes.instances({"i": snake})["i"] == {"model": "m", "runners": {}, "port": 5}
    assert shapes.runners({"r": "RunnerReady", "s": {"RunnerLoading": {"layersLoaded": 1}}}) == {
        "r": "RunnerReady",
        "s": "RunnerLoading",
    }


NO_INSTANCES: list[Any] = ["text", 7, [], {"i": 7}, {"i": {"A": {}, "B": {}}}, {"i": {"A": {"shardAssignments": 3}}}]


@pytest.mark.parametrize("raw", NO_INSTANCES)
def test_what_is_no_instances_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="not a"):
        shapes.instances(raw)


NO_DEPLOYMENTS: list[Any] = [7, [7], [{}], {"a": 7}, [{"deployment": {"modelId": "m"}}]]
NO_TOPOLOGY: list[Any] = [7, {"nodes": 7}, {"nodes": [7]}, {"nodes": [{}]}, {"nodes": [], "connections": []}]


@pytest.mark.parametrize("raw", NO_DEPLOYMENTS)
def test_what_is_no_deployments_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"not an object|without an id"):
        shapes.deployments(raw)


@pytest.mark.parametrize("raw", NO_TOPOLOGY)
def test_what_is_no_topology_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"not a|no id"):
        shapes.nodes_and_links(raw)


@pytest.mark.parametrize("raw", [None, "", 7, True, {}])
def test_what_is_no_id_or_index_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="not a text"):
        shapes.node_id(raw)
    if raw != 7 or raw is True:
        with pytest.raises(ValueError, match="not a number"):
            shapes.event_index(raw)
