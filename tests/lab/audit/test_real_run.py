"""A short real soak, with a freeze and a crash of a cluster that loses requests: all three accounts agree, and what
tells of the faults was collected.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rig.lab.audit.compare import compare_run
from rig.lab.audit.soak import soak
from rig.report.write import read_report

INVENTORY = """
name: short
embedded: { nodes: 3, behaviour: exo-0.3.70, pace: 20, load_time: 4s, habits: false }
"""
PLAN = """
name: short
gap: 20s..30s
baseline: 20s
settle: 2m
sustained: 15s
kinds:
  freeze: { hold: 30s..45s }
  master-crash: { hold: 15s..20s }
"""
MINUTES = 0.3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("real")
    inventory, plan = work / "short.yaml", work / "plan.yaml"
    inventory.write_text(INVENTORY)
    plan.write_text(PLAN)
    return soak(str(inventory), MINUTES, work / "results", plan=str(plan))


def test_a_real_run_agrees(run: Path) -> None:
    findings = compare_run(run)
    compared = {row.title: row.compared for row in findings.rows}
    assert findings.differences == []
    assert compared["requests completed"] > 20
    assert compared["requests of the ledger"] > 50
    assert compared["cluster: processes that ended"] >= 9
    assert {"faults: freeze", "faults: master-crash"} & compared.keys()


def test_what_tells_of_the_faults_was_collected(run: Path) -> None:
    """Deployments vanish in this cluster with their master, so a check fails and nothing is dropped."""
    report = read_report(run)
    assert report.verdict.word == "fail"
    healed = {fault.number for fault in report.analysis.faults if fault.state == "healed"}
    assert healed
    for number in healed:
        place = run / "forensics" / f"fault-{number}"
        assert "rig.lab.embedded.process" in (place / "node-1.txt").read_text()
        assert (place / "node-1.log").stat().st_size > 200
        views = json.loads((place / "views.json").read_text())
        assert set(views) == {"node-1", "node-2", "node-3"}
        assert views["node-1"]["node_id"]
