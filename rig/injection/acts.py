"""Which script does a fault of one kind on one node, with which arguments. Pure.

A cluster that is emulated on one machine shares its memory, its disk and its processors with everything else there, so
that what is taken from a node of it is a token amount: the fault is real, its harm to others is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rig.config.inventory import Node
from rig.config.plan import SHAPES, Kind, KindPlan
from rig.nodes.scripts import process_values

TOKEN_BYTES: Final = 64 * 2**20
TOKEN_LOOPS: Final = 1

SCRIPTS: Final[dict[Kind, str]] = {
    "node-crash": "crash.sh",
    "master-crash": "crash.sh",
    "fast-master-restart": "crash.sh",
    "freeze": "freeze.sh",
    "runner-kill": "runner-kill.sh",
    "partition": "partition.sh",
    "one-way-partition": "partition.sh",
    "bridge-partition": "partition.sh",
    "graceful-stop": "graceful-stop.sh",
    "rolling-restart": "graceful-stop.sh",
    "net-delay": "shape.sh",
    "net-loss": "shape.sh",
    "net-bandwidth": "shape.sh",
    "link-down": "link-down.sh",
    "memory-pressure": "memory-pressure.sh",
    "cpu-hog": "cpu-hog.sh",
    "disk-fill": "disk-fill.sh",
    "reboot": "reboot.sh",
}
TAKES: Final[dict[str, tuple[str, ...]]] = {
    "crash.sh": ("start", "hold_cmd", "release_cmd"),
    "graceful-stop.sh": ("start", "stop", "hold_cmd", "release_cmd"),
    "reboot.sh": ("start",),
    "shape.sh": ("peers", "effect", "amount"),
    "link-down.sh": ("interface",),
    "memory-pressure.sh": ("leave", "most"),
    "disk-fill.sh": ("leave", "most"),
    "cpu-hog.sh": ("load",),
}
"""What a script takes beside the arguments of exo's process."""
HITS_PROCESS: Final[frozenset[Kind]] = frozenset(
    {
        "node-crash",
        "master-crash",
        "fast-master-restart",
        "freeze",
        "graceful-stop",
        "rolling-restart",
        "reboot",
    }
)
"""Kinds that kill, stop or end the main process of their node (own-node rule)."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """One script on one node, with its arguments except id, run, owner, hold."""

    node: str
    script: str
    values: dict[str, str]


def act_on_node(
    kind: Kind, name: str, node: Node, settings: KindPlan, *, peers: Sequence[str] = (), emulated: bool = False
) -> Act:
    """The act of a kind that strikes one node. `peers`: the addresses towards which the network gets worse."""
    extra = _extra(node, settings, peers=peers, emulated=emulated)
    if kind in SHAPES:
        amounts = {
            "net-delay": round(settings.delay * 1000),
            "net-loss": settings.loss,
            "net-bandwidth": settings.bandwidth,
        }
        extra |= {"effect": kind.removeprefix("net-"), "amount": str(amounts[kind])}
    values = {key: extra[key] for key in TAKES.get(SCRIPTS[kind], ())}
    return Act(node=name, script=SCRIPTS[kind], values=process_values(node) | values)


def _extra(node: Node, settings: KindPlan, *, peers: Sequence[str], emulated: bool) -> dict[str, str]:
    """Every argument beyond those of the process, whichever script takes it."""
    exo = node.exo
    most = min(settings.most or TOKEN_BYTES, TOKEN_BYTES) if emulated else settings.most
    return {
        "start": exo.start or "",
        "stop": exo.stop or "",
        "hold_cmd": exo.hold or "",
        "release_cmd": exo.release or "",
        "peers": " ".join(peers),
        "interface": settings.interface or " ".join(interfaces(node)),
        "leave": str(settings.leave),
        "most": str(most or ""),
        "load": str((TOKEN_LOOPS if emulated else settings.load) or ""),
    }


def interfaces(node: Node) -> list[str]:
    """The node's interfaces as its link-local addresses name them (`fe80::…%en5`), in the inventory's order."""
    return list(dict.fromkeys(zone for _, _, zone in (address.partition("%") for address in node.addresses) if zone))
