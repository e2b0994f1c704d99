"""A node on which `kill` does nothing: what a rehearsal strikes to see whether it would be believed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from rig.config.inventory import Inventory
from rig.nodes.node import Nodes
from rig.nodes.open import open_nodes
from rig.nodes.scripts import q

USUAL_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"


@asynccontextmanager
async def without_kill(inventory: Inventory, name: str, lock: str) -> AsyncGenerator[Nodes]:
    """The node with a `kill` of its own, first on the PATH of its scripts; gone afterwards.

    `lock`: the token of the lock that is held there. Raises NodeError when it cannot be prepared.
    """
    node = inventory.nodes[name]
    folder = f"{node.rig_dir}/inert"
    path = f"{folder}:{node.path or USUAL_PATH}"
    changed = inventory.model_copy(update={"nodes": {name: node.model_copy(update={"path": path})}})
    async with open_nodes(changed) as nodes:
        conn = nodes[name]
        conn.lock = lock
        await conn.run(f"mkdir -p {q(folder)}")
        try:
            await conn.put(f"{folder}/kill", b"#!/bin/sh\nexit 0\n", 0o700)
            yield nodes
        finally:
            await conn.run(f"rm -rf {q(folder)}", check=False)
