"""Every process of the target on a node is killed at once, and started again after the hold."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, SingleNode
from rig.faults.plan.restarting import restart_values
from rig.faults.plan.witness import GONE

KIND = FaultKind(
    name="node-crash",
    place=0,
    summary="the whole process tree is stopped, then killed",
    struck_by="every pid of the tree is gone",
    healed_by="a new main process runs, by its pid file",
    wants="the `start` of its process, rehearsed",
    script="crash.sh",
    aim=SingleNode(),
    effect="tree-killed",
    recovery_s=20.0,  # API up 1.8 s after the start, links complete after 15 to 22 s
    hold="optional",
    settings=KindPlan,
    values=restart_values,
    witness=GONE,
    restarts=True,
    half=True,
)
