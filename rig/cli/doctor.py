"""`rig doctor`: every check of every node, with the remedy; a rehearsed restart, or the rehearsal of a whole plan."""

from __future__ import annotations

import asyncio
import dataclasses
import json

from rich.table import Table
from rich.text import Text

from rig.cli.instances import ALL, deployed_now, examine_instances, judge_deployments
from rig.cli.reach import Reach, running_nodes
from rig.cli.rehearse import print_rehearsed, rehearse_plan
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.config.target_fields import fields_of
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, TransportError
from rig.faults.plan.plan import Plan
from rig.faults.plan.read import load_plan
from rig.injection.lease import refuse_live
from rig.injection.rehearsal import Rehearsed
from rig.nodes.consent import first_contact
from rig.nodes.doctor import Finding, worst
from rig.nodes.doctor_full import examine_fully
from rig.nodes.lock import hold_locks
from rig.nodes.node import Nodes
from rig.nodes.open import open_nodes
from rig.nodes.rehearse import rehearse
from rig.nodes.upload import upload
from rig.soak.halting import unless
from rig.soak.interrupt import Interrupt
from rig.targets.target import Target, opened_target

KNOWN_AGAIN_S = 60.0  # a node that was restarted has its links after some 22 s
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
    """Exit 0 when nothing fails, 3 otherwise. `faults`: the plan whose needs are checked (None: the target's)."""
    reach = running_nodes(inventory)
    plan = load_plan(faults or fields_of(reach.inventory.target).plan)
    cost = asyncio.run(_rehearse(reach, yes=yes)) if rehearse_restart else []
    if isinstance(cost, int):
        return cost
    findings = [*asyncio.run(_examine(reach.inventory, plan, evaluate=evaluate)), *cost]
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
    lost: dict[str, TransportError] = {}
    async with (
        opened_target(inventory.target) as target,
        open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes,
    ):
        found = await examine_fully(inventory, nodes, lost, kinds=plan.struck, evaluate=evaluate)
        return [*found, *await examine_instances(target, nodes)]


async def _rehearse(reach: Reach, *, yes: bool) -> list[Finding] | int:
    """What the restarts cost; the exit code of an interruption, which does not leave a node without its target."""
    with Interrupt() as interrupt:
        cost = await unless(interrupt.event, restart_each(reach, yes=yes))
        return interrupt.exit_code if cost is None else cost


async def restart_each(reach: Reach, *, yes: bool) -> list[Finding]:
    """One node after the other, so that a start that does not work takes down one node and no more; each is given time
    to know the deployments again, which the next one may be the last to know. Returns what it cost.
    """
    console = console_on(stderr=True)
    names = [name for name, node in reach.inventory.nodes.items() if node.faults]

    def say(text: str) -> None:
        console.print(text, markup=False)

    async with opened_target(reach.inventory.target) as target, open_nodes(reach.inventory, names=names) as nodes:
        await asyncio.gather(*(upload(conn) for conn in nodes.values()))
        async with hold_locks(nodes, "rehearsal", say=say):
            await refuse_live(nodes, inventory=reach.name)  # under the lock: of nobody who is at work
            await first_contact(nodes, yes=yes, say=say)
            before = await deployed_now(target, nodes)
            for name, conn in nodes.items():
                await rehearse(conn, say)
                await _known_again(target, {name: conn}, before)
            return judge_deployments(before, await deployed_now(target, nodes))


async def _known_again(target: Target, nodes: Nodes, wanted: frozenset[str]) -> bool:
    """Waits, bounded, until the nodes list these deployments."""
    deadline = asyncio.get_running_loop().time() + KNOWN_AGAIN_S
    while not wanted <= await deployed_now(target, nodes):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(1.0)
    return True


def _print(findings: list[Finding]) -> None:
    table = Table("node", "check", "", "found", box=None, pad_edge=False)
    for finding in findings:
        found = Text(finding.text)
        if finding.remedy and finding.level != "ok":
            found.append(f"\nfix: {finding.remedy}", style="italic")
        table.add_row(finding.node, finding.check, Text(finding.level, style=STYLES[finding.level]), found)
    console_on().print(table)
    print(verdict_line(findings))


def verdict_line(findings: list[Finding]) -> str:
    """Whether a run may begin, and what this command has cost. Pure."""
    failed = sum(finding.level == "fail" for finding in findings)
    cost = [finding.text for finding in findings if finding.node == ALL and finding.level != "ok"]
    return f"{failed} to be fixed before a run" if failed else "; but ".join(["ready", *cost])
