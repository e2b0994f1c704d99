"""One network interface of a node is down, never the one that carries SSH."""

from __future__ import annotations

from collections.abc import Mapping

from rig.config.fields import Text
from rig.config.inventory import Node
from rig.faults.plan.kind import Acting, CannotAim, FaultKind, KindPlan, SingleNode


class LinkDownPlan(KindPlan):
    interface: Text | None = None  # None: a peer-facing one that does not carry the SSH session


def interfaces(node: Node) -> list[str]:
    """The node's interfaces as its link-local addresses name them (`fe80::…%en5`), in the inventory's order."""
    return list(dict.fromkeys(zone for _, _, zone in (address.partition("%") for address in node.addresses) if zone))


def _values(acting: Acting[LinkDownPlan]) -> Mapping[str, str]:
    chosen = acting.settings.interface or " ".join(interfaces(acting.node))
    if not chosen:
        raise CannotAim(
            f"{acting.name}: no interface is known: name it in the fault plan, or add its link-local addresses"
        )
    return {"interface": chosen}


KIND = FaultKind(
    name="link-down",
    place=14,
    summary="one interface down, never the one that carries SSH",
    struck_by="the interface is down",
    healed_by="it is up, with its addresses and routes",
    wants="another interface",
    script="link-down.sh",
    aim=SingleNode(),
    effect="elsewhere",
    recovery_s=22.0,
    settings=LinkDownPlan,
    values=_values,
    needs=frozenset({"link"}),
    right="link",
)
