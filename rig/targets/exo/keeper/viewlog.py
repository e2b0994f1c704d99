"""What happened under a reign by the views of the reigning master alone, for when its event log was not read. Pure.

Entries have the names of the event log's. Within one poll the kindest order is taken: what went, went first. What came
and went between two polls is not in it, so nothing can be proved kept from this, only broken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.analysis.intake.ticks import Index
from rig.analysis.moments import Span
from rig.analysis.recovery.reigns import Reign, Reigns
from rig.journal.records import AnyRecord, ViewChanged
from rig.targets.exo.keeper.chronicle import Chronicle, Entry

MAX_ENTRIES: Final = 50_000
_FACETS: Final = frozenset({"instances", "runners", "deployments", "nodes", "links"})
_SERVING: Final = frozenset({"RunnerReady", "RunnerRunning"})


@dataclass
class _Account:
    reign: Reign
    entries: list[Entry] = field(default_factory=list[Entry])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    end_t: float = 0.0


@dataclass
class ViewLogs:
    """A reducer over records, in their order."""

    reigns: Reigns
    _accounts: list[_Account] = field(default_factory=list[_Account])
    _held: int = 0
    _heard_t: dict[str, float] = field(default_factory=dict[str, float])  # by node: when a poll was last answered
    _latest: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    _first_t: dict[str, float] = field(default_factory=dict[str, float])  # of each instance, in any view
    _appeared: set[str] = field(default_factory=set[str])  # those that the node's view before did not list

    def feed(self, record: AnyRecord) -> None:
        if not isinstance(record, ViewChanged):
            return
        if record.since_t is not None:
            self._heard_t[record.node] = record.since_t
        if record.facet not in _FACETS:
            return
        if record.facet == "instances":
            self._list(record)
        value = _settled(record.value) if record.facet == "runners" else record.value
        key = (record.node, record.facet)
        if self._latest.get(key) == value:
            return
        reign = self.reigns.current(record.node)
        span = None if reign is None else reign.change(record.since_t, record.t)
        if reign is None or span is None:
            self._latest[key] = value
            return
        account = self._account(reign)
        self._latest[key] = value
        before = account.values.get(record.facet)
        account.values[record.facet] = value
        account.end_t = record.t
        for name, data in self._made_here(reign, _told(record.facet, before, value)):
            if self._held < MAX_ENTRIES:
                self._held += 1
                account.entries.append(Entry(len(account.entries), name, data, span))

    def _list(self, record: ViewChanged) -> None:
        before = (record.node, "instances") in self._latest
        for name in _mapping(record.value):
            if name not in self._first_t and len(self._first_t) < MAX_ENTRIES:
                self._first_t[name] = record.t
                if before:
                    self._appeared.add(name)

    def heard(self, run: Sequence[Index]) -> None:
        """The nodes answered a poll, though it says nothing of what is looked at here."""
        for node, since_t, _, _ in run:
            if since_t is not None:
                self._heard_t[node] = since_t

    def _made_here(self, reign: Reign, told: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
        """An instance that some view listed before this reign began is taken over, however late it is seen here.

        A node that was started anew takes itself for the master for a moment, and then learns what is there. Of what
        was listed first while the reign may have begun or not, it is doubtful.
        """
        made: list[tuple[str, dict[str, Any]]] = []
        for name, data in told:
            instance = str(data.get("instance"))
            if name != "InstanceCreated" or self._first_t.get(instance, math.inf) > reign.begun.by_t:
                made.append((name, data))
                continue
            doubtful = [] if self._listed_before(reign, instance) else [instance]
            made.append(("StateCarried", {"instances": {instance: data}, "doubtful": doubtful}))
        return made

    def _listed_before(self, reign: Reign, instance: str) -> bool:
        begun_t = reign.from_t - reign.error_s
        return self._first_t.get(instance, begun_t) < begun_t

    def chronicles(self, without: list[Reign], period_s: float, end_t: float) -> list[Chronicle]:
        """Of the reigns of which no log was read."""
        return [
            Chronicle(
                node=account.reign.node,
                node_id=account.reign.node_id,
                session=f"{account.reign.node} at {account.reign.from_t:.1f} s",
                exact=False,
                begun=account.reign.begun,
                entries=account.entries,
                end=_end(account, self._heard_t.get(account.reign.node, 0.0), end_t),
                period_s=period_s,
            )
            for account in self._accounts
            if not any(account.reign is other for other in without)
        ]

    def _account(self, reign: Reign) -> _Account:
        """A reign begins with what the node's views showed last: that is carried over, not made under it.

        But what appeared so close to its beginning that either may be is `doubtful`.
        """
        found = next((account for account in reversed(self._accounts) if account.reign is reign), None)
        if found is None:
            found = _Account(reign)
            found.values = {f: value for (node, f), value in self._latest.items() if node == reign.node}
            carried: dict[str, Any] = {
                key: found.values.get(key) or {} for key in ("instances", "deployments", "runners")
            }
            listed = _mapping(carried["instances"])
            carried["doubtful"] = [i for i in listed if i in self._appeared and not self._listed_before(reign, i)]
            found.entries.append(Entry(0, "StateCarried", carried, reign.begun))
            self._accounts.append(found)
        return found


def _end(account: _Account, heard_t: float, end_t: float) -> Entry:
    """Nothing has changed up to the last poll that was answered under this reign."""
    until_t = min(account.reign.to_t, end_t)
    after_t = max(account.end_t, min(heard_t, until_t))
    return Entry(len(account.entries), "end", {}, Span(after_t, max(until_t, after_t)))


def _told(facet: str, before: Any, after: Any) -> list[tuple[str, dict[str, Any]]]:
    """What a change of a facet says, in the words of the event log."""
    match facet:
        case "instances":
            return _instances(_mapping(before), _mapping(after))
        case "runners":
            old, new = _mapping(before), _mapping(after)
            changed = [name for name, status in new.items() if old.get(name) != status]
            return [("RunnerStatusUpdated", {"runner": name, "status": new[name]}) for name in changed]
        case "deployments":
            return _deployments(_mapping(before), _mapping(after))
        case "nodes":
            old_ids, new_ids = set(_sequence(before)), set(_sequence(after))
            gone = [("NodeTimedOut", {"node": node}) for node in sorted(old_ids - new_ids)]
            return gone + [("NodeReported", {"node": node}) for node in sorted(new_ids - old_ids)]
        case _:
            old_links = {tuple(_sequence(link)) for link in _sequence(before)}
            new_links = {tuple(_sequence(link)) for link in _sequence(after)}
            gone = [("TopologyEdgeDeleted", {"link": str(link)}) for link in sorted(old_links - new_links)]
            return gone + [("TopologyEdgeCreated", {"link": str(link)}) for link in sorted(new_links - old_links)]


def _instances(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    gone = [("InstanceDeleted", {"instance": name}) for name in old if name not in new]
    return gone + [
        ("InstanceCreated", {"instance": name, **_mapping(item)}) for name, item in new.items() if name not in old
    ]


def _deployments(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    told: list[tuple[str, dict[str, Any]]] = [
        ("DeploymentDeleted", {"deployment": name}) for name in old if name not in new
    ]
    for name, item in new.items():
        now, was = _mapping(item), _mapping(old.get(name))
        if name not in old:
            told.append(("DeploymentCreated", {"deployment": name, **now, "instance": None, "error": None}))
        if now.get("instance") and now.get("instance") != was.get("instance"):
            told.append(("DeploymentPlaced", {"deployment": name, "instance": now["instance"]}))
        if now.get("error") and now.get("error") != was.get("error"):
            told.append(("DeploymentPlacementFailed", {"deployment": name, "error": now["error"]}))
    return told


def _settled(value: Any) -> dict[str, Any]:
    """A runner changes between ready and running at each request: both are ready here."""
    return {name: "RunnerReady" if status in _SERVING else status for name, status in _mapping(value).items()}


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
