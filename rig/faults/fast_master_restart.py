"""A crash of the master, which is started again at once: it may win the election with its old state."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, RoleNode
from rig.faults.plan.restarting import restart_values
from rig.faults.plan.witness import GONE

KIND = FaultKind(
    name="fast-master-restart",
    place=7,
    summary="a crash of the master, which is started again at once",
    struck_by="every pid of the tree is gone",
    healed_by="a new main process runs",
    wants="the `start` of its process, rehearsed",
    script="crash.sh",
    aim=RoleNode("master"),
    effect="tree-killed",
    recovery_s=18.0,
    hold="optional",
    settings=KindPlan,
    values=restart_values,
    witness=GONE,
    restarts=True,
)
