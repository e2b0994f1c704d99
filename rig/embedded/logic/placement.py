"""Where an instance goes: the smallest set of nodes, connected both ways, that holds the model. Deterministic."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from rig.embedded.logic.events import NodeInfo
from rig.embedded.logic.models import Model
from rig.embedded.logic.state import ClusterState

NO_MEMORY = "No cycles found with sufficient memory"


class CannotPlace(Exception):
    """`reason` is worded as exo words it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def placement_inputs(state: ClusterState) -> frozenset[Any]:
    """What placement works from: nodes that have reported memory and backends, and links with their RDMA flag.

    The amount of free memory is not part of it: memory that frees up is no change.
    """
    nodes: set[Any] = {(node_id, info.backends) for node_id, info in state.nodes.items()}
    return frozenset(nodes | {(e.source, e.sink, e.rdma) for e in state.edges.values()})


def place(state: ClusterState, model: Model, *, sharding: str, instance_meta: str, min_nodes: int) -> tuple[str, ...]:
    """Node ids in order of rank: fewest nodes, then fewest instances, then most memory. Raises CannotPlace."""
    if instance_meta == "MlxJaccl":
        usable = {n: i for n, i in state.nodes.items() if "MlxMetal" in i.backends and i.rdma}
        if not usable:
            raise CannotPlace(f"No cycle where every node supports a backend in ['MlxMetal'] for {model.model_id}")
    else:
        usable = state.nodes
    load = {node_id: sum(node_id in i.nodes for i in state.instances.values()) for node_id in usable}
    tensor_failed = False
    for size in range(max(1, min_nodes), len(usable) + 1):
        if sharding == "Tensor" and model.kv_heads % size:
            tensor_failed = True
            continue
        fitting = [group for group in combinations(sorted(usable), size) if _fits(state, usable, group, model)]
        if fitting:
            best = min(fitting, key=lambda g: (sum(load[n] for n in g), -sum(usable[n].ram_available for n in g), g))
            return tuple(sorted(best, key=lambda n: (load[n], n)))
    if tensor_failed:
        raise CannotPlace(
            f"No tensor sharding found for model with hidden_size={model.hidden_size}, "
            f"num_key_value_heads={model.kv_heads} across candidate cycles"
        )
    raise CannotPlace(NO_MEMORY)


def _fits(state: ClusterState, usable: dict[str, NodeInfo], group: tuple[str, ...], model: Model) -> bool:
    if sum(usable[n].ram_available for n in group) < model.size_bytes:
        return False
    return all(state.connected(a, b) for a, b in combinations(group, 2))
