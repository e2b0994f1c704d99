"""What a scenario knows of the target at a moment: a reducer over the journal, and the conditions judged by it. Pure.

Conditions are judged by the best view: a master's that answers, else that of the node which knows most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rig.journal.records import AnyRecord
from rig.observe.cluster_view import ClusterView, InstanceOn
from rig.run.scenarios.scenario import Condition


@dataclass(frozen=True)
class Names:
    """What the names of a scenario stand for."""

    models: tuple[str, ...]  # of the workload, in its order
    nodes: tuple[str, ...]
    deployments: dict[str, str] = field(default_factory=dict[str, str])  # name → model
    ids: dict[str, str] = field(default_factory=dict[str, str])  # name → id of the deployment
    by_hand: dict[str, str] = field(default_factory=dict[str, str])  # name → instance

    def model(self, number: int) -> str:
        return self.models[number - 1]


@dataclass(frozen=True)
class Before:
    """How things stood when the step before a condition began."""

    instances: frozenset[str]
    held: dict[str, str]  # name of a deployment → its instance
    masters: frozenset[str]


@dataclass
class Known:
    """`apply` is a listener of the journal."""

    names: Names

    def __post_init__(self) -> None:
        self.view = ClusterView(list(self.names.nodes))

    def apply(self, record: AnyRecord) -> None:
        self.view.apply(record)

    def now(self) -> Before:
        held = {name: found for name in self.names.deployments if (found := self.held_by(name)) is not None}
        return Before(frozenset(self.view.instances()), held, self.view.masters)

    def instances_of(self, model: str) -> list[InstanceOn]:
        return [instance for instance in self.view.instances().values() if instance.model == model]

    def held_by(self, deployment: str) -> str | None:
        """The instance that the deployment names, if it is listed; else the only one of its model."""
        told = self.view.deployments().get(self.names.ids.get(deployment, ""))
        listed = self.view.instances()
        if told is not None and told["instance"] in listed:
            return told["instance"]
        mine = self.instances_of(self.names.deployments[deployment])
        return mine[0].id if len(mine) == 1 else None

    def instance(self, name: str) -> str | None:
        """What a name of an instance or of a deployment stands for now."""
        return self.names.by_hand.get(name) if name in self.names.by_hand else self.held_by(name)

    def holds(self, condition: Condition, before: Before) -> tuple[bool | None, str]:
        """Whether it holds, and what was seen. None: no view tells."""
        if self.view.best() is None:
            return None, "no node's API answers"
        found: tuple[bool, str]
        match condition.given()[0]:
            case "placed":
                found = self._placed(str(condition.placed), before)
            case "serving":
                found = self._serving(str(condition.serving))
            case "alone":
                found = _so_many(self.instances_of(self.names.deployments[str(condition.alone)]), 1)
            case "refused":
                found = self._refused(str(condition.refused))
            case "gone":
                found = self._listed(str(condition.gone), before, wanted=False)
            case "there":
                found = self._listed(str(condition.there), before, wanted=True)
            case "nothing_of":
                found = _so_many(self.instances_of(self.names.model(condition.nothing_of or 1)), 0)
            case "nodes":
                found = self._nodes(condition)
            case _:
                master = self.view.master
                found = master is not None and master not in before.masters, f"master: {master or 'unknown'}"
        return found

    def _placed(self, name: str, before: Before) -> tuple[bool, str]:
        new = [one for one in self.instances_of(self.names.deployments[name]) if one.id not in before.instances]
        return bool(new), f"new: {_ids(new)}"

    def _serving(self, name: str) -> tuple[bool, str]:
        listed = self.instances_of(self.names.deployments[name])
        ready = [one for one in listed if one.ready and one.runners]
        return bool(ready), f"{len(ready)} of {len(listed)} instances are ready: {_ids(listed)}"

    def _refused(self, name: str) -> tuple[bool, str]:
        told = self.view.deployments().get(self.names.ids.get(name, ""))
        if told is None:
            return False, "the deployment is not listed"
        placed = self.instances_of(self.names.deployments[name])
        return bool(told["error"]) and not placed, f"status {told['status']}, reason {told['error']!r}"

    def _listed(self, name: str, before: Before, *, wanted: bool) -> tuple[bool, str]:
        identity = self.names.by_hand.get(name) or before.held.get(name)
        if identity is None:
            return False, f"{name} had no instance"
        there = identity in self.view.instances()
        return there is wanted, f"{identity} is {'listed' if there else 'not listed'}"

    def _nodes(self, condition: Condition) -> tuple[bool, str]:
        live = self.view.live_nodes()
        everyone = len(self.names.nodes)
        match condition.nodes:
            case "all":
                good = len(live) == everyone
            case "fewer":
                good = len(live) < everyone
            case count:
                good = len(live) == count
        return good, f"nodes listed: {', '.join(live)}"


def _so_many(listed: list[InstanceOn], wanted: int) -> tuple[bool, str]:
    return len(listed) == wanted, f"{len(listed)} instances: {_ids(listed)}"


def _ids(instances: list[InstanceOn]) -> str:
    return ", ".join(instance.id for instance in instances) or "none"
