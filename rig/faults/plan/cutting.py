"""Settings of the kinds that keep peers from each other. `rig.injection.aim` knows who they are at the strike."""

from __future__ import annotations

from rig.config.fields import Text
from rig.faults.plan.kind import KindPlan


class CutPlan(KindPlan):
    interface: Text | None = None  # only what goes by it; such a cut is partial


class PartitionPlan(CutPlan):
    clients_cut: bool = False  # whether the clients' path to the API is cut too
