"""One side does not hear the other, or is not heard."""

from __future__ import annotations

from rig.faults.plan.cutting import CutPlan
from rig.faults.plan.kind import FaultKind, Split

KIND = FaultKind(
    name="one-way-partition",
    place=8,
    summary="a partition of one direction only",
    struck_by="the same as of a partition, that way",
    healed_by="the same",
    wants="the same",
    script="partition.sh",
    aim=Split(one_way=True),
    effect="paths-cut",
    recovery_s=22.0,
    settings=CutPlan,
    needs=frozenset({"filter"}),
    right="cut",
)
