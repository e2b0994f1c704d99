"""After a fault: wait until the target serves again, and unwedge it when it does not.

The decision is `rig.analysis.recovery.tracker`'s, fed with the journal as it grows: what the live run believes and what
the report says afterwards come from the same code.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, cast

from rig.analysis.recovery.faults import HEAL_IS_STRIKE
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.journal.records import AnyRecord, FaultChanged, ViewChanged
from rig.journal.write import Journal
from rig.load.prober import Prober
from rig.observe.observer import Observer
from rig.observe.views import Instances
from rig.run.successes import Successes
from rig.run.unwedging import Unwedger, restart_stages, wedged_nodes

MOST_EVENTS: Final = 10_000
"""Of a log that is read over the API between faults: some seconds of exo's time. A longer one is read at the end."""
_LOOK_S: Final = 0.05
_UNDERWAY: Final = frozenset({"leased", "struck", "holding", "healed"})


@dataclass
class Recovering:
    """`await recovering(fault)` is what the injector waits for between faults.

    Also a listener of the journal: probes are quick from a fault's lease to its recovery, and begin anew at its heal
    and where an instance appears. `in_force` is the number of the fault whose recovery is awaited.
    """

    tracker: RecoveryTracker
    journal: Journal
    prober: Prober
    observer: Observer
    successes: Successes
    unwedger: Unwedger
    nodes: list[str]
    in_force: int | None = None
    _heal_t: dict[int, float] = field(default_factory=dict[int, float])
    _listed: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])  # instances, by node

    def apply(self, record: AnyRecord) -> None:
        if isinstance(record, FaultChanged):
            self._changed(record)
        elif isinstance(record, ViewChanged) and record.facet == "instances":
            self._listing(record.node, cast("Instances", record.value or {}))

    def _listing(self, node: str, instances: Instances) -> None:
        known = frozenset[str]().union(*self._listed.values())
        self._listed[node] = frozenset(instances)
        of = [instance["model"] for name, instance in instances.items() if name not in known]
        if new := {model for model in of if model is not None}:
            self.prober.renew(new)

    def _changed(self, record: FaultChanged) -> None:
        if record.state in _UNDERWAY:
            self.in_force = record.fault
            self.hurry(fast=True)
            if record.state in ("struck", "healed"):
                self._heal_t[record.fault] = record.at_t
            if record.state == "healed" or (record.state == "struck" and record.fault_kind in HEAL_IS_STRIKE):
                self.prober.renew()  # from this moment on its time to serve counts
        elif record.state != "planned":
            self._over(record.fault)

    async def __call__(self, fault: int) -> bool:
        """True: recovered by itself. False: `settle` passed; the target was unwedged, as far as that was possible."""
        try:
            recovered = await self._decided(fault)
            if not recovered:
                await self._unwedge(fault)
            await self.observer.who_served(self.successes.response_ids())
            await self.observer.read_events(most_events=MOST_EVENTS)
            return recovered
        finally:
            self._over(fault)

    async def _decided(self, fault: int) -> bool:
        """Bounded by the tracker's `settle`."""
        while True:
            if (recovered := self.tracker.recovered(fault, self.journal.now())) is not None:
                return recovered
            await asyncio.sleep(_LOOK_S)

    async def _unwedge(self, fault: int) -> None:
        """Restart what hosts the models that do not serve; then, if need be, everything. Each stage gets `settle`."""
        since_t = self._heal_t.get(fault, self.journal.now())
        silent = self.successes.silent_since(max(since_t, self.journal.now() - self.tracker.settings.sustained_s))
        view = self.observer.view
        wedged = wedged_nodes(view, silent or list(self.tracker.models), self.nodes)
        for nodes in restart_stages(wedged, self.nodes, view.masters):
            await self.unwedger.unwedge(fault, nodes, view.masters)
            if await self._steady():
                return

    async def _steady(self) -> bool:
        since_t = self.journal.now()
        while (now := self.journal.now()) < since_t + self.tracker.settings.settle_s:
            if self.tracker.steady(since_t, now):
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    def _over(self, fault: int) -> None:
        self._heal_t.pop(fault, None)
        if self.in_force == fault:
            self.in_force = None
            self.hurry(fast=False)

    def hurry(self, *, fast: bool) -> None:
        """Probe quickly, and poll no more for it than fits beside; else probe slowly, and poll the least."""
        self.prober.fast = fast
        self.observer.attention = "sparing" if fast else "calm"
