"""`rig doctor --rehearse`: every fault of a plan once, without load, and one that must not work.

The control is a freeze whose `kill` does nothing. A rig that called it effective would call anything effective.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from rig.config.inventory import Inventory
from rig.errors import NodeError
from rig.faults.plan.kind import RoleProcess
from rig.faults.plan.plan import Plan
from rig.faults.plan.registry import KINDS
from rig.injection.aim import AimContext
from rig.injection.fault import Fault, Identity, Recorder
from rig.injection.schedule import Planned, by_hand, draw
from rig.journal.records import FaultState
from rig.nodes.inert import without_kill
from rig.nodes.node import NodeConnection, Nodes

HOLD_MIN_S, HOLD_MAX_S = 2.0, 5.0
UP_LIMIT_S: Final = 60.0
_LOOK_AHEAD: Final = 2000


@dataclass(frozen=True)
class Rehearsed:
    kind: str
    aim: str
    state: FaultState
    reason: str
    as_wanted: bool


def one_of_each(plan: Plan, inventory: Inventory, models: Sequence[str]) -> list[Planned]:
    """The first fault of each kind that the plan's own schedule would strike, held for a few seconds. Pure.

    The kill of a process comes first: it needs an instance, and the target may forget its deployments with its master.
    """
    found: dict[str, Planned] = {}
    for planned in islice(draw(plan, inventory, models or ["any model"], plan.seed), _LOOK_AHEAD):
        found.setdefault(planned.kind.name, planned)
        if len(found) == len(plan.struck):
            break
    order = sorted(found.values(), key=lambda planned: list(plan.kinds).index(planned.kind.name))
    return [_shortened(one) for one in sorted(order, key=lambda one: not isinstance(one.kind.aim, RoleProcess))]


def _shortened(planned: Planned) -> Planned:
    hold_s = 0.0 if planned.kind.hold == "none" else min(max(planned.hold_s, HOLD_MIN_S), HOLD_MAX_S)
    return replace(planned, gap_s=0.0, hold_s=hold_s, more_follow=False)


async def rehearse_fault(
    planned: Planned, context: AimContext, journal: Recorder, identity: Identity, stop: asyncio.Event
) -> Rehearsed:
    """Strikes and heals it. Wanted: healed, which it is only with its evidence."""
    await target_runs(context.nodes)
    fault = Fault(planned, context, journal, identity)
    state = await fault.run(stop)
    return Rehearsed(planned.kind.name, planned.aim, state, fault.reason, state == "healed")


async def rehearse_control(
    inventory: Inventory, name: str, context: AimContext, journal: Recorder, identity: Identity, stop: asyncio.Event
) -> Rehearsed:
    """A freeze of `name` that cannot work. Wanted: ineffective. Raises NodeError when it cannot be prepared."""
    async with without_kill(inventory, name, context.nodes[name].lock) as nodes:
        planned = by_hand(KINDS["freeze"], node=name, model=None, hold_s=HOLD_MIN_S, everyone=[name], index=0)
        fault = Fault(planned, replace(context, nodes=nodes), journal, identity)
        state = await fault.run(stop)
    return Rehearsed("control", f"a freeze of {name} without effect", state, fault.reason, state == "ineffective")


async def target_runs(nodes: Nodes) -> None:
    """Waits, at most a minute, until the target runs on every node that may be hit. Raises NodeError."""
    deadline = asyncio.get_running_loop().time() + UP_LIMIT_S

    async def wait(conn: NodeConnection) -> None:
        while (await conn.inspect("tree")).main is None:
            if asyncio.get_running_loop().time() > deadline:
                what = conn.node.process.section
                raise NodeError(conn.name, f"{what} does not run", remedy="start it, then rehearse again")
            await asyncio.sleep(0.5)

    await asyncio.gather(*(wait(conn) for conn in nodes.values() if conn.node.faults))
