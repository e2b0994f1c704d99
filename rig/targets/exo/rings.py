"""Instances whose ranks never come together: some stay idle or connecting, so that none of them can serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.journal.records import AnyRecord, Reachability, ViewChanged

LONG_S: Final = 100.0
"""At pace 1: a ring of some nodes is together within seconds."""
MAX_KEPT: Final = 200
_APART: Final = {"RunnerIdle": "idle", "RunnerConnecting": "connecting"}


@dataclass(frozen=True, slots=True)
class Apart:
    """By the view of one node."""

    instance: str
    model: str
    from_t: float
    to_t: float
    text: str


@dataclass
class RingWatch:
    """A reducer over records, in their order. Of one ring it tells what the node says that saw it for longest."""

    pace: float
    _views: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict[tuple[str, str], dict[str, Any]])
    _since: dict[tuple[str, str], Apart] = field(default_factory=dict[tuple[str, str], Apart])
    _found: dict[str, Apart] = field(default_factory=dict[str, Apart])

    def feed(self, record: AnyRecord) -> None:
        match record:
            case Reachability(reachable=False):
                self._close(record.node, {}, record.t if record.since_t is None else record.since_t)
            case ViewChanged(facet="instances" | "runners") if isinstance(record.value, dict):
                self._views[record.node, record.facet] = cast("dict[str, Any]", record.value)
                apart = self._apart(record.node, record.t)
                self._close(record.node, apart, record.t)
                for instance, one in apart.items():
                    self._since.setdefault((record.node, instance), one)
            case _:
                pass

    def found(self, end_t: float) -> list[Apart]:
        """All that lasted, given that what still holds has lasted until then."""
        for node in {node for node, _ in self._since}:
            self._close(node, {}, end_t)
        return sorted(self._found.values(), key=lambda one: one.from_t)[:MAX_KEPT]

    def _apart(self, node: str, now: float) -> dict[str, Apart]:
        statuses, found = self._views.get((node, "runners"), {}), dict[str, Apart]()
        for instance, value in self._views.get((node, "instances"), {}).items():
            item = _mapping(value)
            ranks = [_APART.get(str(statuses.get(f"{rank}"))) for rank in _mapping(item.get("runners")).values()]
            if waiting := [status for status in ranks if status is not None]:
                said = " and ".join(f"{waiting.count(name)} {name}" for name in dict.fromkeys(waiting))
                text = f"{instance} had of {len(ranks)} ranks {said}"
                found[instance] = Apart(instance, f"{item.get('model')}", now, now, text)
        return found

    def _close(self, node: str, apart: dict[str, Apart], now: float) -> None:
        """Those that this node shows no longer."""
        for key in [key for key in self._since if key[0] == node and key[1] not in apart]:
            one = self._since.pop(key)
            lasted_s, known = now - one.from_t, self._found.get(one.instance)
            if lasted_s >= LONG_S / self.pace and (known is None or lasted_s > known.to_t - known.from_t):
                self._found[one.instance] = Apart(one.instance, one.model, one.from_t, now, one.text)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
