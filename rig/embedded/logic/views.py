"""What a node's API shows, in exo's shapes: `/state`, `/deployments`, `/v1/models`, `/instance/previews`, `/events`.

State and deployments are camelCase, events and previews' outer fields snake_case, as exo has them. `wall` turns a
time on the node's monotonic clock into Unix seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

import msgspec

from rig.embedded.logic import events as ev
from rig.embedded.logic.models import Model
from rig.embedded.logic.placement import CannotPlace, place
from rig.embedded.logic.replica import Replica
from rig.embedded.logic.state import ClusterState

Json = dict[str, Any]
_API_PORT = 52415


@lru_cache(maxsize=4096)
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _camelise(value: Any) -> Any:
    """snake_case keys of nested dicts become camelCase. Ids are keys too; they hold no underscore and stay."""
    if isinstance(value, dict):
        items = cast("Mapping[str, Any]", value)
        return {_camel(k) if "_" in k else k: _camelise(v) for k, v in items.items()}
    if isinstance(value, list):
        return [_camelise(v) for v in cast("list[Any]", value)]
    return value


def _card(models: Mapping[str, Model], model_id: str) -> Json:
    return models[model_id].card() if model_id in models else {"model_id": model_id}


def instance_json(instance: ev.Instance, models: Mapping[str, Model]) -> Json:
    """snake_case, tagged by its kind."""
    model, world = models.get(instance.model_id), len(instance.nodes)
    layers = model.layers if model is not None else world
    tag = "TensorShardMetadata" if instance.sharding == "Tensor" else "PipelineShardMetadata"
    shards: Json = {}
    for rank, runner_id in enumerate(instance.runners):
        tensor = instance.sharding == "Tensor"
        shards[runner_id] = {
            tag: {
                "model_card": _card(models, instance.model_id),
                "device_rank": rank,
                "world_size": world,
                "immediate_exception": False,
                "should_timeout": None,
                "start_layer": 0 if tensor else rank * layers // world,
                "end_layer": layers if tensor else (rank + 1) * layers // world,
                "n_layers": layers,
            }
        }
    hosts: Json = {}
    for node_id in instance.nodes:
        hosts[node_id] = [
            {"ip": "0.0.0.0" if other == node_id else address, "port": instance.port}
            for other, address in zip(instance.nodes, instance.addresses, strict=True)
        ]
    body: Json = {
        "instance_id": instance.instance_id,
        "shard_assignments": {
            "model_id": instance.model_id,
            "runner_to_shard": shards,
            "node_to_runner": dict(zip(instance.nodes, instance.runners, strict=True)),
        },
        "hosts_by_node": hosts,
        "ephemeral_port": instance.port,
    }
    return {"MlxJacclInstance" if instance.instance_meta == "MlxJaccl" else "MlxRingInstance": body}


def deployment_json(deployment: ev.Deployment, models: Mapping[str, Model]) -> Json:
    """snake_case."""
    return {
        "deployment_id": deployment.deployment_id,
        "model_card": _card(models, deployment.model_id),
        "sharding": deployment.sharding,
        "instance_meta": deployment.instance_meta,
        "min_nodes": deployment.min_nodes,
        "instance_id": deployment.instance_id,
        "placement_error": deployment.placement_error,
    }


def runner_json(status: ev.RunnerStatus) -> Json:
    """snake_case, tagged by the state."""
    match status.state:
        case "RunnerReady":
            return {status.state: {"prefill_server_port": None}}
        case "RunnerLoading":
            return {status.state: {"layers_loaded": status.layers_loaded, "total_layers": status.total_layers}}
        case "RunnerFailed":
            return {status.state: {"error_message": status.error}}
        case _:
            return {status.state: {}}


def task_json(task: ev.Task, state: ClusterState, models: Mapping[str, Model]) -> Json:
    """snake_case, tagged by its kind."""
    body: Json = {"task_id": task.task_id, "task_status": task.status, "instance_id": task.instance_id}
    if task.kind == "CreateRunner" and task.instance_id in state.instances:
        instance = state.instances[task.instance_id]
        body["bound_instance"] = {
            "instance": instance_json(instance, models),
            "bound_runner_id": task.runner_id,
            "bound_node_id": instance.nodes[instance.runners.index(task.runner_id)],
        }
    elif task.kind == "TextGeneration":
        body["command_id"] = task.command_id
        instance = state.instances.get(task.instance_id)
        body["task_params"] = {
            "model": instance.model_id if instance is not None else "",
            "max_output_tokens": task.max_tokens,
            "stream": True,
        }
    return {task.kind: body}


# /state


def state_json(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    """The whole of `GET /state`."""
    state = replica.state
    return {name: part(replica, models, wall) for name, part in _PARTS.items()} | {
        "lastEventAppliedIdx": replica.next_index - 1,
        "deployments": {i: _camelise(deployment_json(d, models)) for i, d in state.deployments.items()},
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
        value = {i: _camelise(deployment_json(d, models)) for i, d in replica.state.deployments.items()}
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
    return {i: _camelise(instance_json(x, models)) for i, x in replica.state.instances.items()}


def _runners(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {i: _camelise(runner_json(s)) for i, s in replica.state.runners.items()}


def _downloads(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {
        node_id: [
            {
                "DownloadCompleted": {
                    "nodeId": node_id,
                    "modelDirectory": f"/opt/exo/models/{model_id.replace('/', '--')}",
                    "total": {"inBytes": model.size_bytes},
                    "readOnly": True,
                }
            }
            for model_id, model in models.items()
        ]
        for node_id in replica.state.nodes
    }


def _tasks(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    state = replica.state
    return {i: _camelise(task_json(t, state, models)) for i, t in state.tasks.items()}


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
        n: {"modelId": "Unknown Model", "chipId": "Unknown Chip", "friendlyName": i.name, "osVersion": "Linux"}
        for n, i in replica.state.known.items()
    }


def _memory(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: _camelise(_memory_json(i)) for n, i in replica.state.nodes.items()}


def _memory_json(info: ev.NodeInfo) -> Json:
    sizes = {"ram_total": info.ram_total, "ram_available": info.ram_available, "swap_total": 0, "swap_available": 0}
    return {name: {"in_bytes": size} for name, size in sizes.items()}


def _network(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: _camelise(_network_json(i)) for n, i in replica.state.nodes.items()}


def _network_json(info: ev.NodeInfo) -> Json:
    faces = (("lo", "127.0.0.1"), ("eth0", info.address))
    return {
        "interfaces": [{"name": name, "ip_address": ip, "interface_type": "unknown"} for name, ip in faces],
    }


def _backends(replica: Replica, models: Mapping[str, Model], wall: Callable[[float], float]) -> Json:
    return {n: list(i.backends) for n, i in replica.state.known.items()}


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
    "nodeDisk": _empty,
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


def deployment_status(deployment: ev.Deployment, state: ClusterState) -> str:
    """serving | starting | placing | cant_place."""
    present = state.instances_of(deployment.model_id)
    if any(state.is_ready(i) for i in present):
        return "serving"
    if present:
        return "starting"
    return "cant_place" if deployment.placement_error is not None else "placing"


def deployments(state: ClusterState, models: Mapping[str, Model]) -> dict[str, object]:
    """`GET /deployments`."""
    return {
        "deployments": [
            {"deployment": _camelise(deployment_json(d, models)), "status": deployment_status(d, state)}
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
    """`GET /instance/previews?model_id=…`: one for each sharding, kind and number of nodes."""
    model, state = models.get(model_id), replica.state
    found: list[Json] = []
    for sharding in ("Pipeline", "Tensor") if model is not None else ():
        for meta in ("MlxRing", "MlxJaccl"):
            for size in range(1, len(state.nodes) + 1):
                preview = _preview(state, models, models[model_id], sharding, meta, size, new_id, port)
                if preview["error"] is not None and any(p["error"] == preview["error"] for p in found[-1:]):
                    continue
                found.append(preview)
    return {"previews": found}


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
        nodes = place(state, model, sharding=sharding, instance_meta=meta, min_nodes=size)
    except CannotPlace as refusal:
        return head | {"instance": None, "memory_delta_by_node": None, "error": refusal.reason}
    instance = ev.Instance(
        instance_id=new_id(),
        model_id=model.model_id,
        sharding=sharding,
        instance_meta=meta,
        nodes=nodes,
        runners=tuple(new_id() for _ in nodes),
        addresses=tuple(state.nodes[n].address for n in nodes),
        port=port,
    )
    share, rest = divmod(model.size_bytes, len(nodes))
    delta = {n: share + (1 if rank < rest else 0) for rank, n in enumerate(nodes)}
    return head | {
        "instance": _camelise(instance_json(instance, models)),
        "memory_delta_by_node": delta,
        "error": None,
    }


# /events


def event_json(event: ev.Event, state: ClusterState, models: Mapping[str, Model], event_id: str) -> Json:
    """One event as `/events` shows it: {"Name": {"event_id", …}}."""
    name = type(event).__name__
    match event:
        case ev.InstanceCreated(instance):
            body: Json = {"instance": instance_json(instance, models)}
        case ev.DeploymentCreated(deployment):
            body = {"deployment": deployment_json(deployment, models)}
        case ev.TaskCreated(task):
            body = {"task_id": task.task_id, "task": task_json(task, state, models)}
        case ev.RunnerStatusUpdated(runner_id, status):
            body = {"runner_id": runner_id, "runner_status": runner_json(status)}
        case ev.NodeGatheredInfo(node_id, info, what):
            gathered = _memory_json(info) if what == "memory" else {"NodeNetworkInterfaces": _network_json(info)}
            body = {"node_id": node_id, "info": gathered}
        case ev.TopologyEdgeCreated(source, sink, address) | ev.TopologyEdgeDeleted(source, sink, address):
            body = {"conn": {"source": source, "sink": sink, "edge": {"sink_multiaddr": address}}}
        case ev.ChunkGenerated():
            body = _chunk_json(event)
        case ev.StateCarried():
            body = {
                "nodes": [n for n, _ in event.nodes],
                "instances": [instance_json(i, models) for i in event.instances],
                "runners": {i: runner_json(s) for i, s in event.runners},
                "deployments": [deployment_json(d, models) for d in event.deployments],
            }
        case _:
            body = {f: getattr(event, f) for f in event.__struct_fields__}
    return {name: {"event_id": event_id, **body}}


def _chunk_json(chunk: ev.ChunkGenerated) -> Json:
    match chunk.kind:
        case "prefill":
            inner: Json = {"PrefillProgressChunk": {"processed_tokens": chunk.n, "total_tokens": chunk.total}}
        case "error":
            inner = {"ErrorChunk": {"error_message": chunk.text}}
        case _:
            inner = {"TokenChunk": {"text": chunk.text, "finish_reason": chunk.finish_reason or None}}
    return {"command_id": chunk.command_id, "chunk": inner}


def events_json(replica: Replica, models: Mapping[str, Model]) -> Iterator[bytes]:
    """`GET /events` as pieces of one JSON array: the position is the index. Event ids are the same on every node."""
    session = f"{replica.session.master[:8]}-{replica.session.clock:04x}"[-13:]
    missing = [b"null"] * replica.log.first  # dropped to bound the log; they keep the positions right
    yield b"["
    if missing:
        yield b",".join(missing)
    first = not missing
    for index, entry in enumerate(replica.log, replica.log.first):
        body = event_json(entry.event, replica.state, models, f"{session}-4000-8000-{index:012x}")
        piece = json.dumps(body, separators=(",", ":")).encode()
        yield piece if first else b"," + piece
        first = False
    yield b"]"


def encode(value: Any) -> bytes:
    """Compact JSON of any view."""
    return msgspec.json.encode(value)
