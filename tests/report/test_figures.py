"""The table of figures: nothing of the analysis is missing in it, and everything shown is explained."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import CheckResult
from rig.analysis.kinds import KindRow, UnwedgingRow
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.requests.counts import Counts
from rig.analysis.requests.tally import Lost
from rig.analysis.verdict import Verdict, known_checks, verdict_of
from rig.cli.explain import explain_word
from rig.errors import UsageError
from rig.faults.plan.registry import KINDS
from rig.journal.read import ReadNotes
from rig.report import tables
from rig.report.figures import CHECK, COUNTS, FAULT, JOURNAL, KIND, LOST, RECOVERY, UNWEDGING
from rig.report.form import Shape
from rig.report.glossary import shown
from rig.report.table import Table, plain
from rig.report.why import errors, reasons, summary
from rig.report.write import read_report, write_report
from tests.analysis.tape import A, B, Tape

RENAMED = {"number": "fault", "recovery_class": "class"}


@pytest.mark.parametrize(
    ("shape", "source"),
    [
        (COUNTS, Counts), (RECOVERY, Recovery), (FAULT, Fault), (KIND, KindRow), (LOST, Lost), (CHECK, CheckResult),
        (UNWEDGING, UnwedgingRow), (JOURNAL, ReadNotes),
    ],
)  # fmt: skip
def test_every_field_of_the_analysis_is_a_key(shape: Shape[object], source: type) -> None:
    names = {RENAMED.get(field.name, field.name) for field in fields(source)}
    assert names <= {key.name for key in shape}


def test_every_heading_with_a_meaning_is_in_the_glossary(lossy_run: Path) -> None:
    found = read_report(lossy_run)
    some = [*tables.all_tables(found.analysis, found.verdict), summary(found.analysis)]
    explained = [column for table in some for column in table.columns if column.meaning]
    assert len(explained) > 50
    words = shown()
    assert [column.heading for column in explained if (column.word or column.heading).lower() not in words] == []


def test_every_check_and_kind_of_fault_is_in_the_glossary() -> None:
    assert {check.name for check in known_checks()} | set(KINDS) <= shown().keys()


@pytest.mark.parametrize("run", ["lossy_run", "sound_run"])
def test_every_link_of_the_page_leads_somewhere(run: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(run)
    write_report(folder, read_report(folder))
    page = (folder / "report.html").read_text()
    places = re.findall(r' id="([^"]+)"', page)
    assert len(places) == len(set(places))
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert {link for link in links if not link.startswith("t=")} - set(places) == set()
    assert {"requests", "glossary", "word-exposed", "word-no-request-lost", "word-freeze"} <= links


def judged(tape: Tape) -> tuple[Analysis, Verdict]:
    analysis = tape.analyse()
    return analysis, verdict_of(analysis)


def test_errors_are_explained_in_parts_that_add_up() -> None:
    tape = Tape(models=(A, B))
    tape.steady(0, 100, A)
    tape.error(10, 10.2, A)
    tape.fault(0, "freeze", 50.0, 60.0, hit=("node-2",))
    for second in (52, 53):
        tape.error(second, second + 0.2, B, entry="node-2")
    tape.error(54, 54.2, B, entry="node-1")
    tape.end(100)
    analysis, _ = judged(tape)
    assert analysis.requests.total.error_own_node == 2
    assert errors(analysis) == (
        "4 errors, each told to its client: 2 while its node was down, 1 around other faults, 1 in calm weather"
    )
    nothing = Tape()
    nothing.steady(0, 10)
    nothing.end(10)
    assert errors(judged(nothing)[0]) == "no errors"


def test_a_failed_check_is_a_reason_with_its_first_evidence() -> None:
    tape = Tape()
    tape.steady(0, 100)
    for second in (10, 20):
        tape.lost(second, second + 1, "empty")
    tape.end(100)
    (first, *_) = reasons(*judged(tape))
    assert first.check == "no-request-lost"
    assert re.fullmatch(
        r"2 of \d+ requests got neither a result nor an error \(\S+: empty, .* at 10.0 s, .*; …\)", first.found
    )


def test_a_pass_needs_no_reason(sound_run: Path) -> None:
    found = read_report(sound_run)
    assert found.verdict.word == "pass"
    assert reasons(found.analysis, found.verdict) == []


def test_numbers_stand_at_the_right() -> None:
    rows = (("a", "1", "3.1 s / > 4 min 2 s", "2026-01-01T00:00:00+00:00"), ("b", "–", "∞", "–"))  # noqa: RUF001
    table = Table("t", plain("", "", "", ""), rows)
    assert [table.numeric(index) for index in range(4)] == [False, True, True, False]


def test_explain_prints_every_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain_word(word="Time to serve") == 0
    text = capsys.readouterr().out
    assert "time-to-serve  [check (docs/checks.md)]" in text
    assert "time to serve  [figure (A recovery: `time_to_serve_s`)]\n    from the heal to the end of the first" in text
    assert explain_word() == 0
    assert "no-zombie" in capsys.readouterr().out


@pytest.mark.parametrize(("word", "meant"), [("no-zombi", "no-zombie"), ("own nod", "own node"), ("ttff", "TTFT")])
def test_explain_says_which_word_may_be_meant(word: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        explain_word(word=word)
    assert meant in str(caught.value)
