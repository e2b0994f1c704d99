"""When a cluster can be used: every API answers, every view lists every node, and all views are those of one master."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from rig.config.inventory import Inventory
from rig.errors import ClusterError

POLL_S = 0.1


async def wait_until_ready(inventory: Inventory, *, deadline: float) -> None:
    """`deadline` on `time.monotonic()`. Raises ClusterError naming what was missing."""
    count = len(inventory.nodes)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2.0), trust_env=False) as session:
        while True:
            missing = [
                text
                for name, node in inventory.nodes.items()
                if (text := await _missing(session, name, node.api, count))
            ]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise ClusterError(f"the embedded cluster did not come up: {'; '.join(missing)}")
            await asyncio.sleep(POLL_S)


async def _missing(session: aiohttp.ClientSession, name: str, api: str, count: int) -> str | None:
    """What this node still lacks, or None."""
    try:
        async with session.get(f"{api}/state/topology") as answer:
            if answer.status != 200:
                return f"{name}: /state/topology answers {answer.status}"
            topology = await answer.json()
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"{name}: API does not answer ({type(error).__name__})"
    nodes = topology.get("nodes", [])
    if len(nodes) != count:
        return f"{name}: sees {len(nodes)} of {count} nodes"
    links = sum(len(sinks) for sinks in topology.get("connections", {}).values())
    if links != count * (count - 1):
        return f"{name}: sees {links} of {count * (count - 1)} links"
    return None
