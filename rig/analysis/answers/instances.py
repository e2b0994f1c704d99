"""Which instance a model has, by the views, and on which nodes."""

from __future__ import annotations

from typing import Any, cast

from rig.journal.records import Reachability, ViewChanged


class Placed:
    """A reducer over views. An instance is known to serve a model where it is the only one that any node lists."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # node id → node
        self._by_node: dict[str, dict[str, Any]] = {}

    def feed(self, record: ViewChanged | Reachability) -> None:
        if isinstance(record, Reachability):
            if not record.reachable:
                self._by_node.pop(record.node, None)  # what it showed last may be gone
        elif record.facet == "node_id":
            self._names[str(record.value)] = record.node
        elif record.facet == "instances":
            self._by_node[record.node] = _mapping(record.value)

    def serving(self, model: str) -> tuple[str | None, tuple[str, ...]]:
        """The instance and the nodes of it; without both where there are several, or none."""
        found: dict[str, dict[str, Any]] = {}
        for listed in self._by_node.values():
            for name, value in listed.items():
                instance = _mapping(value)
                if instance.get("model") == model:
                    found[name] = instance
        if len(found) != 1:
            return None, ()
        ((name, instance),) = found.items()
        nodes = (self._names.get(node, node) for node in _mapping(instance.get("runners")))
        return name, tuple(sorted(nodes))


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
