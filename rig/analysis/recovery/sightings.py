"""What each node's view showed and when: instances, node ids, masters. Only the recent past is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, cast

from rig.analysis.intake.batches import ServedIds
from rig.journal.records import AnyRecord, MasterSeen, ViewChanged

MAX_SERVED: Final = 10_000
_FACETS: Final = frozenset({"instances", "node_id"})

Instances = dict[str, dict[str, Any]]
"""By id, as the target's facet has them."""


class History:
    """Values of one facet of one node, by the time at which they were seen."""

    __slots__ = ("times", "values")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.values: list[Any] = []

    def add(self, at_t: float, value: Any) -> None:
        self.times.append(at_t)
        self.values.append(value)

    def at(self, at_t: float) -> Any:
        """The latest value seen by then; None before the first."""
        index = bisect_right(self.times, at_t) - 1
        return self.values[index] if index >= 0 else None

    def forget(self, before_t: float) -> None:
        """Drop the values that no time from `before_t` on needs."""
        index = max(bisect_right(self.times, before_t) - 1, 0)
        del self.times[:index], self.values[:index]


class Sightings:
    def __init__(self) -> None:
        self._histories: dict[tuple[str, str], History] = {}
        self.masters: dict[str, MasterSeen] = {}  # per node, its latest claim or denial
        self.served: dict[str, str] = {}  # response id → instance

    def feed(self, record: AnyRecord) -> None:
        match record:
            case ViewChanged() if record.facet in _FACETS:
                key = (record.node, record.facet)
                history = self._histories.get(key)
                if history is None:
                    history = self._histories[key] = History()
                history.add(record.t, record.value)
            case MasterSeen():
                self.masters[record.node] = record
            case _:
                pass

    def serve(self, served: Sequence[ServedIds]) -> None:
        for instance, response_ids in served:
            self.served.update(dict.fromkeys(response_ids, instance))
        for name in list(islice(self.served, max(len(self.served) - MAX_SERVED, 0))):
            del self.served[name]

    def forget(self, before_t: float) -> None:
        for history in self._histories.values():
            history.forget(before_t)

    def master(self) -> MasterSeen | None:
        """The node that alone claims to be master; None without a claim or with several."""
        claims = [seen for seen in self.masters.values() if seen.is_master]
        return claims[0] if len(claims) == 1 else None

    def nodes(self) -> list[str]:
        return sorted({node for node, facet in self._histories if facet == "instances"})

    def instances_of(self, node: str, at_t: float) -> Instances | None:
        """What this node's view listed at that time; None where nothing was seen."""
        history = self._histories.get((node, "instances"))
        value = None if history is None else history.at(at_t)
        if not isinstance(value, dict):
            return None
        listed = cast("dict[str, Any]", value)
        return {name: cast("dict[str, Any]", item) for name, item in listed.items() if isinstance(item, dict)}

    def node_id(self, node: str, at_t: float) -> str | None:
        history = self._histories.get((node, "node_id"))
        value = None if history is None else history.at(at_t)
        return value if isinstance(value, str) else None

    def instances(self, model: str, at_t: float, nodes: list[str]) -> Instances | None:
        """Instances of the model that any of these nodes listed at that time; None where none of them was seen."""
        views = [view for node in nodes if (view := self.instances_of(node, at_t)) is not None]
        if not views:
            return None
        return {name: item for view in views for name, item in view.items() if item.get("model") == model}
