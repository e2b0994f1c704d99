"""The run that is kept in the repository: readable, with reports that say what its journal says."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from rig.report.write import read_report

SAMPLE = Path(__file__).parents[2] / "results" / "sample"


def test_its_reports_are_of_its_journal() -> None:
    total = read_report(SAMPLE).analysis.requests.total
    kept = json.loads((SAMPLE / "summary.json").read_text(encoding="utf-8"))
    assert (kept["requests"]["started"], kept["requests"]["completed"]) == (total.started, total.completed)
    assert f"| {total.started} |" in (SAMPLE / "summary.md").read_text(encoding="utf-8")
    assert (SAMPLE / "report.html").read_text(encoding="utf-8").endswith("</html>\n")
    requests = pd.read_parquet(SAMPLE / "requests.parquet")
    assert int((requests["source"] == "load").sum()) == total.started > 1000


def test_it_is_stamped_and_every_kind_of_fault_took_effect() -> None:
    found = read_report(SAMPLE).analysis
    assert found.info.embedded
    assert {fault.kind for fault in found.faults if fault.effective} == {
        "node-crash", "master-crash", "freeze", "runner-kill", "partition",
    }  # fmt: skip
