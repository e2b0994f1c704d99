"""The controller's own account of a strike and a heal, beside the script's word. What disagrees is not counted.

For processes it reads their states through a second session; for partitions it asks the *other* side to connect. An
account may also be missing (too late to see, nobody there to ask): that is said and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.errors import NodeError
from rig.faults.plan.witness import Hit, Says
from rig.injection.act import Progress
from rig.injection.aim import Aim
from rig.nodes.inspect import Inspection
from rig.nodes.node import NodeConnection, Nodes

PROBE_LIMIT = 24  # addresses a peer tries at once
MARGIN_S = 0.05  # an account this close to the end of the hold says nothing


@dataclass(frozen=True)
class Account:
    """`agrees`, `disagrees` or `silent` about one node's script, with what was seen."""

    node: str
    says: Says
    text: str


def judge_processes(progress: Progress, seen: Inspection, hold_s: float) -> Account:
    """Compares a struck event with the process states seen a moment later. Pure."""
    node, witness = progress.act.node, progress.act.kind.witness
    struck = progress.first("struck")
    assert struck is not None
    hit = Hit(
        pids=struck.fields.get("pids", "").split(),
        states={process.identity: process.state for process in seen.tree},
        main=struck.fields.get("main"),
    )
    if witness is None or not hit.pids:
        return Account(node, "silent", "the script named no pids")
    if witness.while_held:
        healing = progress.first("healing")
        until = healing.node_t if healing is not None else struck.node_t + hold_s
        if seen.clock > until - MARGIN_S:
            return Account(node, "silent", "the hold was over before the process states were read")
    return Account(node, *witness.judge(hit))


async def look_at_processes(conn: NodeConnection, progress: Progress, hold_s: float) -> Account:
    """Reads the states of the processes that a script says it hit. Never raises NodeError."""
    struck = progress.first("struck")
    assert struck is not None
    words = [*struck.fields.get("pids", "").split(), struck.fields.get("main", "")]
    pids = sorted({int(pid) for pid in (word.partition(":")[0] for word in words) if pid.isdigit()})
    try:
        seen = await conn.inspect("procs", pids=pids, timeout_s=5.0)
    except NodeError as exc:
        return Account(conn.name, "silent", exc.message)
    return judge_processes(progress, seen, hold_s)


class Outside:
    """The view of a partition from its other side: which addresses answered before, and whether they are silent now."""

    def __init__(self, nodes: Nodes, aim: Aim) -> None:
        inside = {act.node for act in aim.acts}
        self._some = any("interface" in act.values for act in aim.acts)  # other addresses go on to answer
        ends = [
            (address, nodes[name].node.peer_port) for name in sorted(inside) for address in nodes[name].node.addresses
        ]
        self._ends = ends[:PROBE_LIMIT]
        self._peers = [nodes[name] for name in aim.nodes if name not in inside][:2]
        self._answered: dict[str, set[str]] = {}

    async def look_before(self) -> None:
        for conn, answered in zip(self._peers, await self._probe_all(), strict=True):
            self._answered[conn.name] = answered or set()

    async def look_after(self, in_time: Callable[[], bool]) -> Account:
        """One account for the whole cut. `in_time` says whether the hold surely is not over yet."""
        name = ", ".join(conn.name for conn in self._peers) or "nobody"
        if not any(self._answered.values()):
            return Account(name, "silent", "no address had answered from the other side beforehand")
        found = await self._probe_all()
        open_still: list[str] = []
        cut = 0
        for conn, answered in zip(self._peers, found, strict=True):
            before = self._answered.get(conn.name, set())
            if answered is not None:
                open_still += [f"{conn.name} → {address}" for address in sorted(answered & before)]
                cut += len(before - answered)
        if open_still and self._some and cut:
            return Account(name, "agrees", f"{cut} connections that worked before no longer do, {len(open_still)} do")
        if open_still and not in_time():  # a retried SYN may have got through just after the heal
            return Account(name, "silent", "the hold was over before the other side had tried")
        if open_still:
            return Account(name, "disagrees", f"still connects: {', '.join(open_still)}")
        return Account(name, "agrees" if cut else "silent", f"{cut} connections that worked before no longer do")

    async def _probe_all(self) -> list[set[str] | None]:
        return list(await asyncio.gather(*(_probe(conn, self._ends) for conn in self._peers)))


async def _probe(conn: NodeConnection, ends: Sequence[tuple[str, int]]) -> set[str] | None:
    """The addresses whose API port a node can connect to, all tried at once (about 1 s when some cannot)."""
    try:
        ports = {port: [address for address, its in ends if its == port] for _, port in ends}
        asked = (conn.answering(addresses, port, timeout_s=5.0) for port, addresses in ports.items())
        return set[str]().union(*await asyncio.gather(*asked))
    except NodeError:
        return None
