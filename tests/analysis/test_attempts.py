"""What a request that ended says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from rig.analysis.intake.attempts import ROW, Recent, Together, row_of, table_of
from rig.journal.records import RequestEnded, RequestStarted
from tests.analysis.tape import A, B, Tape


def failed(tape: Tape) -> tuple[float, bool]:
    """Of the first: when it failed, and whether a deadline of the rig's ended it."""
    attempts = tape.attempts()
    return float(attempts.failed_t[0]), bool(attempts.by_deadline[0])


def test_a_loss_by_the_rigs_deadline_failed_when_progress_stopped_and_others_when_they_ended() -> None:
    tape = Tape()
    tape.lost(1, 121, "hung", last_progress_t=20)
    assert failed(tape) == (20, True)
    tape = Tape()
    tape.lost(1, 121, "overdue")
    assert failed(tape) == (1, True)
    tape = Tape()
    tape.lost(1, 121, "truncated", last_progress_t=20)
    assert failed(tape) == (121, False)


def test_an_error_failed_when_it_ended_whoever_gave_up() -> None:
    tape = Tape()
    tape.error(1, 31, connected_t=None, cause="connect-deadline")
    assert failed(tape) == (31, True)
    others: list[dict[str, Any]] = [
        {"connected_t": None, "cause": "unconnected"},
        {"cause": "broken", "evidence": "timeout"},
    ]
    for more in others:
        tape = Tape()
        tape.error(1, 31, **more)
        assert failed(tape) == (31, False)


def test_what_was_lost_keeps_its_evidence() -> None:
    tape = Tape()
    tape.ok(1, 2, evidence="200")
    tape.lost(1, 3, "empty", evidence="nothing came")
    attempts = tape.attempts()
    assert [attempts.evidence(place) for place in range(2)] == ["", "nothing came"]


def test_where_a_server_claims_what_no_answer_has_its_tokens_are_those_seen() -> None:
    tape = Tape()
    for claimed in (7, 10**30, -(10**30), None):
        tape.ok(1, 2, tokens=3, usage_tokens=claimed)
    assert tape.attempts().tokens.tolist() == [7, 3, 3, 3]


def test_what_is_attributed_is_so_in_every_table_that_has_it() -> None:
    tape = Tape((A, B))
    for model in (A, B, A):
        tape.error(1, 2, model)
    attempts = tape.attempts()
    parts = [attempts.part(slice(0, 1)), attempts.part(slice(1, 3))]
    together = Together(parts)
    first = Recent(together, A)
    first.mark(first.rows.ended_t < 3, 7)
    assert Recent(together, A).rows.fault.tolist() == [7, 7]
    assert Recent(together, B).rows.fault.tolist() == [-1]
    assert attempts.fault.tolist() == [7, -1, 7]
    assert [first.response_id(at) for at in range(2)] == [attempts.response_id(0), attempts.response_id(2)]


def test_rows_packed_into_a_table_are_what_numpy_makes_of_them() -> None:
    tape = Tape()
    tape.ok(1, 2)
    tape.error(3, 4, connected_t=None, cause="connect-deadline")
    tape.lost(1, 121, "overdue", last_progress_t=20)
    records = tape.records()
    starts = {one.id: one for one in records if isinstance(one, RequestStarted)}
    ends = [one for one in records if isinstance(one, RequestEnded)]
    rows = [row_of(number, starts[end.id].planned_t, end) for number, end in enumerate(ends)]
    rows.append(row_of(7, None, ends[0]))
    table = table_of(rows)
    wanted = np.array(rows, dtype=ROW)
    for name in ROW.names or ():
        np.testing.assert_array_equal(table[name], wanted[name])
    table["fault"] = 5  # it can be written to
    assert np.isnan(table["planned_t"]).tolist() == [False, False, False, True]
    assert len(table_of([])) == 0


def test_those_that_are_asked_for_are_taken_by_place_and_by_mark() -> None:
    tape = Tape()
    for second in range(6):
        tape.ok(second, second + 0.5)
    attempts = tape.attempts()
    marks = np.array([True, False, False, True, True, False])
    for asked in (marks, np.flatnonzero(marks)):
        assert attempts.where(asked).started_t.tolist() == [0, 3, 4]
        part = attempts.part(np.flatnonzero(marks))
        assert [part.id(at) for at in range(3)] == [attempts.id(at) for at in (0, 3, 4)]
