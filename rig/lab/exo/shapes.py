"""How single things look in exo's JSON: instances, deployments, runners, tasks, nodes. `camelise` for /state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from rig.lab.exo import events as ev
from rig.lab.exo.models import Model
from rig.lab.exo.state import ClusterState

Json = dict[str, Any]


@lru_cache(maxsize=4096)
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def camelise(value: Any) -> Any:
    """snake_case keys of nested dicts become camelCase. Ids are keys too; they hold no underscore and stay."""
    if isinstance(value, dict):
        items = cast("Mapping[str, Any]", value)
        return {_camel(k) if "_" in k else k: camelise(v) for k, v in items.items()}
    if isinstance(value, list):
        return [camelise(v) for v in cast("list[Any]", value)]
    return value


def card_json(models: Mapping[str, Model], model_id: str) -> Json:
    return models[model_id].card() if model_id in models else {"model_id": model_id}


def shard_json(card: Json, rank: int, world: int, layers: tuple[int, int, int]) -> Json:
    """`layers`: first, end, and how many the model has."""
    return {
        "model_card": card,
        "device_rank": rank,
        "world_size": world,
        "immediate_exception": False,
        "should_timeout": None,
        "start_layer": layers[0],
        "end_layer": layers[1],
        "n_layers": layers[2],
    }


def instance_json(instance: ev.Instance, models: Mapping[str, Model]) -> Json:
    """snake_case, tagged by its kind."""
    model, world = models.get(instance.model_id), len(instance.nodes)
    layers = model.layers if model is not None else world
    tag = "TensorShardMetadata" if instance.sharding == "Tensor" else "PipelineShardMetadata"
    shards: Json = {}
    for rank, runner_id in enumerate(instance.runners):
        first, last = instance.layers_of(rank, layers)
        shards[runner_id] = {tag: shard_json(card_json(models, instance.model_id), rank, world, (first, last, layers))}
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
        "model_card": card_json(models, deployment.model_id),
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


def memory_json(info: ev.NodeInfo) -> Json:
    sizes = {"ram_total": info.ram_total, "ram_available": info.ram_available, "swap_total": 0, "swap_available": 0}
    return {name: {"in_bytes": size} for name, size in sizes.items()}


def network_json(info: ev.NodeInfo) -> Json:
    faces = (("lo", "127.0.0.1"), ("eth0", info.address))
    return {
        "interfaces": [{"name": name, "ip_address": ip, "interface_type": "unknown"} for name, ip in faces],
    }
