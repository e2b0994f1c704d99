"""Where an instance goes: the smallest ring of nodes that holds the model. Deterministic; worded as exo words it.

As exo decides it: nodes form a cycle of links, in rank order; together they have the memory; each has it for its own
layers; neighbours in a ring reach each other both ways; and one node alone is always a ring of the Pipeline kind. Of
several: first those with a node at the edge of the network, then the one with fewest instances, then most memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from rig.lab.exo.models import Model
from rig.lab.exo.state import ClusterState

NO_MEMORY = "No cycles found with sufficient memory"
_BACKENDS: Final = {"MlxRing": ("MlxCpu", "MlxCuda", "MlxMetal"), "MlxJaccl": ("MlxMetal",)}
_GIB: Final = 1024**3


class CannotPlace(Exception):
    """`reason` is worded as exo words it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Placed:
    """`nodes` and `layers` (how many of the model each holds) in order of rank."""

    nodes: tuple[str, ...]
    layers: tuple[int, ...]
    sharding: str
    instance_meta: str


def placement_inputs(state: ClusterState) -> frozenset[Any]:
    """What placement works from: nodes that have reported memory and backends, and links between those.

    Neither the amount of free memory nor a link to a node that has not reported is part of it.
    """
    nodes: set[Any] = {n for n, info in state.nodes.items() if info.ram_total and info.backends}
    return frozenset(nodes | {(e.source, e.sink, e.rdma) for e in state.edges.values() if {e.source, e.sink} <= nodes})


def place(state: ClusterState, model: Model, *, sharding: str, instance_meta: str, min_nodes: int) -> Placed:
    """Raises CannotPlace; for a model that `crashes` placement a TypeError, as a mistake in exo's code would."""
    if model.crashes:
        raise TypeError("unsupported model card")
    candidates = _with_backends(state, model, _smallest(state, model, sharding, min_nodes), instance_meta)
    if instance_meta == "MlxJaccl":
        candidates = [cycle for cycle in candidates if _all_rdma(state, cycle)]
        if not candidates:
            raise CannotPlace("Requested RDMA (MlxJaccl) but no RDMA-connected cycles available")
    edge = [cycle for cycle in candidates if any(_is_leaf(state, node) for node in cycle)]
    nodes = _best(state, edge or candidates)
    if len(nodes) == 1:
        sharding, instance_meta = "Pipeline", "MlxRing"
    layers = (model.layers,) * len(nodes)
    if sharding == "Pipeline":
        layers = _layers(model, {node: state.nodes[node].ram_available for node in nodes})
    pairs = _pairs(nodes) if instance_meta == "MlxRing" else combinations(nodes, 2)
    if not all(state.connected(a, b) for a, b in pairs):
        raise CannotPlace(
            "MLX ring backend requires connectivity between neighbouring nodes"
            if instance_meta == "MlxRing"
            else "Current jaccl backend requires all-to-all RDMA connections"
        )
    return Placed(nodes, layers, sharding, instance_meta)


def _smallest(state: ClusterState, model: Model, sharding: str, min_nodes: int) -> list[tuple[str, ...]]:
    """Cycles of the smallest size that has the memory, and that the model can be split by."""
    memory = {n: info.ram_available for n, info in state.nodes.items() if info.ram_total}
    enough = False
    for size in range(max(1, min_nodes), len(memory) + 1):
        groups = (g for g in combinations(sorted(memory), size) if sum(memory[n] for n in g) >= model.size_bytes)
        found = [cycle for group in groups if (cycle := _cycle(state, group)) is not None]
        enough = enough or bool(found)
        if found and (sharding != "Tensor" or not (model.hidden_size % size or model.kv_heads % size)):
            return found
    if not enough:
        raise CannotPlace(NO_MEMORY)
    raise CannotPlace(
        f"No tensor sharding found for model with hidden_size={model.hidden_size}, "
        f"num_key_value_heads={model.kv_heads} across candidate cycles"
    )


def _cycle(state: ClusterState, group: tuple[str, ...]) -> tuple[str, ...] | None:
    """The nodes of a group in an order in which each has a link to the next, and the last to the first."""

    def orders(so_far: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if len(so_far) == len(group):
            if (so_far[-1], so_far[0]) in state.edges:
                yield so_far
            return
        for node in group:
            if node not in so_far and (so_far[-1], node) in state.edges:
                yield from orders((*so_far, node))

    return group if len(group) == 1 else next(orders(group[:1]), None)


def _with_backends(
    state: ClusterState, model: Model, cycles: list[tuple[str, ...]], instance_meta: str
) -> list[tuple[str, ...]]:
    usable = _BACKENDS[instance_meta]
    found = [cycle for cycle in cycles if all(set(usable) & set(state.nodes[n].backends) for n in cycle)]
    if not found:
        raise CannotPlace(f"No cycle where every node supports a backend in {list(usable)} for {model.model_id}")
    return found


def _all_rdma(state: ClusterState, cycle: tuple[str, ...]) -> bool:
    """Every node can do it, and so can every link between two of them that there is."""
    links = [edge for edge in state.edges.values() if edge.source in cycle and edge.sink in cycle]
    return all(state.nodes[node].rdma for node in cycle) and all(edge.rdma for edge in links)


def _is_leaf(state: ClusterState, node: str) -> bool:
    return sum(source == node for source, _ in state.edges) <= 1


def _best(state: ClusterState, cycles: list[tuple[str, ...]]) -> tuple[str, ...]:
    def load(node: str) -> int:
        return sum(node in instance.nodes for instance in state.instances.values())

    def cost(cycle: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
        return sum(map(load, cycle)), -sum(state.nodes[n].ram_available for n in cycle), cycle

    best = min(cycles, key=cost)
    first = min(range(len(best)), key=lambda rank: (load(best[rank]), best[rank]))
    return best[first:] + best[:first]


def _pairs(nodes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Neighbours in a ring."""
    return ((a, b) for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True) if a != b)


def _layers(model: Model, memory: Mapping[str, int]) -> tuple[int, ...]:
    """Layers by free memory, by largest remainder and at least one each; each node must have room for its own."""
    total = sum(memory.values())
    if total == 0:
        raise CannotPlace("Cannot create shard assignments: total available memory is 0")
    if model.layers < len(memory):
        raise CannotPlace(
            f"Cannot distribute {model.layers} layers across {len(memory)} nodes (need at least 1 layer per node)"
        )
    exact = [free / total * model.layers for free in memory.values()]
    shares = [int(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda rank: shares[rank] - exact[rank])
    for rank in by_remainder[: model.layers - sum(shares)]:
        shares[rank] += 1
    while 0 in shares:
        shares[shares.index(max(shares))] -= 1
        shares[shares.index(0)] += 1
    for rank, (node, free) in enumerate(memory.items()):
        needed = model.size_bytes * shares[rank] // model.layers
        if needed > free:
            raise CannotPlace(
                f"Node {rank} ({node}) has insufficient memory: requires {needed / _GIB:.2f} GB for {shares[rank]} "
                f"layers, but only has {free / _GIB:.2f} GB available"
            )
    return tuple(shares)
