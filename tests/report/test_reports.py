"""What the reports of a run say, in each form."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rig.analysis.analyse import analyse
from rig.analysis.recovery.figures import Figure, distribution
from rig.analysis.verdict import Verdict, verdict_of
from rig.cli.report import report
from rig.errors import JournalError
from rig.report.console import print_report
from rig.report.json import report_json
from rig.report.markdown import markdown
from rig.report.tables import MAX_LOST_ROWS
from rig.report.words import figure, spread
from rig.report.write import read_report, write_report, write_whole
from rig.written import clock, duration
from tests.analysis.tape import A, Tape

STAMP = "EMBEDDED CLUSTER (exo-0.3.70, pace 10): not a measurement of exo"


def said(folder: Path, width: int, *, terminal: bool = False) -> str:
    out = io.StringIO()
    found = read_report(folder)
    console = Console(file=out, width=width, force_terminal=terminal, legacy_windows=False, highlight=False)
    print_report(found.analysis, found.verdict, console)
    return out.getvalue()


def test_json_says_what_was_counted(lossy_run: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert report(run="lossy", as_json=True) == 1
    found: dict[str, Any] = json.loads(capsysbinary.readouterr().out)
    requests = found["requests"]
    parts = ("completed", "error", "lost", "void", "unfinished")
    assert requests["started"] == sum(requests[name] for name in parts) == 1500
    assert {"exposed", "own_node", "own_rejoining"} <= requests.keys()
    assert requests["lost"] > 0
    assert found["lost_how"] == {"hung": 0, "overdue": 0, "truncated": requests["lost"], "empty": 0}
    assert (found["verdict"], found["exit_code"], found["stamp"]) == ("fail", 1, STAMP)
    assert len(found["faults"]) == 6
    assert {fault["fault"] for fault in found["faults"]} == set(range(6))
    assert all({"class", "time_to_serve_s", "silence_s", "resolution_s"} <= one.keys() for one in found["recoveries"])
    assert [row["kind"] for row in found["kinds"]][:2] == ["node-crash", "master-crash"]
    assert found["run"]["finished"] is False
    assert next(check for check in found["checks"] if check["name"] == "no-request-lost")["status"] == "fail"
    assert json.loads((lossy_run / "summary.json").read_text()) == found


def test_every_form_is_stamped_and_says_that_the_run_did_not_finish(lossy_run: Path) -> None:
    found = read_report(lossy_run)
    forms = [markdown(found.analysis, found.verdict), said(lossy_run, 200), said(lossy_run, 80, terminal=True)]
    for text in forms:
        flat = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
        assert STAMP in flat
        assert "THIS RUN DID NOT FINISH" in flat
        assert "1 s here stands for 10 s at pace 1" in flat


def test_a_finished_run_on_real_nodes_carries_no_warning(sound_run: Path) -> None:
    found = read_report(sound_run)
    text = markdown(found.analysis, found.verdict)
    assert "EMBEDDED" not in text
    assert "DID NOT FINISH" not in text
    assert text.startswith("## sound: pass")


def test_the_summary_has_the_columns_of_the_reference(sound_run: Path) -> None:
    found = read_report(sound_run)
    lines = markdown(found.analysis, found.verdict).splitlines()
    head = lines.index("| run | duration | requests | faults | neither result nor error |")
    assert lines[head + 2] == "| sound | 10 min 0 s | 1500 | 6 | 0 |"


def test_markdown_tables_are_well_formed(lossy_run: Path) -> None:
    found = read_report(lossy_run)
    blocks = re.findall(r"(?:^\|.*\n)+", markdown(found.analysis, found.verdict), re.MULTILINE)
    assert len(blocks) == 9
    for block in blocks:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1


@pytest.mark.parametrize("run", ["sound_run", "lossy_run"])
def test_markdown_shows_at_most_20_lines_and_folds_the_rest(run: str, request: pytest.FixtureRequest) -> None:
    found = read_report(request.getfixturevalue(run))
    failing = tuple(replace(check, status="fail") for check in found.verdict.checks)
    for verdict in (found.verdict, Verdict("fail", failing)):
        shown, rest = markdown(found.analysis, verdict).split("<details>", 1)
        assert len(shown.splitlines()) + 1 <= 20  # with the line that opens the rest
        assert "instance survived: " in shown
        assert "instance replaced: " in shown
        assert "not recovered: " in shown
        assert rest.rstrip().endswith("</details>")
        assert "### Requests" in rest
    named = len(re.findall(r"^- `", shown, re.MULTILINE))
    assert named >= 5
    assert f"- and {len(failing) - named} more checks" in shown


def test_what_failed_is_on_the_first_lines_of_markdown_and_on_the_last_of_the_console(lossy_run: Path) -> None:
    found = read_report(lossy_run)
    lost = found.analysis.requests.listed[0]
    shown, _ = markdown(found.analysis, found.verdict).split("<details>", 1)
    (line,) = [line for line in shown.splitlines() if "no-request-lost" in line]
    assert lost.id in line
    last = said(lossy_run, 200).splitlines()[-12:]
    assert any(line.startswith("  no-request-lost: ") and lost.id in line for line in last)
    assert any(line.startswith("lossy: fail (exit code 1)") for line in last)
    assert re.match(r"  Checks: \d+ failed, ", last[-1])


def test_text_of_others_cannot_break_the_markdown() -> None:
    tape = Tape(run="a|b <script>")
    tape.lost(1, 2, "empty", model=A, entry="x|y\n# z")
    tape.end(3)
    analysis = tape.analyse()
    text = markdown(analysis, verdict_of(analysis))
    assert "<script>" not in text
    assert "x\\|y \\# z" in text


def test_lost_requests_are_listed_and_the_list_is_bounded() -> None:
    tape = Tape()
    names = [tape.lost(1 + number, 2 + number, "empty") for number in range(MAX_LOST_ROWS + 30)]
    tape.end(100)
    analysis = tape.analyse()
    text = markdown(analysis, verdict_of(analysis))
    assert f"| {names[0]} | empty | lab/tiny-a | node-1 | 1.0 s | 1.0 s | 2.0 s | none near |" in text
    assert f"| {names[MAX_LOST_ROWS]} |" not in text
    assert "and 30 more" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_the_console_keeps_within_its_width(lossy_run: Path, width: int, terminal: bool) -> None:  # noqa: FBT001
    text = said(lossy_run, width, terminal=terminal)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line) for line in plain.splitlines()) <= width
    assert "master-crash" in plain
    assert ("\x1b[" in text) is terminal


def test_a_journal_without_a_single_record_reports(results: Path) -> None:
    tape = Tape()
    analysis = analyse(tape.info, [])
    verdict = verdict_of(analysis)
    assert verdict.word == "unknown"
    assert report_json(analysis, verdict)["requests"]["started"] == 0
    assert "DID NOT FINISH" in markdown(analysis, verdict)


def test_files_are_whole_or_absent(sound_run: Path) -> None:
    write_report(sound_run, read_report(sound_run))
    reports = {"summary.md", "summary.json", "report.html", "junit.xml"}
    assert {path.name for path in sound_run.iterdir()} == {"run.json", "journal.jsonl"} | reports
    (sound_run / "summary.md").write_text("old")
    (sound_run / "in-the-way").mkdir()
    with pytest.raises(JournalError, match="in-the-way"):
        write_whole(sound_run / "in-the-way", b"new")
    assert not list(sound_run.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"), (0.0004, "0.4 ms"), (0.238, "238 ms"), (0.9996, "1.0 s"), (3.14, "3.1 s"), (118.0, "118 s"),
        (250, "4 min 10 s"), (3599.6, "1 h 0 min"), (10_800, "3 h 0 min"), (float("inf"), "∞"), (None, "–"),  # noqa: RUF001
    ],
)  # fmt: skip
def test_durations_are_written_in_one_way(value: float | None, text: str) -> None:
    assert duration(value) == text


def test_the_wall_clock_is_that_of_the_start() -> None:
    assert clock("2026-01-01T23:59:00+01:00", 90.5) == "00:00:30"


def test_figures_in_words() -> None:
    assert figure(Figure(24.0, above=True)) == "> 24.0 s"
    assert spread(distribution([1.0, 2.0, 3.0], [24.0])) == "2.5 s / > 24.0 s / > 24.0 s"
    assert spread(distribution([3.0])) == "3.0 s"
    assert spread(distribution([])) == "–"  # noqa: RUF001
