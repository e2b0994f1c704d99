"""Every check of the rig is tried, and can fail (or, where it never fails a target, not know)."""

from __future__ import annotations

from pathlib import Path

from rig.analysis.verdict import checks_of
from tests.analysis import test_checks, test_timing
from tests.analysis.checks import test_calls, test_promises, test_symptoms

NEVER_FAIL = {"exposure", "run-finished", "activities-alive", "controller-sound", "journal-sound", "load-on-time"}
"""Checks of the rig itself, and of whether enough was seen."""
BY_NO_JOURNAL = {"accounting"}
"""It fails where the rig's own counts do not add up; whatever is wrong with a journal is unknown."""
DOCS = Path(__file__).parents[3] / "docs" / "checks.md"

CASES = [
    (name, status)
    for cases in (test_checks.CASES, test_promises.CASES, test_symptoms.CASES, test_calls.CASES, test_timing.CASES)
    for name, status, _ in cases
]


def test_every_check_is_tried() -> None:
    assert {name for name, _ in CASES} == {check.name for check in checks_of("exo")}


def test_every_check_can_fail_or_not_know() -> None:
    failed = {name for name, status in CASES if status == "fail"} | BY_NO_JOURNAL
    assert {check.name for check in checks_of("exo")} - failed == NEVER_FAIL
    assert {name for name, status in CASES if status == "unknown"} >= NEVER_FAIL - {
        "journal-sound"
    }  # a file's, not a record's


def test_every_check_passes_somewhere() -> None:
    assert {name for name, status in CASES if status == "pass"} == {check.name for check in checks_of("exo")}


def test_names_are_told_apart_and_documented() -> None:
    names = [check.name for check in checks_of("exo")]
    assert len(names) == len(set(names))
    text = DOCS.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []
