"""Two nodes are cut from each other; both reach the others."""

from __future__ import annotations

from rig.faults.plan.cutting import CutPlan
from rig.faults.plan.kind import FaultKind, Split

KIND = FaultKind(
    name="bridge-partition",
    place=9,
    summary="two nodes are cut from each other, both reach the others",
    struck_by="the same as of a partition",
    healed_by="the same",
    wants="three nodes",
    script="partition.sh",
    aim=Split(bridge=True),
    effect="paths-cut",
    recovery_s=22.0,
    settings=CutPlan,
    needs=frozenset({"filter"}),
    right="cut",
)
