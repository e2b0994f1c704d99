"""The rehearsal of a plan, for `rig doctor --rehearse`."""

from __future__ import annotations

import asyncio

from rich.table import Table
from rich.text import Text

from rig.cli.instances import instances_now
from rig.cli.reach import Reach
from rig.cli.streams import console_on
from rig.clock import RunClock
from rig.errors import TargetError
from rig.faults.plan.kind import RoleProcess
from rig.faults.plan.plan import Plan
from rig.injection.aim import AimContext
from rig.injection.fault import Identity
from rig.injection.lease import refuse_live
from rig.injection.rehearsal import Rehearsed, one_of_each, rehearse_control, rehearse_fault
from rig.journal.records import AnyRecord
from rig.nodes.consent import first_contact
from rig.nodes.lock import default_owner, hold_locks
from rig.nodes.rehearse import rehearsed
from rig.nodes.scripts import upload
from rig.nodes.ssh import open_nodes
from rig.observe.exo import Exo
from rig.soak.interrupt import Interrupt

_NO_RUNNER = "no instance of a model is deployed: nothing to kill a runner of"


class _Unwritten:
    """In place of a journal: a rehearsal keeps no record."""

    def __init__(self) -> None:
        self._clock = RunClock()

    def now(self) -> float:
        return self._clock.now()

    def write(self, record: AnyRecord) -> None:
        del record


async def rehearse_plan(reach: Reach, plan: Plan, *, yes: bool, quiet: bool) -> list[Rehearsed]:
    """Every kind of the plan once, then the control. Ends early, healed, on Ctrl-C. Raises RigError."""
    console = console_on(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    found: list[Rehearsed] = []
    with Interrupt() as interrupt:
        target = Exo()
        try:
            async with open_nodes(reach.inventory) as nodes:
                await asyncio.gather(*(upload(conn) for conn in nodes.values()))
                await refuse_live(nodes, inventory=reach.name)
                if reach.inventory.emulated is None:
                    await first_contact(nodes, yes=yes, say=say)
                async with hold_locks(nodes, "rehearsal", say=say):
                    context = AimContext(
                        nodes=nodes,
                        instances=lambda: instances_now(target, nodes),
                        rehearsed=await rehearsed(nodes),
                        emulated=reach.inventory.emulated is not None,
                    )
                    identity, journal = Identity(run="rehearsal", owner=default_owner()), _Unwritten()
                    models = await _models(context)
                    for planned in one_of_each(plan, reach.inventory, models):
                        if interrupt.event.is_set():
                            return found
                        if isinstance(planned.kind.aim, RoleProcess) and not models:
                            found.append(
                                Rehearsed(planned.kind.name, planned.aim, "skipped", _NO_RUNNER, as_wanted=False)
                            )
                            continue
                        if not quiet:
                            say(f"{planned.kind.name}, {planned.aim}")
                        found.append(await rehearse_fault(planned, context, journal, identity, interrupt.event))
                    name = next(name for name, node in reach.inventory.nodes.items() if node.faults)
                    found.append(
                        await rehearse_control(reach.inventory, name, context, journal, identity, interrupt.event)
                    )
        finally:
            await target.close()
    return found


async def _models(context: AimContext) -> list[str]:
    try:
        return sorted({one.model for one in await context.instances() if one.model})
    except TargetError:
        return []


def print_rehearsed(found: list[Rehearsed]) -> None:
    table = Table("rehearsed", "aim", "", "", box=None, pad_edge=False)
    for one in found:
        style = "green" if one.as_wanted else "bold red"
        table.add_row(one.kind, one.aim, Text(one.state, style=style), one.reason)
    console_on().print(table)
    wrong = sum(not one.as_wanted for one in found)
    if not found:
        print("nothing was rehearsed: fix what fails first")
    else:
        print(f"{wrong} did not do what they should" if wrong else "every fault took effect, and the control did not")
