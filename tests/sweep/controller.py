"""One fault, from first connection to its end, as `rig inject` and `rig soak` strike it; its journal lies in a folder.

Runs in a process of its own that may be killed, stopped, or have its disk filled or its wall clock stepped.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.clock import RunClock
from rig.config.inventory import Inventory
from rig.config.target_fields import inventory_from
from rig.errors import JournalError, RigError
from rig.faults.plan.kind import Pair
from rig.faults.plan.registry import KINDS
from rig.injection.aim import AimContext
from rig.injection.fault import Fault, Identity
from rig.injection.lease import refuse_live
from rig.injection.schedule import Half, Planned
from rig.journal.records import AnyRecord, FaultChanged
from rig.journal.write import Journal
from rig.nodes.lock import default_owner, hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from rig.targets.views import Instance
from tests.faults.amounts import small

MODEL = "lab/tiny-a"


@dataclass(frozen=True)
class Order:
    """What a controller is to do: a fault of `kind` on `n1` for `hold_s`. `end.json`, with what it made of it, goes to
    `out`; the journal as well, or to `journal`.
    """

    inventory: str
    kind: str
    hold_s: float
    out: str
    journal: str = ""
    step_clock_s: float = 0.0  # the wall clock jumps by so much …
    step_at: str = "struck"  # … when the fault has come so far
    lock_s: float = 30.0
    sleep_at: str = ""  # it stops itself when the fault has come so far, as a laptop that is closed


def planned(order: Order) -> Planned:
    """Small amounts: the machine is shared with whatever else runs on it."""
    kind = KINDS[order.kind]
    cut, double = kind.cuts, isinstance(kind.aim, Pair)
    by = "vnode" if order.kind in ("link-down", "one-way-partition") else None
    return Planned(
        index=0,
        kind=kind,
        aim="n1 | n2" if cut else "node n1",
        hold_s=order.hold_s,
        gap_s=0.0,
        nodes=("n1", "n2") if double else ("n1",),
        node="n1",
        model=MODEL if order.kind == "runner-kill" else None,
        sides=(("n1",), ("n2",)) if cut else None,
        halves=(Half(kind=KINDS["freeze"], node="n1"), Half(kind=KINDS["node-crash"], node="n2")) if double else (),
        direction="in" if order.kind == "one-way-partition" else "both",
        settings=small(order.kind, interface=by),
    )


def read_inventory(path: str) -> Inventory:
    return inventory_from(json.loads(Path(path).read_text()))


async def strike(order: Order) -> tuple[str, str]:
    """The fault's last state, and why. Raises RigError."""
    inventory = read_inventory(order.inventory)
    journal = Journal(Path(order.journal or order.out), RunClock())

    async def instances() -> Sequence[Instance]:
        return [Instance(id="i1", model=MODEL, workers={"n1": "r1"}, port=None)]

    def asleep(record: AnyRecord) -> None:
        if isinstance(record, FaultChanged) and record.state == order.sleep_at:
            os.kill(os.getpid(), signal.SIGSTOP)

    def stepped(record: AnyRecord) -> None:
        if order.step_clock_s and isinstance(record, FaultChanged) and record.state == order.step_at:
            true = time.time
            time.time = lambda: true() + order.step_clock_s

    journal.subscribe(stepped)
    journal.subscribe(asleep)
    try:
        async with open_nodes(inventory) as nodes:
            await asyncio.gather(*(upload(conn) for conn in nodes.values()))
            async with hold_locks(nodes, "sweep", ttl_s=order.lock_s):
                await refuse_live(nodes, inventory=order.inventory)
                context = AimContext(
                    nodes=nodes,
                    instances=instances,
                    rehearsed=frozenset(nodes),
                    emulated=inventory.emulated is not None,
                )
                fault = Fault(planned(order), context, journal, Identity(run="sweep", owner=default_owner()))
                return await fault.run(asyncio.Event()), fault.reason
    finally:
        journal.close()


def main(order: Order) -> int:
    try:
        state, reason = asyncio.run(strike(order))
        told = {"state": state, "reason": reason}
    except (JournalError, RigError) as error:
        told = {"state": "error", "reason": str(error)}
    try:
        (Path(order.out) / "end.json").write_text(json.dumps(told))
    except OSError:
        return 1
    return 0 if told["state"] == "healed" else 3
