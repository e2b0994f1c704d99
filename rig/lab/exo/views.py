"""What a node's API shows, in exo's shapes: `/state`, `/deployments`, `/v1/models`, `/instance/previews`.

State and deployments are camelCase, previews' outer fields snake_case, as exo has them. `wall` turns a
time on the node's monotonic clock into Unix seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from rig.lab.exo import events as ev
from rig.lab.exo.event_views import events_json
from rig.lab.exo.models import Model
from rig.lab.exo.placement import CannotPlace, place
from rig.lab.exo.replica import Replica
from rig.lab.exo.shapes import (
    Json,
    camelise,
    deployment_json,
    instance_json,
    memory_json,
    network_json,
    runner_json,
    shard_json,
    task_json,
)
from rig.lab.exo.state import ClusterState

__all__ = [
    "deployment_status",
    "deployments",
    "encode",
    "events_json",
    "models_json",
    "previews",
    "state_json",
    "state_part",
]

_API_PORT = 52415
_DISK_BYTES = 256 * 1024**3  # every emulated disk: that big, half full


# /state


def state_json(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    """The whole of `GET /state`."""
    state = replica.state
    return {name: part(replica, models, wall) for name, part in _PARTS.items()} | {
        "lastEventAppliedIdx": replica.next_index - 1,
        "deployments": {i: camelise(deployment_json(d, models)) for i, d in state.deployments.items()},
    }


def state_part(
    replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float], path: list[str]
) -> tuple[bool, Any]:
    """`GET /state/instances` and deeper: (found, value). Only the part asked for is built."""
    if not path:
        return True, state_json(replica, models, wall)
    head, *rest = path
    if head == "lastEventAppliedIdx":
        value: Any = replica.next_index - 1
    elif head == "deployments":
        value = {i: camelise(deployment_json(d, models)) for i, d in replica.state.deployments.items()}
    elif head in _PARTS:
        value = _PARTS[head](replica, models, wall)
    else:
        return False, None
    for key in rest:
        if not isinstance(value, dict) or key not in value:
            return False, None
        value = cast("Json", value)[key]
    return True, value


def _instances(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {i: camelise(instance_json(x, models)) for i, x in replica.state.instances.items()}


def _runners(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {i: camelise(runner_json(s)) for i, s in replica.state.runners.items()}


def _downloads(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    def entry(node_id: str, model: Model) -> Json:
        shard = camelise(shard_json(model.card(), 0, 1, (0, model.layers, model.layers)))
        return {
            "DownloadCompleted": {
                "nodeId": node_id,
                "shardMetadata": {"PipelineShardMetadata": shard},
                "modelDirectory": f"/opt/exo/models/{model.model_id.replace('/', '--')}",
                "total": {"inBytes": model.size_bytes},
                "readOnly": True,
            }
        }

    return {node_id: [entry(node_id, m) for m in models.values()] for node_id in replica.state.nodes}


def _tasks(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    state = replica.state
    return {i: camelise(task_json(t, state, models)) for i, t in state.tasks.items()}


def _last_seen(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    def text(t: float) -> str:
        return datetime.fromtimestamp(wall(t), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return {n: text(t) for n, t in replica.state.last_seen.items()}


def _topology(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    state = replica.state
    connections: dict[str, dict[str, Any]] = {}
    for (source, sink), edge in state.edges.items():
        address = f"/ip4/{edge.address}/tcp/{_API_PORT}"
        connections.setdefault(source, {})[sink] = [
            {
                "sinkMultiaddr": {
                    "address": address,
                    "address_type": "ip4",
                    "ip_address": edge.address,
                    "port": _API_PORT,
                }
            }
        ]
    return {"nodes": list(state.nodes), "connections": connections}


def _identities(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {
        n: {
            "modelId": "Unknown Model",
            "chipId": "Unknown Chip",
            "friendlyName": i.name,
            "osVersion": "Linux",
            "osBuildVersion": "Unknown",
        }
        for n, i in replica.state.known.items()
    }


def _memory(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: camelise(memory_json(i)) for n, i in replica.state.nodes.items() if i.ram_total}


def _disk(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {
        n: {"total": {"inBytes": _DISK_BYTES}, "available": {"inBytes": _DISK_BYTES // 2}} for n in replica.state.nodes
    }


def _network(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: camelise(network_json(i)) for n, i in replica.state.nodes.items()}


def _backends(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: list(i.backends) for n, i in replica.state.known.items() if i.backends}


def _empty(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Any:
    return {}


def _no_cycles(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Any:
    return []


_PARTS: dict[str, Callable[[Replica, Mapping[str, Model], Callable[[float], float]], Any]] = {
    "instances": _instances,
    "runners": _runners,
    "downloads": _downloads,
    "tasks": _tasks,
    "lastSeen": _last_seen,
    "topology": _topology,
    "nodeIdentities": _identities,
    "nodeMemory": _memory,
    "nodeDisk": _disk,
    "nodeSystem": _empty,
    "nodeNetwork": _network,
    "nodeThunderbolt": _empty,
    "nodeThunderboltBridge": _empty,
    "nodeRdmaCtl": _empty,
    "nodeBackends": _backends,
    "thunderboltBridgeCycles": _no_cycles,
    "instanceLinks": _empty,
    "prefillServerPorts": _empty,
    "customModelCards": _empty,
}


# the rest of the API


def deployment_status(deployment: ev.Deployment, state: ClusterState, *, by_name: bool = False) -> str:
    """serving | starting | placing | cant_place. `by_name`: the wrong way, see `Behaviour.status_by_name`."""
    if by_name and deployment.instance_id is not None:
        return "serving"
    present = state.instances_of(deployment.model_id)
    if any(state.is_ready(i) for i in present):
        return "serving"
    if present:
        return "starting"
    return "cant_place" if deployment.placement_error is not None else "placing"


def deployments(state: ClusterState, models: Mapping[str, Model], *, by_name: bool = False) -> dict[str, object]:
    """`GET /deployments`."""
    return {
        "deployments": [
            {"deployment": camelise(deployment_json(d, models)), "status": deployment_status(d, state, by_name=by_name)}
            for _, d in sorted(state.deployments.items())
        ]
    }


def models_json(models: Mapping[str, Model], created: int) -> Json:
    """`GET /v1/models`; `created` in Unix seconds."""
    data = [
        {
            "id": m.model_id,
            "object": "model",
            "created": created,
            "owned_by": "exo",
            "hugging_face_id": m.model_id,
            "name": m.model_id.rpartition("/")[2],
            "description": "",
            "context_length": 8192,
            "tags": [],
            "storage_size_megabytes": max(1, m.size_bytes // 1024**2),
            "supports_tensor": True,
            "tasks": ["TextGeneration"],
            "is_custom": False,
            "family": m.family,
            "quantization": "",
            "base_model": m.base_model,
            "capabilities": ["text"],
            "reasoning_dialect": "none",
        }
        for m in models.values()
    ]
    return {"object": "list", "data": data}


def previews(
    replica: Replica, models: Mapping[str, Model], model_id: str, new_id: Callable[[], str], port: int
) -> Json:
    """`GET /instance/previews?model_id=…`: for each sharding and kind one a size, and the first refusal."""
    model, state = models.get(model_id), replica.state
    found: dict[tuple[str, str, int], Json] = {}
    for sharding in ("Pipeline", "Tensor") if model is not None else ():
        for meta in ("MlxRing", "MlxJaccl"):
            for size in range(1, len(state.nodes) + 1):
                preview = _preview(state, models, models[model_id], sharding, meta, size, new_id, port)
                key = sharding, meta, len(preview["memory_delta_by_node"] or ())
                found.setdefault(key, preview)
    return {"previews": list(found.values())}


def _preview(
    state: ClusterState,
    models: Mapping[str, Model],
    model: Model,
    sharding: str,
    meta: str,
    size: int,
    new_id: Callable[[], str],
    port: int,
) -> Json:
    head: Json = {"model_id": model.model_id, "sharding": sharding, "instance_meta": meta}
    try:
        placed = place(state, model, sharding=sharding, instance_meta=meta, min_nodes=size)
    except CannotPlace as refusal:
        return head | {"instance": None, "memory_delta_by_node": None, "error": refusal.reason}
    instance = ev.Instance(
        instance_id=new_id(),
        model_id=model.model_id,
        sharding=placed.sharding,
        instance_meta=placed.instance_meta,
        nodes=placed.nodes,
        runners=tuple(new_id() for _ in placed.nodes),
        addresses=tuple(state.nodes[n].address for n in placed.nodes),
        port=port,
        layers=placed.layers,
    )
    share, rest = divmod(model.size_bytes, len(placed.nodes))
    delta = {n: share + (1 if rank < rest else 0) for rank, n in enumerate(placed.nodes)}
    return head | {
        "instance": camelise(instance_json(instance, models)),
        "memory_delta_by_node": delta,
        "error": None,
    }


def encode(value: Any) -> bytes:
    """Compact JSON of any view."""
    return msgspec.json.encode(value)
