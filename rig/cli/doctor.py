"""`rig doctor`: every check of every node, with the remedy; and the rehearsed restart."""

from __future__ import annotations

import asyncio
import dataclasses
import json

from rich.table import Table
from rich.text import Text

from rig.cli.reach import running_nodes
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, SshError
from rig.nodes.consent import first_contact
from rig.nodes.doctor import Finding, examine, worst
from rig.nodes.rehearse import rehearse
from rig.nodes.scripts import upload
from rig.nodes.ssh import open_nodes

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, inventory: str | None, rehearse_restart: bool, yes: bool, as_json: bool) -> int:
    """Exit 0 when nothing fails, 3 otherwise."""
    reach = running_nodes(inventory)
    if rehearse_restart:
        asyncio.run(_rehearse(reach.inventory, yes=yes))
    findings = asyncio.run(_examine(reach.inventory))
    if as_json:
        print(json.dumps({"worst": worst(findings), "findings": [dataclasses.asdict(one) for one in findings]}))
    else:
        _print(findings)
    return EXIT_UNKNOWN if worst(findings) == "fail" else EXIT_PASS


async def _examine(inventory: Inventory) -> list[Finding]:
    lost: dict[str, SshError] = {}
    async with open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes:
        return await examine(inventory, nodes, lost)


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
