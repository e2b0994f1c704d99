"""A look at the target's processes while they have nothing to do: what they use then, and what is left of others."""

from __future__ import annotations

import asyncio
from typing import Final

from rig.errors import NodeError
from rig.injection.fault import write_inventory
from rig.journal.write import Journal
from rig.nodes.node import NodeConnection, Nodes

_LIMIT_S: Final = 10.0


async def look_while_idle(nodes: Nodes, journal: Journal, apart_s: float) -> None:
    """Two looks at every node, `apart_s` seconds apart. A node that does not answer is left out."""
    for look in range(2):
        if look:
            await asyncio.sleep(apart_s)
        await asyncio.gather(*(_look(conn, journal) for conn in nodes.values()))


async def _look(conn: NodeConnection, journal: Journal) -> None:
    try:
        seen = await conn.inspect("all", timeout_s=_LIMIT_S)
    except NodeError:
        return  # that it cannot be reached is in the journal by other means
    if not journal.failed:
        write_inventory(journal, seen, "idle")
