"""Leases as the nodes hold them, and healing from them alone: no journal, no memory of who struck."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rig.errors import CommandTimeout, LeaseError, NodeError
from rig.nodes.inspect import Lease
from rig.nodes.node import NodeConnection, Nodes
from rig.nodes.scripts import ScriptEvent

__all__ = ["Healed", "Lease", "heal_all", "heal_on", "leases", "refuse_live"]

HEAL_TIMEOUT_S = 75.0  # a crash is healed when the target runs again, which may take a while


@dataclass(frozen=True)
class Healed:
    """What a heal did on one node. `ok`: nothing is left of what was asked for."""

    node: str
    ok: bool
    events: list[ScriptEvent] = field(default_factory=list[ScriptEvent])
    detail: str = ""


async def leases(nodes: Nodes) -> list[Lease]:
    """All leases on all nodes, live or not. Raises NodeError when a node cannot be asked."""
    seen = await asyncio.gather(*(conn.inspect("leases") for conn in nodes.values()))
    return [lease for one in seen for lease in one.leases]


async def heal_on(conn: NodeConnection, what: str, *, timeout_s: float = HEAL_TIMEOUT_S) -> Healed:
    """Heals what is asked for (an id, `all` or `expired`) on one node. Never raises NodeError: the result says it."""
    events: list[ScriptEvent] = []  # what was seen is kept when the node is lost
    try:
        end = await conn.heal(what, events.append, timeout_s=timeout_s)
    except CommandTimeout:
        return Healed(conn.name, ok=False, events=events, detail=f"heal.sh did not end within {timeout_s:g} s")
    except NodeError as exc:
        return Healed(conn.name, ok=False, events=events, detail=exc.message)
    return Healed(conn.name, ok=end.status == 0, events=events, detail=end.message)


async def heal_all(nodes: Nodes, what: str = "all", *, timeout_s: float = HEAL_TIMEOUT_S) -> list[Healed]:
    """Heals on all nodes at once, whoever struck."""
    return list(await asyncio.gather(*(heal_on(conn, what, timeout_s=timeout_s) for conn in nodes.values())))


async def refuse_live(nodes: Nodes, *, inventory: str) -> None:
    """Raises LeaseError over any lease, saying whose it is and what clears it."""
    if found := await leases(nodes):
        lines = [f"{one.node}: {one.kind} {one.id} of {one.owner}, run {one.run} ({one.phase})" for one in found]
        raise LeaseError(
            "faults are still in force, or were never cleared up:\n  " + "\n  ".join(lines),
            remedy=f"rig heal --inventory {inventory}",
        )
