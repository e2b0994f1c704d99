"""The precheck in full: the short form, and what `facts.sh` and the nodes among each other have to say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping

from rig.config.inventory import Inventory
from rig.errors import NodeError, TransportError
from rig.nodes.doctor import Finding, examine, sparing
from rig.nodes.facts import all_facts
from rig.nodes.judging import judge, judge_paths, judge_versions, judge_wall
from rig.nodes.open import ShellNodes
from rig.nodes.operations import ShellNode


async def examine_fully(
    inventory: Inventory,
    nodes: ShellNodes,
    unreachable: Mapping[str, TransportError] | None = None,
    *,
    kinds: Collection[str],
    evaluate: bool = True,
) -> list[Finding]:
    """Findings in the order of the nodes. Never raises NodeError. `evaluate`: also compute something with MLX,
    which an emulated exo does not have.
    """
    lost = unreachable or {}
    found = await examine(inventory, nodes, lost, kinds=kinds)
    usable = {name: conn for name, conn in nodes.items() if name not in lost and not _hopeless(conn, found)}
    told: dict[str, dict[str, str]] = {}
    compute = evaluate and inventory.emulated is None

    async def look(conn: ShellNode) -> list[Finding]:
        wall = time.time()
        try:
            facts, reached, resolved = await all_facts(inventory, conn, evaluate=compute)
        except NodeError as error:
            return [Finding(conn.name, "facts", "fail", error.message.partition(": ")[2], error.remedy or "")]
        told[conn.name] = facts
        paths = judge_paths(conn.name, reached, resolved)
        return [*judge(conn.name, conn.node, facts, kinds), *judge_wall(conn.name, facts, wall), *paths]

    more = await asyncio.gather(*(look(conn) for conn in usable.values()))
    judged = [*(finding for findings in more for finding in findings), *judge_versions(told)]
    everything = [*found, *sparing(inventory, judged)]
    order = list(inventory.nodes)
    return sorted(everything, key=lambda finding: order.index(finding.node))


def _hopeless(conn: ShellNode, found: Collection[Finding]) -> bool:
    """Whether nothing further can work there."""
    failed = {finding.check for finding in found if finding.node == conn.name and finding.level == "fail"}
    return bool(failed & {conn.transport, "scripts"})
