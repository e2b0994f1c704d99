"""Graceful stops of every node in turn, one fault a node."""

from __future__ import annotations

from rig.faults.plan.kind import EveryNode, FaultKind, KindPlan
from rig.faults.plan.restarting import stop_values
from rig.faults.plan.witness import GONE

KIND = FaultKind(
    name="rolling-restart",
    place=6,
    summary="graceful stops of every node in turn, one fault a node, no wait for recovery in between",
    struck_by="the same",
    healed_by="the same",
    wants="the same",
    script="graceful-stop.sh",
    aim=EveryNode(),
    effect="tree-ended",
    recovery_s=20.0,
    hold="optional",
    settings=KindPlan,
    values=stop_values,
    witness=GONE,
    restarts=True,
)
