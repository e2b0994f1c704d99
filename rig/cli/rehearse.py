"""The rehearsal of a plan, for `rig doctor --rehearse`."""

from __future__ import annotations

import asyncio

from rich.table import Table
from rich.text import Text

from rig.cli.reach import Reach
from rig.cli.serving import until_serving
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
from rig.nodes.open import open_nodes
from rig.nodes.rehearse import rehearsed
from rig.nodes.upload import upload
from rig.soak.interrupt import Interrupt
from rig.targets.now import instances_by_any
from rig.targets.target import open_target

_NOBODY = "no instance of a model serves: it has no process to kill"


class _Unwritten:
    """In place of a journal: a rehearsal keeps no record."""

    def __init__(self) -> None:
        self._clock = RunClock()

    def now(self) -> float:
        return self._clock.now()

    def write(self, record: AnyRecord) -> None:
        del record


async def rehearse_plan(reach: Reach, plan: Plan, *, yes: bool, quiet: bool) -> list[Rehearsed]:
    """Every kind of the plan once, then the control. Ends early, healed, on Ctrl-C. Raises RigError.

    Before each, what served at the start must serve again: a fault that finds no instance to hit would prove nothing.
    """
    console = console_on(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    found: list[Rehearsed] = []
    with Interrupt() as interrupt:
        target = open_target(reach.inventory.target)
        try:
            async with open_nodes(reach.inventory) as nodes:
                await asyncio.gather(*(upload(conn) for conn in nodes.values()))
                async with hold_locks(nodes, "rehearsal", say=say):
                    await refuse_live(nodes, inventory=reach.name)  # under the lock: of nobody who is at work
                    if reach.inventory.emulated is None:
                        await first_contact(nodes, yes=yes, say=say)
                    context = AimContext(
                        nodes=nodes,
                        instances=lambda: instances_by_any(target, nodes),
                        rehearsed=await rehearsed(nodes),
                        emulated=reach.inventory.emulated is not None,
                    )
                    identity, journal = Identity(run="rehearsal", owner=default_owner()), _Unwritten()
                    entries = {name: conn.node.api for name, conn in nodes.items()}
                    models = await _models(context)
                    for planned in one_of_each(plan, reach.inventory, models):
                        silent = await until_serving(models, entries, context.instances, interrupt.event, say)
                        if interrupt.event.is_set():
                            return found
                        if silent:
                            say(f"{', '.join(silent)} did not serve: the rest is rehearsed without")
                            models = [model for model in models if model not in silent]
                        kind = planned.kind.name
                        if isinstance(planned.kind.aim, RoleProcess) and planned.model not in models:
                            found.append(Rehearsed(kind, planned.aim, "skipped", _NOBODY, as_wanted=False))
                            continue
                        if not quiet:
                            say(f"{kind}, {planned.aim}")
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
