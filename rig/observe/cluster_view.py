"""The latest of every node's view, by inventory names: for aiming faults, the live view, and judging recoveries live.

A reducer over journal records without effects: `Journal.subscribe(view.apply)` keeps it up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rig.journal.records import AnyRecord, Facet, Reachability, ViewChanged
from rig.observe.masters import MasterTracker
from rig.targets.target import ListsInstances
from rig.targets.views import Deployments, Instance


class ClusterView:
    """Facets, reachability and mastership per inventory node."""

    def __init__(self, nodes: list[str], instances: ListsInstances | None) -> None:
        """`instances` is how the target's views list them; without it they list none."""
        self._nodes = nodes
        self._lists = instances
        self._facets: dict[str, dict[Facet, Any]] = {node: {} for node in nodes}
        self._reachable: dict[str, bool] = {}
        self._names: dict[str, str] = {}  # every node id ever seen → inventory node
        self._tracker = MasterTracker()
        self._now_t = 0.0

    def apply(self, record: AnyRecord) -> None:
        self._tracker.apply(record)
        self._now_t = max(self._now_t, record.t)
        if isinstance(record, ViewChanged):
            self._facets.setdefault(record.node, {})[record.facet] = record.value
            if record.facet == "node_id":
                self._names[str(record.value)] = record.node
        elif isinstance(record, Reachability):
            self._reachable[record.node] = record.reachable

    @property
    def masters(self) -> frozenset[str]:
        """Every node that claims to be master."""
        return self._tracker.masters

    @property
    def master(self) -> str | None:
        """The one that is; `None` while that is unknown."""
        return self._tracker.master(self._now_t)

    def reachable(self, node: str) -> bool | None:
        """Whether its API answers; `None` before the first poll."""
        return self._reachable.get(node)

    def facet(self, node: str, facet: Facet) -> Any:
        """The latest value in this node's view; `None` when it was never seen."""
        return self._facets.get(node, {}).get(facet)

    def told(self) -> dict[str, dict[str, Any]]:
        """Everything of each node, as JSON has it."""
        return {node: {"reachable": self.reachable(node), **self._facets.get(node, {})} for node in self._nodes}

    def node_of(self, node_id: str) -> str | None:
        """The inventory node that has, or once had, this id."""
        return self._names.get(node_id)

    def event_index(self, node: str) -> int | None:
        index = self.facet(node, "event_index")
        return index if isinstance(index, int) else None

    def best(self) -> str | None:
        """Whose view to go by: of the nodes that answer, the master, else a claimant, else by most events."""
        answering = [node for node in self._nodes if self._reachable.get(node)]
        if not answering:
            return None
        master, masters = self.master, self.masters
        return max(answering, key=lambda node: (node == master, node in masters, self.event_index(node) or -1))

    def live_nodes(self, of: str | None = None) -> list[str]:
        """Inventory nodes that are in the topology, by the view of node `of` (else by the best)."""
        ids = cast("list[str]", self._value(of, "nodes") or [])
        current = {str(self.facet(node, "node_id")): node for node in self._nodes}
        return [current[node_id] for node_id in ids if node_id in current]

    def instances(self, of: str | None = None) -> dict[str, Instance]:
        """Instances by id, in the view of node `of` (else in the best)."""
        node = of if of is not None else self.best()
        if node is None or self._lists is None:
            return {}
        listed = self._lists.listed(self._facets.get(node, {}))
        return {name: instance.named(self._names.get) for name, instance in listed.items()}

    def doing(self, node: str) -> Mapping[str, str]:
        """What the workers of instances do, by their ids, in the view of a node."""
        return {} if self._lists is None else self._lists.doing(self._facets.get(node, {}))

    def deployments(self, of: str | None = None) -> Deployments:
        """Deployments by id, in the view of node `of` (else in the best)."""
        return cast("Deployments", self._value(of, "deployments") or {})

    def lag(self, node: str) -> int | None:
        """How many events this node's view is behind the furthest of the others; `None` when that cannot be told."""
        own = self.event_index(node)
        others = [self.event_index(other) for other in self._nodes if other != node and self._reachable.get(other)]
        known = [index for index in others if index is not None]
        return None if own is None or not known else max(0, max(known) - own)

    def _value(self, of: str | None, facet: Facet) -> Any:
        node = of if of is not None else self.best()
        return None if node is None else self.facet(node, facet)
