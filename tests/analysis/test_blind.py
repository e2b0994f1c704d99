"""Answers that the rig did not understand make unknown what needs them."""

from __future__ import annotations

import pytest

from rig.analysis.checks import needs
from rig.analysis.checks.check import Status
from rig.analysis.symptoms.blind import EVENTS
from rig.analysis.verdict import checks_of, verdict_of
from rig.journal.records import Facet, Finding, Looked
from rig.targets.exo.checks import CHECKS
from tests.analysis.checks.sessions import calm
from tests.analysis.tape import Tape

NEEDS = {**needs.NEEDS, **CHECKS.needs}


def statuses(tape: Tape) -> dict[str, Status]:
    return {result.name: result.status for result in verdict_of(tape.analyse()).checks}


def misread(facet: Facet) -> Looked:
    return Looked(
        t=9, node="a", since_t=1, asked=9, unanswered=0, answer_s=1, longest_s=1, interval_s=1, misread={facet: 3}
    )


def not_understood(code: str, *facets: str) -> Finding:
    return Finding(t=9, code=code, text="runner r has the status 'status'", data={"node": "a", "facets": list(facets)})


def test_every_check_says_what_it_needs() -> None:
    assert NEEDS.keys() == {check.name for check in checks_of("exo")}


@pytest.mark.parametrize(
    ("record", "facet"),
    [
        (misread("runners"), "runners"),
        (not_understood("answer-not-understood", "instances"), "instances"),
        (not_understood("event-not-understood", EVENTS), EVENTS),
    ],
)
def test_what_needs_an_answer_that_was_not_understood_is_unknown(record: Looked | Finding, facet: str) -> None:
    tape = Tape(schedule=[], expected_faults=0)
    calm(tape, 10, 30)
    before = statuses(tape)
    tape.add(record)
    after = statuses(tape)
    assert after == {name: "unknown" if facet in NEEDS[name] else status for name, status in before.items()}
    assert "unknown" in after.values()
    result = next(one for one in verdict_of(tape.analyse()).checks if facet in NEEDS[one.name])
    assert facet in result.evidence[0]


def test_a_poll_that_was_refused_is_not_misread() -> None:
    tape = Tape(schedule=[], expected_faults=0)
    calm(tape, 10, 30)
    before = statuses(tape)
    tape.add(not_understood("unreadable-answer", "instances"))
    assert statuses(tape) == before
