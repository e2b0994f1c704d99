"""What the API shows has the shapes of real answers (`data/`, recorded from exo 0.3.70)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from rig.lab.exo import views
from rig.lab.exo.api_types import ChatRequest, Reply
from rig.lab.exo.behaviour import exo_0_3_70, sound
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Simulation

MakeCluster = Callable[..., Simulation]
DATA = Path(__file__).parent / "data"
_ID = re.compile(r"^[0-9a-f]{32}$|^[0-9a-f]{8}-[0-9a-f]{4}-")


def recorded(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def shape(value: Any) -> Any:
    """Keys and types. Ids as keys stand for each other; of a list or map of ids every different shape is kept once."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        if items and all(_ID.match(k) for k in items):
            return {"<id>": distinct(list(items.values()))}
        return {k: shape(v) for k, v in items.items()}
    if isinstance(value, list):
        return distinct(cast("list[Any]", value))
    if isinstance(value, bool) or value is None:
        return str(value)
    return "text" if isinstance(value, str) else "number"


def distinct(values: list[Any]) -> list[Any]:
    found = {json.dumps(s, sort_keys=True): s for s in (shape(v) for v in values)}
    return [found[k] for k in sorted(found)]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Simulation:
    sim = make_cluster(exo_0_3_70(), models={"lab/tiny-a": 1, "lab/tiny-b": 2, "lab/too-big": 1})
    sim.run_until(sim.now + 10.0)
    return sim


def a_node(sim: Simulation) -> NodeLogic:
    logic = sim.logic("n2")
    assert logic is not None
    return logic


def wall(t: float) -> float:
    return 1_795_994_779.0 + t


def state_of(sim: Simulation) -> dict[str, Any]:
    value = views.state_json(a_node(sim).replica, STOCK_MODELS, wall)
    return cast("dict[str, Any]", json.loads(views.encode(value)))


def test_state_has_the_recorded_shape(cluster: Simulation) -> None:
    got, want = state_of(cluster), recorded("state.json")
    assert set(got) == set(want)
    for part in set(want) - {"tasks", "deployments", "runners", "downloads", "instances"}:
        assert shape(got[part]) == shape(want[part]), part
    for part in ("runners", "instances", "downloads"):
        for one in shape(want[part])["<id>"]:
            assert one in shape(got[part])["<id>"], part
    kinds = {json.dumps(shape(t), sort_keys=True) for t in got["tasks"].values()}
    for task in want["tasks"].values():
        if "LoadModel" in task or "StartWarmup" in task or "ConnectToGroup" in task:
            assert json.dumps(shape(task), sort_keys=True) in kinds


def test_deployments_have_the_recorded_shape(cluster: Simulation) -> None:
    got, want = json.loads(views.encode(a_node(cluster).deployments())), recorded("deployments.json")
    assert shape(got) == shape(want)
    assert {d["deployment"]["modelCard"]["modelId"]: d["status"] for d in got["deployments"]} == {
        "lab/tiny-a": "serving",
        "lab/tiny-b": "serving",
        "lab/too-big": "cant_place",
    }
    in_state = state_of(cluster)["deployments"]
    assert {d["deployment"]["deploymentId"]: d["deployment"] for d in got["deployments"]} == in_state


def test_models_and_previews_have_the_recorded_shape(cluster: Simulation) -> None:
    assert shape(views.models_json(STOCK_MODELS, 1)) == shape(recorded("models.json"))
    ids = iter(f"{i:08x}-0000-4000-8000-000000000000" for i in range(1000))
    got = views.previews(a_node(cluster).replica, STOCK_MODELS, "lab/tiny-a", lambda: next(ids), 50000)
    want = recorded("previews.json")

    def cells(previews: dict[str, Any]) -> list[tuple[str, str, int, str | None]]:
        return [
            (p["sharding"], p["instance_meta"], len(p["memory_delta_by_node"] or ()), p["error"])
            for p in previews["previews"]
        ]

    assert cells(got) == cells(want)
    pipeline = [p for p in want["previews"] if p["sharding"] == "Pipeline"]
    assert shape([p for p in got["previews"] if p["sharding"] == "Pipeline"]) == shape(pipeline)


