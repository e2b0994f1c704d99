"""The faults of a run, one after another: gap, look, strike, hold, heal, wait for the target's recovery.

The gap ends with the strike: what must be done before is done within it, and the scripts on the nodes wait for the
moment by their own clocks.

What the target is, and whether it has recovered, comes in as a callable; this only knows nodes. It aborts (FaultError)
on an unhealed fault, on a breach of the blast radius, and after too many faults in a row without recovery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from rig.errors import FaultError, NodeError
from rig.faults.plan.plan import Plan
from rig.injection.aim import AimContext
from rig.injection.fault import Fault, Identity, Recorder, write_inventory
from rig.injection.schedule import Planned
from rig.journal.records import FaultChanged, FaultState
from rig.nodes.inspect import Inspection

Recovered = Callable[[int], Awaitable[bool]]

LEAD_S = 4.0  # before a strike is due: looking, aiming, measuring clocks and starting scripts take 1 to 3 s
LOOK_ATTEMPTS = 3
LOOK_PAUSE_S = 1.0


@dataclass
class Injector:
    """`await injector.run(stop)`. `fault` is the one in force (or the last), `strike_due_t` when the next one is due.

    `recovered(index)` ends with True when every model serves again, and with False when `settle` passed without that.
    `strike_until_t`: nothing is struck whose hold would end after it (run clock).
    """

    plan: Plan
    schedule: Iterator[Planned]
    context: AimContext
    journal: Recorder
    identity: Identity
    recovered: Recovered
    strike_until_t: float | None = None
    fault: Fault | None = None
    strike_due_t: float | None = None
    unrecovered_in_a_row: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set (a fault in force is then healed at once), the time is up, or the schedule ends.

        Raises FaultError to abort the run. When cancelled it heals before it leaves.
        """
        for planned in self.schedule:
            self.strike_due_t = due_t = self.journal.now() + planned.gap_s
            if self._too_late(planned) or await _set_within(stop, max(0.0, planned.gap_s - LEAD_S)):
                self.strike_due_t = None
                return
            self.strike_due_t = None
            state = await self._strike(planned, stop, due_t)
            if state == "unhealed":
                raise FaultError(
                    f"fault {planned.index} ({planned.kind.name}, {planned.aim}) is not known to be healed",
                    remedy="rig heal, then look at the node named in the report",
                )
            if state == "healed" and not stop.is_set() and not planned.more_follow:
                await self._recover(planned, stop)

    def _too_late(self, planned: Planned) -> bool:
        if self.strike_until_t is None:
            return False
        return self.journal.now() + planned.gap_s + planned.hold_s > self.strike_until_t

    async def _strike(self, planned: Planned, stop: asyncio.Event, due_t: float) -> FaultState:
        if (reason := await self._look(planned)) is not None:
            return self._skip(planned, reason)
        self.fault = Fault(planned, self.context, self.journal, self.identity)
        return await self.fault.run(stop, due_t)

    async def _look(self, planned: Planned) -> str | None:
        """Before a strike: which nodes are harmed already, by a fault in force or because the target does not run
        there, whoever did it. With those to be struck they may be as many as the blast radius. Returns why to skip it.

        Raises FaultError where a fault is in force that should not be.
        """
        try:
            seen = await self._inspect_all()
        except NodeError as exc:
            return f"not every node could be looked at before the strike: {exc.message}"
        for one in seen:
            write_inventory(self.journal, one, "before", planned.index)
        in_force = {one.node: lease for one in seen for lease in one.leases}
        groups = max(1, len(planned.halves))
        down = [one.node for one in seen if one.main is None]
        harmed = in_force.keys() | set(down)
        if not harmed or len(harmed) + groups <= self.plan.blast_radius:
            return None
        if in_force:
            told = ", ".join(f"{lease.kind} {lease.id} of {lease.owner} on {node}" for node, lease in in_force.items())
            without = f"; {self._called()} does not run on {', '.join(down)}" if down else ""
            raise FaultError(
                f"blast radius: before fault {planned.index} there is still in force: {told}{without}",
                remedy="rig heal",
            )
        return f"{self._called()} does not run on {', '.join(down)}: a strike now would exceed the blast radius"

    def _called(self) -> str:
        """The target, as the inventory calls its section."""
        return next(iter(self.context.nodes.values())).node.process.section

    async def _inspect_all(self) -> list[Inspection]:
        """Raises the NodeError of the last attempt when a node stays silent."""
        last: NodeError | None = None
        for attempt in range(LOOK_ATTEMPTS):
            if attempt:
                await asyncio.sleep(LOOK_PAUSE_S)
            try:
                return list(await asyncio.gather(*(conn.inspect("all") for conn in self.context.nodes.values())))
            except NodeError as exc:
                last = exc
        assert last is not None
        raise last

    def _skip(self, planned: Planned, reason: str) -> FaultState:
        for state in ("planned", "skipped"):
            self.journal.write(
                FaultChanged(
                    t=self.journal.now(),
                    fault=planned.index,
                    fault_kind=planned.kind.name,
                    state=state,
                    aim=planned.aim,
                    model=planned.model,
                    hold_s=planned.hold_s,
                    at_t=self.journal.now(),
                    reason=reason if state == "skipped" else "",
                )
            )
        return "skipped"

    async def _recover(self, planned: Planned, stop: asyncio.Event) -> None:
        """Waits for the recovery, as long as `recovered` bounds it, or until `stop`. Raises FaultError to abort."""
        recovering = asyncio.ensure_future(self.recovered(planned.index))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({recovering, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not recovering.done():
                return
            self.unrecovered_in_a_row = 0 if recovering.result() else self.unrecovered_in_a_row + 1
        finally:
            for task in (recovering, stopping):
                task.cancel()
            await asyncio.gather(recovering, stopping, return_exceptions=True)
        if self.unrecovered_in_a_row >= self.plan.abort_after_unrecovered:
            raise FaultError(
                f"{self.unrecovered_in_a_row} faults in a row without recovery, the last is fault {planned.index}",
                remedy="look at the target: later figures would be worthless",
            )


async def _set_within(event: asyncio.Event, delay_s: float) -> bool:
    """Whether the event was set within the delay."""
    try:
        async with asyncio.timeout(delay_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
