"""How many instances each node hosts, by its own view. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rig.journal.records import ViewChanged


@dataclass
class Hosted:
    """A reducer over views, in their order. `grace_s` is how long after an instance its workers may still be there."""

    grace_s: float
    workers: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    _names: dict[str, str] = field(default_factory=dict[str, str])  # every node id seen → node
    _counts: dict[str, deque[tuple[float, int]]] = field(default_factory=dict[str, deque[tuple[float, int]]])

    def feed(self, record: ViewChanged) -> None:
        if record.facet == "node_id":
            self._names[str(record.value)] = record.node
        elif record.facet == "instances":
            count = sum(self._is_on(record.node, instance) for instance in _mapping(record.value).values())
            counts = self._counts.setdefault(record.node, deque())
            if not counts or counts[-1][1] != count:
                counts.append((record.t, count))

    def most_on(self, node: str, since_t: float) -> int | None:
        """The most instances at one time from `grace_s` before `since_t` up to now; None where no view was read.

        What was earlier than that is forgotten.
        """
        counts = self._counts.get(node)
        if not counts:
            return None
        while len(counts) > 1 and counts[1][0] <= since_t - self.grace_s:
            counts.popleft()
        return max(count for _, count in counts)

    def _is_on(self, node: str, instance: Any) -> bool:
        """One whose nodes are not told may be here, and so may one on a node id that is nobody's yet."""
        workers = self.workers(_mapping(instance))
        return not workers or any(self._names.get(node_id, node) == node for node_id in workers)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
