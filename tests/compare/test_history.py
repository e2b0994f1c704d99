"""`rig history`: all runs in their order, and their trend."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rig.cli.history import history
from rig.compare.history import read_history
from rig.compare.trend import bars, by_series, trends
from rig.errors import UsageError
from rig.report.write import read_report, write_report
from tests.analysis.generate import Shape, info_of, records_of, write_journal


def night(results: Path, name: str, day: int, shape: Shape | None = None, **changes: Any) -> Path:
    some = Shape(seed=day, duration_s=300, faults=2, requests=120, views=30) if shape is None else shape
    start = 1_767_225_600.0 + day * 86_400
    info = info_of(some, run=name, wall_start=start, wall_start_iso=f"2026-01-{day + 1:02}T00:00:00+00:00", **changes)
    return write_journal(results / name, info, records_of(some))


def test_runs_are_in_the_order_in_which_they_were_begun(results: Path) -> None:
    for name, day in (("zebra", 0), ("ant", 2), ("bee", 1)):
        night(results, name, day)
    assert [one.run for one in read_history(results)] == ["zebra", "bee", "ant"]
    assert [one.run for one in read_history(results, last=2)] == ["bee", "ant"]


def test_figures_are_those_of_the_report(results: Path) -> None:
    folder = night(results, "lossy", 1, Shape(seed=4, lost_share=0.4))
    found = read_report(folder)
    (one,) = read_history(results)
    total = found.analysis.requests.total
    assert (one.verdict, one.requests, one.lost, one.errors) == (
        found.verdict.word, total.started, total.lost_not_own_node, total.error,
    )  # fmt: skip
    assert one.faults == 6
    assert one.serve_median_s is not None
    write_report(folder, found)
    assert read_history(results) == [one]  # the same from summary.json


def test_a_summary_older_than_its_journal_is_not_believed(results: Path) -> None:
    folder = night(results, "run", 1)
    write_report(folder, read_report(folder))
    summary = json.loads((folder / "summary.json").read_text())
    summary["requests"]["started"] = 7
    (folder / "summary.json").write_text(json.dumps(summary))
    assert read_history(results)[0].requests == 7
    later = (folder / "summary.json").stat().st_mtime_ns + 1_000_000_000
    os.utime(folder / "journal.jsonl", ns=(later, later))
    assert read_history(results)[0].requests == 120


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 0}'])
def test_a_summary_of_no_use_is_read_from_the_journal(results: Path, content: str) -> None:
    folder = night(results, "run", 1)
    (folder / "summary.json").write_text(content)
    assert read_history(results)[0].requests == 120


def test_only_runs_of_a_kind_make_a_trend(results: Path) -> None:
    night(results, "a", 0)
    night(results, "b", 1)
    night(results, "c", 2, pace=10.0)
    groups = by_series(read_history(results))
    assert [[one.run for one in some] for some in groups.values()] == [["a", "b"], ["c"]]
    lines = trends(read_history(results))
    assert sum(line.startswith("made-up / chat / keeper") for line in lines) == 2
    assert any("time to serve, median" in line for line in lines)


def test_bars_are_as_high_as_the_values() -> None:
    assert bars([0.0, 1.0, None, 7.0, 3.5]) == "▁▂ █▅"
    assert bars([0.0, 0.0]) == "▁▁"


def test_every_form(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night(results, "first", 0)
    night(results, "second", 1, Shape(seed=4, lost_share=0.4, finished=False))
    assert history(results=results) == 0
    text = capsys.readouterr().out
    assert "fail, did not finish" in text
    assert "2 runs" in text
    assert history(results=results, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["run"] for one in found["runs"]] == ["first", "second"]
    assert history(results=results, html=True) == 0
    page = (results / "history.html").read_text()
    assert page.count("<rect") >= 8
    assert "second, 2026-01-02T00:00:00+00:00" in page


def test_a_folder_that_is_none(results: Path) -> None:
    with pytest.raises(UsageError, match="nowhere is not a folder"):
        history(results=Path("nowhere"))
    with pytest.raises(UsageError, match="--last"):
        history(results=results, last=0)
    assert history(results=results) == 0
