"""Everything that must hold before the first request: nodes that answer, are sound, free, ours, and may be hit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rig.config.inventory import Inventory
from rig.errors import NodeNotReady
from rig.faults.plan.plan import Plan
from rig.injection.lease import refuse_live
from rig.lab.embedded.cluster import Cluster, start_cluster
from rig.nodes.consent import first_contact, named_processes
from rig.nodes.doctor import Finding, examine
from rig.nodes.lock import Locks, default_owner, hold_locks
from rig.nodes.node import Nodes
from rig.nodes.open import open_nodes
from rig.nodes.rehearse import rehearsed
from rig.nodes.upload import upload
from rig.soak.halting import Halt

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ready:
    """Connected, locked and agreed to. `inventory` has nodes, also where an embedded cluster was asked for."""

    inventory: Inventory
    nodes: Nodes
    owner: str
    pids: dict[str, list[str]]
    rehearsed: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """`name` is what the user called the inventory; `cluster_folder` is for an embedded cluster, if it is one."""

    name: str
    inventory: Inventory
    plan: Plan
    run: str
    cluster_folder: Path
    yes: bool
    halt: Halt
    say: Say

    async def ready(self, stack: AsyncExitStack) -> Ready:
        """What is taken here is given back when `stack` is closed. Raises RigError: nothing may begin."""
        inventory, name = await self._running(stack)
        nodes = await stack.enter_async_context(open_nodes(inventory))
        await asyncio.gather(*(upload(conn) for conn in nodes.values()))
        owner = default_owner()
        locks = await stack.enter_async_context(hold_locks(nodes, self.run, owner=owner, say=self.say))
        await refuse_live(nodes, inventory=name)  # under the lock: of nobody who is at work
        stack.callback(asyncio.create_task(_locks_lost(locks, self.halt)).cancel)
        self._refuse_unsound(await examine(inventory, nodes, kinds=self.plan.struck, own_lock=owner), name)
        own_processes = self.inventory.embedded is not None
        if own_processes:  # started by this command, for nothing else
            pids = await named_processes(nodes)
        else:
            pids = await first_contact(nodes, yes=self.yes, say=self.say)
        return Ready(inventory, nodes, owner, pids, await rehearsed(nodes))

    async def _running(self, stack: AsyncExitStack) -> tuple[Inventory, str]:
        spec = self.inventory.embedded
        if spec is None:
            return self.inventory, self.name
        self.say(f"starting an embedded cluster: {spec.nodes} nodes, {spec.behaviour}, pace {spec.pace:g}")
        cluster = await stack.enter_async_context(start_cluster(spec, self.cluster_folder))
        stack.callback(asyncio.create_task(_cluster_lost(cluster, self.halt)).cancel)
        return cluster.inventory, str(cluster.folder / "inventory.yaml")

    def _refuse_unsound(self, findings: list[Finding], name: str) -> None:
        """Warnings are said; a failure ends it here. Raises NodeNotReady."""
        for one in findings:
            if one.level == "warn":
                self.say(f"doctor: {one.node}: {one.check}: {one.text}")
        failed = [one for one in findings if one.level == "fail"]
        if failed:
            lines = [f"\n  {one.node}: {one.check}: {one.text}; {one.remedy}" for one in failed]
            count = "1 check of the nodes fails" if len(failed) == 1 else f"{len(failed)} checks of the nodes fail"
            what = f"{count}:{''.join(lines)}"
            raise NodeNotReady(failed[0].node, what, remedy=f"rig doctor --inventory {name}")


async def _cluster_lost(cluster: Cluster, halt: Halt) -> None:
    await cluster.lost.wait()
    halt.call("failed", f"the embedded cluster ended by itself: {cluster.lost_reason()}")


async def _locks_lost(locks: Locks, halt: Halt) -> None:
    await locks.lost.wait()
    halt.unlock(locks.kept_at, f"a lock on a node was lost: {locks.reason}")