def test_a_preview_can_be_posted_as_an_instance(make_cluster: MakeCluster) -> None:
    sim = make_cluster(sound())
    node = a_node(sim)
    ids = iter(f"{i:08x}-0000-4000-8000-000000000000" for i in range(1000))
    previews = views.previews(node.replica, STOCK_MODELS, "lab/tiny-b", lambda: next(ids), 50000)["previews"]
    two = next(p for p in previews if len(p["memory_delta_by_node"] or ()) == 2)
    reply = cast("Reply", sim.ask("n3", lambda n, t: n.create_instance(t, two["instance"])))
    assert reply.status == 200
    sim.run_until(sim.now + 5.0)
    (instance,) = node.state.instances.values()
    body = two["instance"]["MlxRingInstance"]
    assert (instance.instance_id, instance.port) == (body["instanceId"], 50000)
    assert dict(zip(instance.nodes, instance.runners, strict=True)) == body["shardAssignments"]["nodeToRunner"]
    assert node.state.is_ready(instance)
    assert cast("Reply", sim.ask("n3", lambda n, t: n.create_instance(t, {"x": 1}))).status == 422


def test_sub_paths(cluster: Simulation) -> None:
    node, whole = a_node(cluster), state_of(cluster)
    for path in (["instances"], ["topology", "nodes"], ["lastEventAppliedIdx"], ["deployments"], []):
        found, value = views.state_part(node.replica, STOCK_MODELS, wall, path)
        want: Any = whole
        for key in path:
            want = want[key]
        assert found
        assert json.loads(views.encode(value)) == want
    for path in (["nothing"], ["topology", "nothing"], ["lastEventAppliedIdx", "deeper"]):
        assert views.state_part(node.replica, STOCK_MODELS, wall, path) == (False, None)


def test_events_are_one_array_whose_last_position_is_the_index(cluster: Simulation) -> None:
    cluster.chat("n1", ChatRequest("lab/tiny-a", streamed=True, max_tokens=40))
    cluster.run_until(cluster.now + 20.2)  # nobody is just telling anything
    arrays: list[list[dict[str, Any]]] = []
    for name in cluster.names:
        logic = cluster.logic(name)
        assert logic is not None
        arrays.append(json.loads(b"".join(views.events_json(logic.replica, STOCK_MODELS))))
        assert len(arrays[-1]) - 1 == views.state_part(logic.replica, STOCK_MODELS, wall, ["lastEventAppliedIdx"])[1]
    assert arrays[0] == arrays[1] == arrays[2]
    assert len({next(iter(e.values()))["event_id"] for e in arrays[0]}) == len(arrays[0])
    tokens = [e for e in arrays[0] if "TokenChunk" in e.get("ChunkGenerated", {}).get("chunk", {})]
    assert len(tokens) == 40
    got = {json.dumps(shape(e), sort_keys=True) for e in arrays[0]}
    for event in recorded("events.json"):
        if "NodeGatheredInfo" not in event and "DeploymentDeleted" not in event:
            assert json.dumps(shape(event), sort_keys=True) in got, event


def test_dead_entries_stay_in_exo_and_go_in_sound(make_cluster: MakeCluster) -> None:
    for behaviour, left in ((exo_0_3_70(), 3), (sound(), 2)):
        sim = make_cluster(behaviour)
        victim = next(n for n in sim.names if (x := sim.logic(n)) is not None and not x.is_master and n != "n2")
        sim.crash(victim)
        sim.run_until(sim.now + 60.0)
        got = state_of(sim)
        assert len(got["topology"]["nodes"]) == 2
        assert len(got["nodeIdentities"]) == len(got["nodeBackends"]) == left
