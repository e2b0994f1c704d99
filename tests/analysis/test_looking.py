"""What looking cost each node, summed up."""

from __future__ import annotations

import pytest

from rig.analysis.verdict import verdict_of
from rig.journal.records import Looked
from rig.report.json import report_json
from tests.analysis.tape import Tape


def test_the_cost_of_looking_stands_in_the_report() -> None:
    tape = Tape(schedule=[], expected_faults=0)
    for t, answer_s in ((30.0, 3.0), (60.0, 6.0)):
        tape.add(
            Looked(
                t=t,
                node="a",
                since_t=t - 30,
                asked=20,
                unanswered=1,
                answer_s=answer_s,
                longest_s=answer_s / 10,
                interval_s=7.5,
                misread={"runners": 2},
            )
        )
    analysis = tape.analyse()
    assert report_json(analysis, verdict_of(analysis))["looking"]["a"] == {
        "seconds": 60.0,
        "asked": 40,
        "unanswered": 2,
        "misread": 4,
        "answer_s": 9.0,
        "longest_s": 0.6,
        "per_s": pytest.approx(40 / 60, abs=1e-5),
        "share": 0.15,
    }
