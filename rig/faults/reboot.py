"""The machine restarts; the proof is another boot id, by the lease that outlived it."""

from __future__ import annotations

from collections.abc import Mapping

from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode


def _values(acting: Acting[KindPlan]) -> Mapping[str, str]:
    return {"start": acting.node.process.start or ""}


KIND = FaultKind(
    name="reboot",
    place=18,
    summary="`shutdown -r now`",
    struck_by="another boot id, by the lease that outlived it",
    healed_by="the target runs again",
    wants="FileVault off; the guard; not the rig's own machine",
    script="reboot.sh",
    aim=SingleNode(),
    effect="restarted",
    recovery_s=120.0,
    hold="none",
    settings=KindPlan,
    values=_values,
    needs=frozenset({"reboot"}),
    right="reboot",
)
