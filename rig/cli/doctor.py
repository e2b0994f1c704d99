"""`rig doctor`: every check of every node, with the remedy; a rehearsed restart, or the rehearsal of a whole plan."""

from __future__ import annotations

import asyncio
import dataclasses
import json

from rich.table import Table
from rich.text import Text

from rig.cli.instances import examine_instances
from rig.cli.reach import running_nodes
from rig.cli.rehearse import print_rehearsed, rehearse_plan
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, SshError
from rig.faults.plan.plan import Plan
from rig.faults.plan.read import load_plan
from rig.injection.rehearsal import Rehearsed
from rig.nodes.consent import first_contact
from rig.nodes.doctor import Finding, worst
from rig.nodes.doctor_full import examine_fully
from rig.nodes.rehearse import rehearse
from rig.nodes.scripts import upload
from rig.nodes.ssh import open_nodes

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    inventory: str | None,
    rehearse_restart: bool,
    yes: bool,
    as_json: bool,
    rehearse: bool = False,
    faults: str | None = None,
    evaluate: bool = True,
) -> int:
    """Exit 0 when nothing fails, 3 otherwise. `faults`: the plan whose needs are checked (None: keeper)."""
    reach = running_nodes(inventory)
    plan = load_plan(faults or "keeper")
    if rehearse_restart:
        asyncio.run(_rehearse(reach.inventory, yes=yes))
    findings = asyncio.run(_examine(reach.inventory, plan, evaluate=evaluate))
    rehearsed: list[Rehearsed] = []
    if rehearse and worst(findings) != "fail":
        rehearsed = asyncio.run(rehearse_plan(reach, plan, yes=yes, quiet=as_json))
    told = {
        "worst": worst(findings),
        "findings": [dataclasses.asdict(one) for one in findings],
        **({"rehearsed": [dataclasses.asdict(one) for one in rehearsed]} if rehearse else {}),
    }
    if as_json:
        print(json.dumps(told))
    else:
        _print(findings)
        if rehearse:
            print_rehearsed(rehearsed)
    sound = worst(findings) != "fail" and all(one.as_wanted for one in rehearsed)
    return EXIT_PASS if sound else EXIT_UNKNOWN


async def _examine(inventory: Inventory, plan: Plan, *, evaluate: bool) -> list[Finding]:
    lost: dict[str, SshError] = {}
    async with open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes:
        found = await examine_fully(inventory, nodes, lost, kinds=plan.struck, evaluate=evaluate)
        return [*found, *await examine_instances(nodes)]


async def _rehearse(inventory: Inventory, *, yes: bool) -> None:
    """One node after the other, so that a start that does not work takes down one node and no more."""
    console = console_on(stderr=True)
    names = [name for name, node in inventory.nodes.items() if node.faults]

    def say(text: str) -> None:
        console.print(text, markup=False)

    async with open_nodes(inventory, names=names) as nodes:
        await asyncio.gather(*(upload(conn) for conn in nodes.values()))
        await first_contact(nodes, yes=yes, say=say)
        for conn in nodes.values():
            await rehearse(conn, say)


def _print(findings: list[Finding]) -> None:
    table = Table("node", "check", "", "found", box=None, pad_edge=False)
    for finding in findings:
        found = Text(finding.text)
        if finding.remedy and finding.level != "ok":
            found.append(f"\nfix: {finding.remedy}", style="italic")
        table.add_row(finding.node, finding.check, Text(finding.level, style=STYLES[finding.level]), found)
    console_on().print(table)
    failed = sum(finding.level == "fail" for finding in findings)
    print(f"{failed} to be fixed before a run" if failed else "ready")
