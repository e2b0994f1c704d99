"""Which script does a fault of one kind on one node, with which arguments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rig.config.inventory import Node
from rig.faults.plan.kind import Acting, AnyKind, KindPlan
from rig.nodes.scripts import process_values


@dataclass(frozen=True, kw_only=True)
class Act:
    """One script on one node, with its arguments except id, run, owner, hold."""

    node: str
    kind: AnyKind
    values: dict[str, str]

    @property
    def script(self) -> str:
        return self.kind.script


def act_on_node(
    kind: AnyKind, name: str, node: Node, settings: KindPlan, *, peers: Sequence[str] = (), emulated: bool = False
) -> Act:
    """The act of a kind that strikes one node. `peers`: the addresses of the other nodes. Raises CannotAim."""
    own = settings if isinstance(settings, kind.settings) else kind.settings()
    acting = Acting(name=name, node=node, settings=own, peers=peers, emulated=emulated)
    return Act(node=name, kind=kind, values=process_values(node) | dict(kind.values(acting)))
