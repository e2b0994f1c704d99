"""`rig bootstrap`: guard, sudo rights and folders on the nodes, shown before they are made; and the exact inverse."""

from __future__ import annotations

import asyncio
import json

from rig.cli.reach import running_nodes
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.config.target_fields import fields_of
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, NodeError, UsageError
from rig.faults.plan.read import load_plan
from rig.nodes.bootstrap import Bootstrapped, Step, allowed_for, bootstrap
from rig.nodes.open import open_nodes


def bootstrap_nodes(
    *, inventory: str | None, faults: str | None, node: list[str], remove: bool, yes: bool, as_json: bool
) -> int:
    """Without `yes` it only says what it would do. Exit 0, or 3 when a node refused or could not be reached."""
    reach = running_nodes(inventory)
    if reach.inventory.on_this_machine:
        raise UsageError(
            f"{reach.name}: these nodes are processes of this machine: it would be set up as if it were a node",
            remedy="an embedded cluster needs no bootstrap; give the inventory of real nodes, or `hosts: namespaces`",
        )
    step: Step = ("remove" if remove else "install") if yes else "plan"
    if remove and not yes:
        print(
            "rig bootstrap --remove takes away what rig bootstrap made, by its manifest /etc/rig/manifest on each node."
        )
        print("Nothing was done. Do it with --yes.")
        return EXIT_PASS
    allow = allowed_for(load_plan(faults or fields_of(reach.inventory.target).plan).kinds)
    told = asyncio.run(_all(reach.inventory, node or list(reach.inventory.nodes), step, allow))
    if as_json:
        print(json.dumps([{"node": one.node, "refused": one.refused, "lines": one.lines} for one in told]))
    else:
        _print(told, step)
    return EXIT_UNKNOWN if any(one.refused for one in told) else EXIT_PASS


async def _all(inventory: Inventory, names: list[str], step: Step, allow: list[str]) -> list[Bootstrapped]:
    """One node after another, so that what goes wrong goes wrong once."""
    told: list[Bootstrapped] = []
    for name in names:
        try:
            async with open_nodes(inventory, names=[name]) as nodes:
                told.append(await bootstrap(nodes[name], step, allow))
        except NodeError as error:
            told.append(Bootstrapped(name, refused=True, lines=str(error).splitlines()))
        if told[-1].refused and step != "plan":
            break
    return told


def _print(told: list[Bootstrapped], step: Step) -> None:
    console = console_on()
    for one in told:
        console.print(f"{one.node}:", markup=False)
        for line in one.lines or ["nothing to do: all of it is there"]:
            console.print(f"  {line}", markup=False, soft_wrap=True)
    if step == "plan":
        console.print("Nothing was done. Do it with --yes; undo it with --remove.", markup=False)
