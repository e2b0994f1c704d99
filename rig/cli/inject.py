"""`rig inject`: one fault by hand, its states shown as they come; Ctrl-C heals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from rig.cli.reach import Reach, running_nodes
from rig.cli.streams import console_on
from rig.clock import RunClock
from rig.config.fields import parse_duration
from rig.config.inventory import Inventory
from rig.errors import EXIT_PASS, EXIT_UNKNOWN, UsageError
from rig.faults.plan.check import COUNTS
from rig.faults.plan.kind import Pair, RoleNode, RoleProcess
from rig.faults.plan.registry import KINDS
from rig.injection.aim import NOT_REHEARSED, AimContext
from rig.injection.fault import Fault, Identity
from rig.injection.lease import refuse_live
from rig.injection.schedule import Planned, by_hand
from rig.journal.records import AnyRecord, FaultChanged, FaultState
from rig.nodes.consent import first_contact
from rig.nodes.lock import default_owner, hold_locks
from rig.nodes.node import Nodes
from rig.nodes.open import open_nodes
from rig.nodes.rehearse import rehearsed
from rig.nodes.upload import upload
from rig.soak.halting import unless
from rig.soak.interrupt import Interrupt
from rig.targets.now import instances_by_any
from rig.targets.target import open_target

BY_HAND = -1
HOLD_MAX_S = 3600.0


def inject(
    *, kind: str, node: str | None, model: str | None, hold: str, inventory: str | None, yes: bool, as_json: bool
) -> int:
    """Exit 0 when it was struck, proved, held and healed; 3 otherwise; 130 and 143 when interrupted (and healed)."""
    reach = running_nodes(inventory)
    planned = plan_by_hand(reach.inventory, kind=kind, node=node, model=model, hold=hold)
    return asyncio.run(_inject(reach, planned, yes=yes, as_json=as_json))


def plan_by_hand(inventory: Inventory, *, kind: str, node: str | None, model: str | None, hold: str) -> Planned:
    """The one fault that the options describe. Raises UsageError. Pure."""
    chosen = KINDS.get(kind)
    if chosen is None:
        raise UsageError(f"there is no fault kind {kind!r}", remedy=f"one of {', '.join(KINDS)}")
    try:
        hold_s = parse_duration(hold)
    except ValueError as error:
        raise UsageError(f"--hold: {error}") from error
    if hold_s > HOLD_MAX_S:
        raise UsageError(f"--hold: at most {HOLD_MAX_S:g} s")
    if node is not None and node not in inventory.nodes:
        raise UsageError(f"there is no node {node!r}", remedy=f"one of {', '.join(inventory.nodes)}")
    if isinstance(chosen.aim, Pair):
        raise UsageError(f"a {kind} is struck by a fault plan alone", remedy="inject its two halves, or use rig soak")
    if isinstance(chosen.aim, RoleProcess) and model is None:
        raise UsageError(f"{kind} needs --model")
    if not isinstance(chosen.aim, RoleNode | RoleProcess) and node is None:
        raise UsageError(f"{kind} needs --node")
    if len(inventory.nodes) < chosen.nodes_needed:
        raise UsageError(f"a {kind} needs {COUNTS[chosen.nodes_needed]} nodes")
    return by_hand(chosen, node=node, model=model, hold_s=hold_s, everyone=list(inventory.nodes), index=BY_HAND)


class _Shown:
    """In place of a journal: prints what a fault goes through."""

    def __init__(self, *, as_json: bool) -> None:
        self._clock = RunClock()
        self._as_json = as_json
        self._console = console_on()
        self.last: FaultChanged | None = None

    def now(self) -> float:
        return self._clock.now()

    def write(self, record: AnyRecord) -> None:
        if not isinstance(record, FaultChanged):
            return
        self.last = record
        if self._as_json:
            return
        where = f" on {', '.join(record.nodes)}" if record.nodes else ""
        why = f": {record.reason}" if record.reason else ""
        text = f"{record.at_t:8.3f} s ± {record.at_error_s * 1000:.0f} ms  {record.state}{where}{why}"
        self._console.print(text, markup=False)


@dataclass(frozen=True)
class _Ready:
    nodes: Nodes
    rehearsed: frozenset[str]


async def _ready(
    stack: AsyncExitStack, reach: Reach, planned: Planned, *, yes: bool, say: Callable[[str], None]
) -> _Ready:
    """Connected, free of leases, agreed to and locked, until `stack` is closed. Raises RigError."""
    nodes = await stack.enter_async_context(open_nodes(reach.inventory))
    await asyncio.gather(*(upload(conn) for conn in nodes.values()))
    await stack.enter_async_context(hold_locks(nodes, "by hand", say=say))
    await refuse_live(nodes, inventory=reach.name)  # under the lock: of nobody who is at work
    ready = await rehearsed(nodes)
    _refuse_unrehearsed(planned, ready)
    if reach.inventory.emulated is None:
        await first_contact(nodes, yes=yes, say=say)
    return _Ready(nodes, ready)


async def _inject(reach: Reach, planned: Planned, *, yes: bool, as_json: bool) -> int:
    console = console_on(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False)

    with Interrupt() as interrupt:
        target = open_target(reach.inventory.target)
        try:
            async with AsyncExitStack() as stack:
                ready = await unless(interrupt.event, _ready(stack, reach, planned, yes=yes, say=say))
                if ready is None:
                    return interrupt.exit_code
                context = AimContext(
                    nodes=ready.nodes,
                    instances=lambda: instances_by_any(target, ready.nodes),
                    rehearsed=ready.rehearsed,
                    emulated=reach.inventory.emulated is not None,
                )
                shown = _Shown(as_json=as_json)
                identity = Identity(run="by-hand", owner=default_owner())
                fault = Fault(planned, context, shown, identity)
                state = await fault.run(interrupt.event)
        finally:
            await target.close()
        if as_json:
            print(json.dumps(_told(state, shown.last)))
        if interrupt.reason is not None:
            return interrupt.exit_code
        return EXIT_PASS if state == "healed" and not fault.cut_short else EXIT_UNKNOWN


def _refuse_unrehearsed(planned: Planned, ready: frozenset[str]) -> None:
    """Before anybody is asked. Of a master crash the node is known only later; aiming refuses it then."""
    if planned.kind.restarts and planned.node is not None and planned.node not in ready:
        raise UsageError(f"{planned.node}: {NOT_REHEARSED}")


def _told(state: FaultState, last: FaultChanged | None) -> dict[str, object]:
    assert last is not None
    return {
        "kind": last.fault_kind,
        "state": state,
        "aim": last.aim,
        "nodes": last.nodes,
        "reason": last.reason,
        "evidence": last.evidence,
    }
