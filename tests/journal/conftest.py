from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rig.journal.run import PlannedFault, RunInfo


def run_info(**changes: Any) -> RunInfo:
    info = RunInfo(
        run="20260314-153000",
        wall_start=1_773_500_000.0,
        wall_start_iso="2026-03-14T15:30:00+01:00",
        rig_version="0.1.0",
        rig_revision=None,
        python="3.11.9",
        seed=7,
        duration_s=240.0,
        pace=10.0,
        embedded=True,
        behaviour="sound",
        inventory={"nodes": ["node1"]},
        workload={},
        plan={},
        schedule=[PlannedFault(fault=0, kind="freeze", aim="node node1", hold_s=1.0, gap_s=2.0)],
        expected_faults=12,
        target_revisions={"node1": None},
        pids_allowed={},
        versions={},
    )
    return msgspec.structs.replace(info, **changes)


@pytest.fixture
def info() -> RunInfo:
    return run_info()
