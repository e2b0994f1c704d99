"""The target on a node is asked to end, by the inventory's `stop` or SIGTERM, and started again after the hold."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, SingleNode
from rig.faults.plan.restarting import stop_values
from rig.faults.plan.witness import GONE

KIND = FaultKind(
    name="graceful-stop",
    place=5,
    summary="its own `stop`, or SIGTERM to the main process",
    struck_by="every process has ended by itself within 30 s",
    healed_by="a new main process runs",
    wants="the `start` of its process, rehearsed",
    script="graceful-stop.sh",
    aim=SingleNode(),
    effect="tree-ended",
    recovery_s=20.0,
    hold="optional",
    settings=KindPlan,
    values=stop_values,
    witness=GONE,
    restarts=True,
    half=True,
)
