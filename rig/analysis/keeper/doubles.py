"""More than one instance of a deployed model in the view of the present master: what the keeper must never do.

Only the view of the node that alone claims to be master is judged, from when its claim is surely older than the view's
change, and not while that node, newly restarted, has not caught up: a replaying node shows old instances.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, cast

from rig.analysis.context import Context
from rig.journal.records import AnyRecord, ApiCall, ViewChanged

MAX_KEPT: Final = 50


@dataclass(frozen=True, slots=True)
class Double:
    node: str
    model: str
    instances: tuple[str, ...]
    since_t: float
    seen_t: float


class InstanceWatch:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.judged = 0  # changes of the master's view that could be judged
        self._found: list[Double] = []
        self._by_hand: set[str] = set()
        self._deployed: set[str] = set()

    @property
    def doubles(self) -> list[Double]:
        """Those in which nobody but the keeper can have placed more than one."""
        return [double for double in self._found if not self._by_hand & set(double.instances)]

    def feed(self, record: AnyRecord) -> None:
        """After the context has taken in the record."""
        if isinstance(record, ViewChanged) and record.facet not in ("instances", "deployments"):
            return
        if isinstance(record, ApiCall) and record.what == "place" and record.subject is not None:
            self._by_hand.add(record.subject)
        if not isinstance(record, ViewChanged) or not isinstance(record.value, dict):
            return
        value = cast("dict[str, Any]", record.value)
        models = [str(cast("dict[str, Any]", item).get("model")) for item in value.values() if isinstance(item, dict)]
        if record.facet == "deployments":
            self._deployed.update(models)
        if record.facet == "instances" and self._may_judge(record):
            self.judged += 1
            for model, count in Counter(models).items():
                if count > 1 and model in self._deployed and len(self._found) < MAX_KEPT:
                    names = tuple(name for name, item in value.items() if item.get("model") == model)
                    since_t = record.t if record.since_t is None else record.since_t
                    self._found.append(Double(record.node, model, names, since_t, record.t))

    def _may_judge(self, record: ViewChanged) -> bool:
        master = self._context.sightings.master()
        if master is None or master.node != record.node or record.since_t is None:
            return False
        caught_up = not self._context.windows.rejoins.open_at(record.node, record.t)
        return caught_up and master.at_t + master.at_error_s < record.since_t
