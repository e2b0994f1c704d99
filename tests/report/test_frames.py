"""DataFrames: the same run as in the report, and an example in the docs that runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import rig
from rig.errors import JournalError
from rig.report.figures import FAULT, RECOVERY, REQUEST
from rig.report.write import read_report

ROOT = Path(__file__).parents[2]
EMPTY = {"requests": list(REQUEST.columns), "faults": list(FAULT.columns), "recoveries": list(RECOVERY.columns)}


def test_they_hold_what_the_report_says(lossy_run: Path) -> None:
    run, report = rig.open_run(lossy_run), read_report(lossy_run)
    total = report.analysis.requests.total
    load = run.requests[run.requests["source"] == "load"]
    assert (load["outcome"] == "lost").sum() == total.lost > 0
    assert load["exposed"].sum() == total.exposed > 0
    assert len(run.requests) == total.started + report.analysis.probes.total.started
    assert run.faults["kind"].tolist() == [fault.kind for fault in report.analysis.faults]
    assert run.faults["lost"].sum() == sum(counts.lost for counts in report.analysis.requests.by_fault.values()) > 0
    served = [r.time_to_serve_s for r in report.analysis.recoveries if r.time_to_serve_s is not None]
    assert run.recoveries["time_to_serve_s"].dropna().tolist() == served
    assert dict(zip(run.checks["check"], run.checks["status"], strict=True)) == {
        check.name: check.status for check in report.verdict.checks
    }


def test_views_have_a_row_for_each_change() -> None:
    views = rig.open_run(ROOT / "results" / "sample").views
    first = views[views["since_t"].isna()]
    assert len(views) > len(first) > 0
    assert (views["t"] > views["since_t"]).sum() == len(views) - len(first)
    assert all(isinstance(value, dict) for value in views.loc[views["facet"] == "instances", "value"])


def test_a_run_that_ended_before_it_began_has_frames_without_rows(sound_run: Path) -> None:
    for path in sound_run.glob("journal*.jsonl"):
        path.write_bytes(b"")
    run = rig.open_run(sound_run)
    for name, columns in EMPTY.items():
        frame: pd.DataFrame = getattr(run, name)
        assert (len(frame), list(frame.columns)) == (0, columns)
    assert len(run.views) == 0
    assert run.verdict.word == "unknown"


def test_a_folder_that_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"run\.json"):
        rig.open_run(tmp_path)


@pytest.mark.processes
def test_the_example_of_the_docs_runs_on_the_sample() -> None:
    text = (ROOT / "docs" / "dataframes.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "runner-kill" in done.stdout
