"""One run's three accounts, put side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rig.errors import JournalError
from rig.journal.read import read_run
from rig.lab.audit.causes import compare_causes
from rig.lab.audit.clocks import compare_clocks
from rig.lab.audit.cluster import ClusterAccount, read_cluster
from rig.lab.audit.faults import compare_faults
from rig.lab.audit.findings import Findings
from rig.lab.audit.requests import compare_requests
from rig.lab.audit.rigs import RigAccount, account

CLUSTER: Final = "cluster"


def compare(rig: RigAccount, cluster: ClusterAccount) -> Findings:
    """Everything, both ways. Pure."""
    findings = Findings()
    compare_requests(rig, cluster, findings)
    compare_faults(rig, cluster, findings)
    compare_causes(rig, cluster, findings)
    compare_clocks(rig, cluster, findings)
    return findings


def compare_run(folder: Path) -> Findings:
    """The run in `folder`, kept with `--keep-cluster`. Raises JournalError, OSError, ValueError: it cannot be read."""
    run = read_run(folder)
    rig = account(run.info, run.records())
    if run.notes.broken_count:
        raise JournalError(f"{folder}: {run.notes.broken_count} lines of the journal cannot be read")
    return compare(rig, read_cluster(folder / CLUSTER, run.info.wall_start))
