"""One file fills the disk of the target's home."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, SingleNode
from rig.faults.plan.taking import TakePlan, take_values

KIND = FaultKind(
    name="disk-fill",
    place=17,
    summary="one file fills the disk of the target's home up to `leave`",
    struck_by="its size",
    healed_by="the file is gone",
    script="disk-fill.sh",
    aim=SingleNode(),
    effect="elsewhere",
    recovery_s=1.0,
    settings=TakePlan,
    values=take_values,
    needs=frozenset({"disk"}),
)
