"""Checks of the deployments keeper."""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.journal.records import Redeployed


def one_instance(analysis: Analysis) -> Answer:
    if analysis.doubles:
        lines = [
            f"{double.node} at {double.seen_t:.1f} s: {double.model} has {', '.join(double.instances)}"
            for double in analysis.doubles
        ]
        return Answer("fail", "a deployed model had more than one instance in the master's view", evidence(lines))
    if not analysis.master_views:
        return Answer("not-exercised", "no view of a master could be judged")
    return Answer("pass", f"never more than one in {analysis.master_views} views of the master")


def deployments_outlive_master(analysis: Analysis) -> Answer:
    """What vanished when the rig had restarted several nodes at once is not the keeper's doing: it outlives its master,
    not its master and others in the same moment (a node that begins anew may then be elected before one that knows).
    """
    vanished = [
        redeployed
        for redeployed in analysis.redeployed
        if redeployed.reason == "vanished" and not _several_restarted(analysis, redeployed)
    ]
    if vanished:
        lines = [f"at {redeployed.t:.1f} s: {redeployed.model} had to be posted again" for redeployed in vanished]
        return Answer("fail", f"deployments vanished {len(vanished)} times", evidence(lines))
    crashes = sum(fault.effective for fault in analysis.faults if fault.aim == "master")
    if not crashes:
        return Answer("not-exercised", "no master was killed")
    return Answer("pass", f"none vanished; masters killed: {crashes}")


def _several_restarted(analysis: Analysis, redeployed: Redeployed) -> bool:
    """Whether the rig had unwedged more than one node, for one and the same fault, not longer than `settle` before."""
    restarted: dict[int, set[str]] = {}
    for unwedged in analysis.unwedged:
        if redeployed.t - analysis.settings.settle_s <= unwedged.started_t <= redeployed.t:
            restarted.setdefault(unwedged.fault, set()).add(unwedged.node)
    return any(len(nodes) > 1 for nodes in restarted.values())


CHECKS = [
    Check("one-instance-per-model", "a master never has two instances of a deployed model", one_instance),
    Check(
        "deployments-outlive-master",
        "a deployment is still there after its master has gone",
        deployments_outlive_master,
    ),
]
