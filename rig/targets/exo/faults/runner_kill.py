"""One runner of a running instance is killed; the main process lives. Nothing to give back: heal is strike."""

from __future__ import annotations

from rig.faults.plan.kind import FaultKind, KindPlan, RoleProcess
from rig.faults.plan.witness import GONE_ALONE

KIND = FaultKind(
    name="runner-kill",
    place=3,
    summary="SIGKILL to one runner, found by the port of its ring",
    struck_by="it is gone, the main process lives",
    healed_by="nothing to give back: heal is strike",
    wants="`lsof` or `ss` where a node has several runners",
    script="runner-kill.sh",
    aim=RoleProcess("runner"),
    effect="process-killed",
    recovery_s=9.0,  # 5 to 7 s on one node, 9 to 12 s on two
    hold="none",
    settings=KindPlan,
    witness=GONE_ALONE,
)
