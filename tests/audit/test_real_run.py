"""A short real soak, with a freeze and a crash of a cluster that loses requests: all three accounts agree."""

from __future__ import annotations

from pathlib import Path

from tests.audit.compare import compare_run
from tests.audit.soak import soak

INVENTORY = """
name: short
embedded: { nodes: 3, behaviour: exo-0.3.70, pace: 20, load_time: 4s }
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


def test_a_real_run_agrees(tmp_path: Path) -> None:
    inventory, plan = tmp_path / "short.yaml", tmp_path / "plan.yaml"
    inventory.write_text(INVENTORY)
    plan.write_text(PLAN)
    findings = compare_run(soak(str(inventory), MINUTES, tmp_path / "results", "--faults", str(plan)))
    compared = {row.title: row.compared for row in findings.rows}
    assert findings.differences == []
    assert compared["requests completed"] > 20
    assert compared["requests of the ledger"] > 50
    assert compared["cluster: processes that ended"] >= 9
    assert {"faults: freeze", "faults: master-crash"} & compared.keys()
