"""Memory is taken until little is available."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, SingleNode
from rig.faults.plan.taking import TakePlan, take_values
from rig.faults.plan.witness import AT_WORK

KIND = FaultKind(
    name="memory-pressure",
    place=15,
    summary="memory is taken until `leave` is available",
    struck_by="what the process holds",
    healed_by="the process is gone",
    script="memory-pressure.sh",
    aim=SingleNode(),
    effect="elsewhere",
    recovery_s=1.0,
    settings=TakePlan,
    values=take_values,
    witness=AT_WORK,
)
