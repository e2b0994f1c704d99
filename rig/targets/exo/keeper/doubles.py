"""More than one instance of a deployed model in the view of the present master: what the keeper must never do.

Only the view of the node that alone claims to be master is judged, from when its claim is surely older than the view's
change, and not while that node, newly restarted, has not caught up: a replaying node shows old instances.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, cast

from rig.analysis.firsts import Firsts
from rig.analysis.recovery.context import Context
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
        self._found: list[Double] = Firsts(MAX_KEPT)
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
        model_of = {
            name: str(cast("dict[str, Any]", item).get("model"))
            for name, item in value.items()
            if isinstance(item, dict)
        }
        if record.facet == "deployments":
            self._deployed.update(model_of.values())
        if record.facet == "instances" and record.since_t is not None and self._may_judge(record.since_t, record):
            self.judged += 1
            for model, count in Counter(model_of.values()).items():
                if count > 1 and model in self._deployed:
                    names = tuple(name for name, its in model_of.items() if its == model)
                    self._found.append(Double(record.node, model, names, record.since_t, record.t))

    def _may_judge(self, since_t: float, record: ViewChanged) -> bool:
        master = self._context.sightings.master()
        caught_up = not self._context.windows.rejoins.open_at(record.node, record.t)
        return (
            caught_up
            and master is not None
            and master.node == record.node
            and master.at_t + master.at_error_s < since_t
        )
