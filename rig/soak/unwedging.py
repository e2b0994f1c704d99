"""What the target does not cure by itself is restarted by the rig, so that later faults meet a working cluster.

Killing only the hung worker can end the target on the other nodes (as measured), so the whole process tree of the
wedged node is killed at once and started again, then whatever else has died is started. A master is restarted last,
and only when the others did not suffice: with it deployments may go, and every client waits. The cost is kept apart.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from rig.errors import NodeError
from rig.faults.node_crash import KIND as CRASH
from rig.injection.act import Watcher
from rig.injection.acts import act_on_node
from rig.injection.fault import Identity, write_inventory
from rig.journal.records import Finding, Unwedged
from rig.journal.write import Journal
from rig.nodes.node import NodeConnection, Nodes
from rig.observe.cluster_view import ClusterView

_CUT_SHORT: Final = "cut short by the end of the run: the node's own script goes on, and starts the target again"
_START_LIMIT_S: Final = 60.0


def wedged_nodes(view: ClusterView, silent_models: list[str], nodes: list[str]) -> list[str]:
    """Whom to restart, by the views: hosts of what does not serve; without an instance the nodes that lag or are
    missing from the others' views; else all."""
    hosts = {
        host
        for node in nodes
        for instance in view.instances(node).values()
        if instance.model in silent_models
        for host in instance.workers
    }
    if hosts:
        return [node for node in nodes if node in hosts]
    best = view.best()
    live = set(view.live_nodes(best)) if best is not None else set[str]()
    odd = [node for node in nodes if node not in live or view.reachable(node) is False]
    return odd or nodes


def restart_stages(wedged: list[str], nodes: list[str], masters: Collection[str]) -> list[list[str]]:
    """Whom to restart at once, each group only when the one before did not help: the wedged nodes without the master,
    then the master if it is one of them, else all others but the master; then everything. Pure.
    """
    wedged_masters = [node for node in wedged if node in masters]
    others = [node for node in nodes if node not in masters]
    stages: list[list[str]] = []
    for group in ([node for node in wedged if node not in masters], wedged_masters or others, nodes):
        if group and group not in stages:
            stages.append(group)
    return stages


@dataclass(frozen=True)
class Unwedger:
    """`await unwedge(fault, nodes)` restarts them and starts every other node where it is gone."""

    connections: Nodes
    journal: Journal
    identity: Identity

    async def unwedge(self, fault: int, nodes: list[str], masters: Collection[str]) -> bool:
        """All restarts at once, each bounded; one record a node. True when every one of them runs again.

        What runs on each node is journalled first: a process that died is not to be hidden by its restart. `masters`:
        who claims to be one now; that one of them is restarted is a finding, with what it costs.
        """
        await asyncio.gather(*(self._look(fault, conn) for conn in self.connections.values()))
        for name in nodes:
            if name in masters:
                self._say_master(fault, name, [other for other in nodes if other != name])
        restarts = (self._restart(fault, self.connections[name], master=name in masters) for name in nodes)
        restarted = await asyncio.gather(*restarts)
        others = [conn for name, conn in self.connections.items() if name not in nodes]
        started = await asyncio.gather(*(self._start_if_dead(fault, conn) for conn in others))
        return all(restarted) and all(started)

    def _say_master(self, fault: int, name: str, others: list[str]) -> None:
        beside = f" with {', '.join(others)}" if others else ""
        text = (
            f"{name}, the master, is restarted{beside} to unwedge the target after fault {fault}: until another one is"
            " elected nothing is placed and requests may hang on every node, and deployments may be gone"
        )
        data = {"fault": fault, "node": name, "others": others}
        self.journal.write(Finding(t=self.journal.now(), code="unwedged-master", text=text, data=data))

    async def _look(self, fault: int, conn: NodeConnection) -> None:
        try:
            write_inventory(self.journal, await conn.inspect("all"), "before-unwedging", fault)
        except NodeError:
            return  # the restart will say what is wrong with the node

    async def _restart(self, fault: int, conn: NodeConnection, *, master: bool) -> bool:
        """The crash script with no hold: same proofs, same lease, same healing if this controller dies now."""
        process, started_t = conn.node.process, self.journal.now()

        def record(detail: str, *, ok: bool) -> bool:
            return self._record(fault, conn, started_t, ok=ok, detail=detail, master=master)

        if process.start is None:
            return record(f"the inventory does not say how {process.section} is started", ok=False)
        if await self._main_is_gone(conn):
            return await self._start(fault, conn, started_t)
        act = act_on_node(CRASH, conn.name, conn.node, CRASH.settings())
        name = f"unwedge.{max(fault, 0)}.{secrets.token_hex(3)}"
        watcher = Watcher(conn, act, name, 0.0, lambda: None)
        try:
            await watcher.run({"id": name, "run": self.identity.run, "owner": self.identity.owner, "hold": "0"})
        except asyncio.CancelledError:
            self._record(fault, conn, started_t, ok=False, cut_short=True, detail=_CUT_SHORT, master=master)
            raise
        end = watcher.progress.end
        return record(watcher.progress.detail or f"{end}", ok=end == "healed")

    async def _main_is_gone(self, conn: NodeConnection) -> bool:
        try:
            return (await conn.inspect("tree")).main is None
        except NodeError:
            return False

    async def _start_if_dead(self, fault: int, conn: NodeConnection) -> bool:
        if not await self._main_is_gone(conn):
            return True
        return await self._start(fault, conn, self.journal.now())

    async def _start(self, fault: int, conn: NodeConnection, started_t: float) -> bool:
        what = conn.node.process.section
        record = partial(self._record, fault, conn, started_t, act="start")
        if conn.node.process.start is None:
            return record(ok=False, detail=f"{what} is gone, and how to start it is not known")
        try:
            await conn.carry_out("start", timeout_s=_START_LIMIT_S)
        except asyncio.CancelledError:
            record(ok=False, cut_short=True, detail=_CUT_SHORT)
            raise
        except NodeError as error:
            return record(ok=False, detail=error.message)
        return record(ok=True, detail=f"{what} was gone; started")

    def _record(
        self,
        fault: int,
        conn: NodeConnection,
        started_t: float,
        *,
        ok: bool,
        detail: str,
        act: Literal["restart", "start"] = "restart",
        cut_short: bool = False,
        master: bool | None = None,
    ) -> bool:
        now = self.journal.now()
        if self.journal.failed:
            return ok
        self.journal.write(
            Unwedged(
                t=now,
                fault=fault,
                node=conn.name,
                started_t=started_t,
                ended_t=now,
                ok=ok,
                act=act,
                cut_short=cut_short,
                detail=detail,
                master=master,
            )
        )
        return ok
