"""Whether a node tells of each deployment what its own view shows: serving, starting, placing, cannot be placed. Pure.

Views are asked for one after the other, so a contradiction counts when it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.analysis.firsts import Firsts
from rig.journal.records import AnyRecord, ViewChanged
from rig.targets.exo.keeper.rules import BUSY_S, PROMPT_S, Rules
from rig.targets.exo.views import SERVING_STATUSES

MAX_KEPT: Final = 50
_FACETS: Final = ("deployments", "instances", "runners")
_POLLS_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class WrongStatus:
    """From `from_t` to `to_t` at least, on the run's clock."""

    node: str
    model: str
    told: str
    shown: str
    from_t: float
    to_t: float


@dataclass
class StatusWatch:
    """A reducer over records, in their order. `judged` counts statuses that agreed with what was shown."""

    rules: Rules
    judged: int = 0
    wrong: list[WrongStatus] = field(default_factory=lambda: Firsts[WrongStatus](MAX_KEPT))
    _views: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _since: dict[tuple[str, str], WrongStatus] = field(default_factory=dict[tuple[str, str], WrongStatus])

    def feed(self, record: AnyRecord) -> None:
        if not isinstance(record, ViewChanged) or record.facet not in _FACETS:
            return
        if record.since_t is not None:
            self._ended(record.node, record.since_t)
        views = self._views.setdefault(record.node, {})
        views[record.facet] = record.value
        if len(views) == len(_FACETS):
            self._compare(record.node, record.t, views)

    def _compare(self, node: str, t: float, views: Mapping[str, Any]) -> None:
        found: dict[tuple[str, str], WrongStatus] = {}
        for name, one in _mapping(views["deployments"]).items():
            told = _mapping(one)
            status, shown = told.get("status"), _shown(told, views)
            if status == shown:
                self.judged += 1
            elif isinstance(status, str):
                key = node, name
                before = self._since.get(key)
                same = before is not None and (before.told, before.shown) == (status, shown)
                now = WrongStatus(node, str(told.get("model")), status, shown, t, t)
                found[key] = before if before is not None and same else now
        for key in [key for key in self._since if key[0] == node and key not in found]:
            del self._since[key]
        self._since |= found

    def _ended(self, node: str, until_t: float) -> None:
        """What stood up to the poll before: was it wrong for too long?"""
        limit_s = self.rules.scaled(PROMPT_S) + BUSY_S + _POLLS_S
        for key, one in self._since.items():
            if key[0] == node and until_t - one.from_t > limit_s and one not in self.wrong:
                self.wrong.append(WrongStatus(one.node, one.model, one.told, one.shown, one.from_t, until_t))


def _shown(deployment: Mapping[str, Any], views: Mapping[str, Any]) -> str:
    """As the status is defined."""
    status = _mapping(views["runners"])
    held = [
        list(_mapping(one["runners"]).values())
        for one in map(_mapping, _mapping(views["instances"]).values())
        if one.get("model") == deployment.get("model")
    ]
    if any(runners and all(status.get(runner) in SERVING_STATUSES for runner in runners) for runners in held):
        return "serving"
    if held:
        return "starting"
    return "cant_place" if deployment.get("error") else "placing"


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
