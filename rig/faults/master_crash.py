"""A crash of whichever node is master when it strikes."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, RoleNode
from rig.faults.plan.restarting import restart_values
from rig.faults.plan.witness import GONE

KIND = FaultKind(
    name="master-crash",
    place=1,
    summary="the same, on the node that is master when it strikes",
    struck_by="the same",
    healed_by="the same",
    wants="the same",
    script="crash.sh",
    aim=RoleNode("master"),
    effect="tree-killed",
    recovery_s=18.0,  # what is deployed serves 23 s after the kill, of which the hold is a part
    hold="optional",
    settings=KindPlan,
    values=restart_values,
    witness=GONE,
    restarts=True,
)
