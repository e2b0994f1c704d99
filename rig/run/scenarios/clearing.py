"""An empty target before and after each scenario: no deployment, no instance, every node listed."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from rig.clock import Pace
from rig.errors import TargetError
from rig.targets.target import Target

_LIMIT_S: Final = 240.0
_LEAST_S: Final = 30.0
_SWEEP_S: Final = 5.0
_LOOK_S: Final = 0.2


@dataclass(frozen=True)
class Clearing:
    target: Target
    entries: dict[str, str]
    pace: Pace

    async def leftovers(self) -> list[str]:
        """What is deployed or placed, in words. Raises TargetError when no node answers."""
        url = await self._answering()
        deployments, instances = await self.target.deployments(url), await self.target.instances(url)
        told = [f"deployment {name} of {one['model']}" for name, one in deployments.items()]
        return told + [f"instance {name} of {one['model']}" for name, one in instances.items()]

    async def clear(self) -> None:
        """Delete what is there until nothing is left and every node lists every node. Raises TargetError."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + max(self.pace.scale(_LIMIT_S), _LEAST_S)
        left = "no node answers"
        while loop.time() < limit:
            try:
                left = await self._once()
            except TargetError as error:
                left = error.message
            if not left:
                return
            await asyncio.sleep(_LOOK_S)
        raise TargetError(f"the target does not come to rest: {left}", remedy="look at GET /deployments and /state")

    async def sweep(self) -> None:
        """Ask for everything to be deleted, and do not wait for it: somebody is in a hurry. Never raises."""
        with contextlib.suppress(TargetError, TimeoutError):
            async with asyncio.timeout(_SWEEP_S):
                await self._once()
                await self._once()

    async def _once(self) -> str:
        """What is left to be done; empty when nothing is."""
        url = await self._answering()
        deployments = await self.target.deployments(url)
        for name in deployments:
            await self.target.delete_deployment(url, name)
        instances = await self.target.instances(url)
        if deployments:
            return f"{len(deployments)} deployments"
        for name in instances:
            await self.target.delete_instance(url, name)
        if instances:
            return f"{len(instances)} instances"
        return await self._missing()

    async def _missing(self) -> str:
        """Nodes that do not list all of them yet. A target without such a list is taken at its word."""
        poll = next((poll for poll in self.target.polls if "nodes" in poll.facets), None)
        if poll is None:
            return ""
        for node, url in self.entries.items():
            facets = (await self.target.read(url, poll, timeout_s=5.0)).facets
            listed, links = facets.get("nodes"), facets.get("links")
            if listed is not None and len(listed) != len(self.entries):
                return f"{node} lists {len(listed)} of {len(self.entries)} nodes"
            if links is not None and len(links) < len(self.entries) * (len(self.entries) - 1):
                return f"{node} lists {len(links)} links"
            if await self.target.instances(url) or await self.target.deployments(url):
                return f"{node} still lists something"
        return ""

    async def _answering(self) -> str:
        last: TargetError | None = None
        for url in self.entries.values():
            try:
                await self.target.node_id(url)
            except TargetError as error:
                last = error
            else:
                return url
        raise last or TargetError("the inventory has no nodes")
