"""What the target does not cure by itself is restarted by the rig, so that later faults meet a working cluster.

Killing only the hung runner can end exo on the other nodes (measured on exo 0.3.70), so the whole exo tree of the
wedged node is killed at once and started again, then whatever else has died is started. The cost is kept apart.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

from rig.analysis.symptoms.processes import before_unwedging
from rig.errors import NodeError
from rig.faults.node_crash import KIND as CRASH
from rig.injection.act import Watcher
from rig.injection.acts import act_on_node
from rig.injection.fault import Identity, write_inventory
from rig.journal.records import Unwedged
from rig.journal.write import Journal
from rig.nodes.inspect import inspect
from rig.nodes.ssh import NodeConnection, Nodes
from rig.observe.cluster_view import ClusterView

CUT_SHORT: Final = "cut short by the end of the run: the node's own script goes on, and starts exo again"
_START_LIMIT_S: Final = 60.0


def wedged_nodes(view: ClusterView, silent_models: list[str], nodes: list[str]) -> list[str]:
    """Whom to restart, by the views: hosts of what does not serve; without an instance the nodes that lag or are
    missing from the others' views; else all."""
    hosts = {
        host
        for node in nodes
        for instance in view.instances(node).values()
        if instance.model in silent_models
        for host in instance.runners
    }
    if hosts:
        return [node for node in nodes if node in hosts]
    best = view.best()
    live = set(view.live_nodes(best)) if best is not None else set[str]()
    odd = [node for node in nodes if node not in live or view.reachable(node) is False]
    return odd or nodes


@dataclass(frozen=True)
class Unwedger:
    """`await unwedge(fault, nodes)` restarts them and starts every other node whose exo is gone."""

    connections: Nodes
    journal: Journal
    identity: Identity

    async def unwedge(self, fault: int, nodes: list[str]) -> bool:
        """All restarts at once, each bounded; one record a node. True when every one of them runs again.

        What runs on each node is journalled first: a process that died is not to be hidden by its restart.
        """
        await asyncio.gather(*(self._look(fault, conn) for conn in self.connections.values()))
        restarted = await asyncio.gather(*(self._restart(fault, self.connections[name]) for name in nodes))
        others = [conn for name, conn in self.connections.items() if name not in nodes]
        started = await asyncio.gather(*(self._start_if_dead(fault, conn) for conn in others))
        return all(restarted) and all(started)

    async def _look(self, fault: int, conn: NodeConnection) -> None:
        try:
            write_inventory(self.journal, await inspect(conn, "all"), before_unwedging(fault))
        except NodeError:
            return  # the restart will say what is wrong with the node

    async def _restart(self, fault: int, conn: NodeConnection) -> bool:
        """The crash script with no hold: same proofs, same lease, same healing if this controller dies now."""
        exo, started_t = conn.node.exo, self.journal.now()
        if exo.start is None:
            return self._record(
                fault, conn, started_t, ok=False, detail="the inventory does not say how exo is started"
            )
        if await self._main_is_gone(conn):
            return await self._start(fault, conn, started_t)
        act = act_on_node(CRASH, conn.name, conn.node, CRASH.settings())
        name = f"unwedge.{max(fault, 0)}.{secrets.token_hex(3)}"
        watcher = Watcher(conn, act, name, 0.0, lambda: None)
        try:
            await watcher.run({"id": name, "run": self.identity.run, "owner": self.identity.owner, "hold": "0"})
        except asyncio.CancelledError:
            self._record(fault, conn, started_t, ok=False, detail=CUT_SHORT)
            raise
        end = watcher.progress.end
        return self._record(fault, conn, started_t, ok=end == "healed", detail=watcher.progress.detail or f"{end}")

    async def _main_is_gone(self, conn: NodeConnection) -> bool:
        try:
            return (await inspect(conn, "tree")).main is None
        except NodeError:
            return False

    async def _start_if_dead(self, fault: int, conn: NodeConnection) -> bool:
        if not await self._main_is_gone(conn):
            return True
        return await self._start(fault, conn, self.journal.now())

    async def _start(self, fault: int, conn: NodeConnection, started_t: float) -> bool:
        if conn.node.exo.start is None:
            return self._record(
                fault, conn, started_t, ok=False, detail="exo is gone, and how to start it is not known"
            )
        try:
            await conn.run(conn.node.exo.start, timeout_s=_START_LIMIT_S)
        except asyncio.CancelledError:
            self._record(fault, conn, started_t, ok=False, detail=CUT_SHORT)
            raise
        except NodeError as error:
            return self._record(fault, conn, started_t, ok=False, detail=error.message)
        return self._record(fault, conn, started_t, ok=True, detail="exo was gone; started")

    def _record(self, fault: int, conn: NodeConnection, started_t: float, *, ok: bool, detail: str) -> bool:
        now = self.journal.now()
        if self.journal.failed:
            return ok
        self.journal.write(
            Unwedged(t=now, fault=fault, node=conn.name, started_t=started_t, ended_t=now, ok=ok, detail=detail)
        )
        return ok
