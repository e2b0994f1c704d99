"""Every process of the target on a node is stopped (SIGSTOP) for the hold."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, SingleNode
from rig.faults.plan.witness import STOPPED

KIND = FaultKind(
    name="freeze",
    place=2,
    summary="SIGSTOP to the whole tree",
    struck_by="each process in state `T`, sampled through the hold",
    healed_by="none in state `T`",
    script="freeze.sh",
    aim=SingleNode(),
    effect="tree-stopped",
    recovery_s=12.0,  # short ones stall only; from 10.4 s an election follows, from 33 s the node is dropped
    settings=KindPlan,
    witness=STOPPED,
    half=True,
)
