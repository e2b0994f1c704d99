"""The nodes of an inventory, each reached as the inventory says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from rig.config.inventory import Inventory, Node
from rig.errors import TransportError
from rig.nodes.local import LocalNode
from rig.nodes.operations import ShellNode
from rig.nodes.ssh import SshNode

ShellNodes: TypeAlias = Mapping[str, ShellNode]
"""Nodes on which the rig can set itself up: put scripts, take locks, look for what is missing."""


def connection_to(name: str, node: Node) -> ShellNode:
    """Not connected yet."""
    return LocalNode(name, node) if node.ssh is None else SshNode(name, node)


@asynccontextmanager
async def open_nodes(
    inventory: Inventory,
    *,
    names: list[str] | None = None,
    on_unreachable: Callable[[TransportError], object] | None = None,
) -> AsyncGenerator[ShellNodes]:
    """Connects to the nodes (all, or those named) at once and yields them by name.

    Raises the TransportError of the node that cannot be reached (the others' in its notes). With `on_unreachable` it is
    told of each instead, and the node is yielded all the same: another attempt is made when it is used.
    """
    nodes = {name: connection_to(name, inventory.nodes[name]) for name in names or list(inventory.nodes)}
    try:
        outcomes = await asyncio.gather(*(node.connect() for node in nodes.values()), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for failure in failed:
            if not isinstance(failure, TransportError):
                raise failure
            if on_unreachable is not None:
                on_unreachable(failure)
        if failed and on_unreachable is None:
            for other in failed[1:]:
                failed[0].add_note(str(other))
            raise failed[0]
        yield nodes
    finally:
        await asyncio.gather(*(node.close() for node in nodes.values()))
