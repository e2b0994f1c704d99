"""Checks of the deployments keeper."""

from __future__ import annotations

from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.faults.plan.kind import RoleNode
from rig.faults.plan.registry import names_where
from rig.journal.records import Redeployed, Unwedged
from rig.targets.exo.judged import watched

_MASTER_KILLS: Final = names_where(lambda kind: isinstance(kind.aim, RoleNode) and kind.ends_process)


def one_instance(analysis: Analysis) -> Answer:
    doubles = watched(analysis).doubles
    if doubles.doubles:
        lines = [
            f"{double.node} at {double.seen_t:.1f} s: {double.model} has {', '.join(double.instances)}"
            for double in doubles.doubles
        ]
        return Answer("fail", "a deployed model had more than one instance in the master's view", evidence(lines))
    if not doubles.judged:
        return Answer("not-exercised", "no view of a master could be judged")
    return Answer("pass", f"never more than one in {doubles.judged} views of the master")


def deployments_outlive_master(analysis: Analysis) -> Answer:
    """What vanished when the rig had restarted several nodes at once is not the keeper's doing: it outlives its master,
    not its master and others in the same moment (a node that begins anew may then be elected before one that knows).
    """
    vanished, own = list[str](), list[str]()
    for redeployed in analysis.redeployed:
        if redeployed.reason == "vanished":
            restarted = _restarted(analysis, redeployed)
            lines = own if len({one.node for one in restarted}) > 1 else vanished
            lines.append(
                f"at {redeployed.t:.1f} s: {redeployed.model} had to be posted again{_by_rig(analysis, restarted)}"
            )
    excused = f"; {len(own)} more after the rig had restarted several nodes itself" if own else ""
    if vanished:
        return Answer("fail", f"deployments vanished {len(vanished)} times{excused}", evidence([*vanished, *own]))
    crashes = sum(fault.effective for fault in analysis.faults if fault.kind in _MASTER_KILLS)
    if not crashes:
        return Answer("not-exercised", f"no master was killed{excused}", evidence(own))
    return Answer("pass", f"none vanished; masters killed: {crashes}{excused}", evidence(own))


def _restarted(analysis: Analysis, redeployed: Redeployed) -> list[Unwedged]:
    """What the rig had unwedged, for one and the same fault, not longer than `settle` before."""
    recent: dict[int, list[Unwedged]] = {}
    for unwedged in analysis.unwedged:
        if redeployed.t - analysis.settings.settle_s <= unwedged.started_t <= redeployed.t:
            recent.setdefault(unwedged.fault, []).append(unwedged)
    return max(recent.values(), key=lambda restarted: len({one.node for one in restarted}), default=list[Unwedged]())


def _by_rig(analysis: Analysis, restarted: list[Unwedged]) -> str:
    """What the rig had restarted itself; the master, if it was among them."""
    if not restarted:
        return ""
    reigns = analysis.watch.reigns
    masters = sorted({one.node for one in restarted if reigns.of(one.node, one.started_t) is not None})
    among = f", the master {', '.join(masters)} among them" if masters else ""
    nodes = ", ".join(sorted({one.node for one in restarted}))
    return f" (the rig had restarted {nodes} itself at {min(one.started_t for one in restarted):.1f} s{among})"


def status_true(analysis: Analysis) -> Answer:
    statuses = watched(analysis).statuses
    if statuses.wrong:
        lines = [
            f"{one.node} at {one.from_t:.1f} to {one.to_t:.1f} s: {one.model} is said to be {one.told}, "
            f"and its own view shows {one.shown}"
            for one in statuses.wrong
        ]
        return Answer("fail", "a deployment's status was not what its node's view showed", evidence(lines))
    if not statuses.judged:
        return Answer("not-exercised", "no status was told")
    return Answer("pass", f"each of {statuses.judged} statuses was what the view showed")


CHECKS = [
    Check("status-true", "a deployment's status is what its node's view shows", status_true),
    Check("one-instance-per-model", "a master never has two instances of a deployed model", one_instance),
    Check(
        "deployments-outlive-master",
        "a deployment is still there after its master has gone",
        deployments_outlive_master,
    ),
]
