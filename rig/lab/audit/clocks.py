"""Offsets: nodes and controller are one machine here, so the truth is known, and every claimed error can be checked."""

from __future__ import annotations

from rig.lab.audit.cluster import ClusterAccount
from rig.lab.audit.findings import Findings
from rig.lab.audit.rigs import EPSILON_S, RigAccount


def compare_clocks(rig: RigAccount, cluster: ClusterAccount, findings: Findings) -> None:
    row = findings.row("clock offsets")
    for offset in (offset for offsets in rig.offsets.values() for offset in offsets):
        off_s = offset.offset_s + cluster.zero
        findings.spread("clock offsets, claimed and real").add(off_s)
        if abs(off_s) <= offset.error_s + EPSILON_S:
            row.agree()
        else:
            row.differ(
                f"the offset of {offset.node} at {offset.t:.3f}",
                f"{offset.offset_s:.4f} ± {offset.error_s:.4f} s",
                f"{-cluster.zero:.4f} s",
            )
