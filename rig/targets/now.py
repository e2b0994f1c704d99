"""What a target tells when it is asked outright, rather than by its polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rig.nodes.node import Nodes
from rig.targets.target import Target
from rig.targets.views import Instance


async def instances_of(target: Target, url: str, name_of: Callable[[str], str | None]) -> Sequence[Instance]:
    """The instances by the view of the node at `url`, nodes named by `name_of` their id. Raises TargetError."""
    listed = await target.listing().instances(url)
    return [instance.named(name_of) for instance in listed.values()]


async def instances_by_any(target: Target, nodes: Nodes) -> Sequence[Instance]:
    """The same where no ids are known yet: each of the nodes is asked for its own."""
    urls = {name: conn.node.api for name, conn in nodes.items()}
    lists = target.listing()
    ids = await asyncio.gather(*(lists.node_id(url) for url in urls.values()), return_exceptions=True)
    names = {found: name for name, found in zip(urls, ids, strict=True) if isinstance(found, str)}
    first = next(iter(names.values()), next(iter(urls)))
    return await instances_of(target, urls[first], names.get)
