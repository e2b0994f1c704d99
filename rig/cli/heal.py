"""`rig heal`: undo what leases on the nodes name, whoever struck it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from rig.cli.reach import running_nodes
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, NodeError, TransportError
from rig.injection.lease import Healed, Lease, heal_all, leases
from rig.nodes.consent import agreed
from rig.nodes.lock import binds, holder
from rig.nodes.open import open_nodes
from rig.nodes.operations import ShellNode
from rig.nodes.upload import upload


def heal(*, inventory: str | None, yes: bool, as_json: bool) -> int:
    """Exit 0 when nothing is left on any node, 3 otherwise. Faults of a run that is alive are ended only with `yes`,
    or when the user says so.
    """
    reach = running_nodes(inventory)
    told = asyncio.run(_heal(reach.inventory, yes=yes))
    if as_json:
        print(json.dumps(told))
    else:
        for node in told["nodes"]:
            nothing = [] if node["left"] else ["nothing to heal"]
            for line in node["did"] or nothing:
                print(f"{node['node']}: {line}")
            for line in node["left"]:
                print(f"{node['node']}: LEFT {line}")
    return EXIT_PASS if told["ok"] else EXIT_UNKNOWN


async def _heal(inventory: Inventory, *, yes: bool) -> dict[str, Any]:
    """All nodes at once; one that cannot be reached keeps no other from being healed. Raises UsageError."""
    console = console_on(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    lost: dict[str, TransportError] = {}
    async with open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes:
        reached = [conn for name, conn in nodes.items() if name not in lost]
        alive = [line for lines in await asyncio.gather(*(_of_live_runs(conn) for conn in reached)) for line in lines]
        if alive:
            text = "This ends faults of a run that is alive, and falsifies its results:"
            await agreed("\n  ".join([text, *alive]), yes=yes, say=say)
        found = await asyncio.gather(*(_heal_one(conn) for conn in reached))
    told = [*found, *({"node": name, "did": [], "left": [str(error)]} for name, error in lost.items())]
    return {"ok": not any(node["left"] for node in told), "nodes": told}


async def _of_live_runs(conn: ShellNode) -> list[str]:
    """The faults on a node whose lock somebody holds who is alive. A node that cannot tell is healed as any other."""
    try:
        await upload(conn)
        seen, now = await asyncio.gather(conn.inspect("leases"), conn.inspect("clock"))
    except NodeError:
        return []
    if not binds(seen.lock, now):
        return []
    return [f"{conn.name} is locked by {holder(seen.lock)}: {_described(lease, '')}" for lease in seen.leases]


async def _heal_one(conn: ShellNode) -> dict[str, Any]:
    alone = {conn.name: conn}
    try:
        await upload(conn)
        before = await leases(alone)
        [healed] = await heal_all(alone)
        after = await leases(alone)
    except NodeError as error:
        return {"node": conn.name, "did": [], "left": [str(error)]}
    gone = [lease for lease in before if lease.id not in {one.id for one in after}]
    left = [_described(lease, _why(healed, lease)) for lease in after]
    if not healed.ok and not left:
        left = [healed.detail or "heal.sh did not say that all is well"]
    return {"node": conn.name, "did": [f"healed {_described(lease, '')}" for lease in gone], "left": left}


def _described(lease: Lease, why: str) -> str:
    text = f"{lease.kind} {lease.id} of {lease.owner}, run {lease.run}" if lease.kind else f"lease {lease.id}"
    return f"{text}: {why}" if why else text


def _why(healed: Healed, lease: Lease) -> str:
    """What heal.sh said of this lease."""
    reasons = [event.fields.get("reason", "") for event in healed.events if event.fields.get("id") == lease.id]
    return next((reason for reason in reversed(reasons) if reason), healed.detail)
