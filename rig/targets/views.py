"""What targets list, in one form for all of them. All ids are the target's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypedDict

MEMORY_STEPS: Final = 100  # memory is told to 1 % of what the node has


@dataclass(frozen=True)
class Instance:
    """An instance of a model. `workers`: the id of the process that works for it, by node.

    Nodes are the target's ids, or, once `named`, those of the inventory; `strangers` are those that it does not have.
    """

    id: str
    model: str | None
    workers: Mapping[str, str]
    port: int | None = None  # by which its workers are told from those of other instances on a node
    ready: bool | None = None  # whether every worker can serve; None: not told
    strangers: tuple[str, ...] = ()

    def named(self, name_of: Callable[[str], str | None]) -> Instance:
        names = {node: name_of(node) for node in self.workers}
        return replace(
            self,
            workers={name: self.workers[node] for node, name in names.items() if name is not None},
            strangers=tuple(node for node, name in names.items() if name is None),
        )


class DeploymentView(TypedDict):
    """`status`: serving | starting | placing | cant_place, `None` where only the state and no status is told."""

    model: str | None
    status: str | None
    instance: str | None
    error: str | None
    min_nodes: int | None


Instances = Mapping[str, Instance]
Deployments = dict[str, DeploymentView]


def rounded_memory(available_bytes: int, total_bytes: int | None) -> int:
    """Rounded to 1 % of the node's memory, so that jitter is no change; to two digits where the total is not told."""
    if total_bytes is not None and total_bytes > 0:
        step = max(1, total_bytes // MEMORY_STEPS)
    else:
        step = 10 ** max(0, len(str(abs(available_bytes))) - 2)
    return round(available_bytes / step) * step
