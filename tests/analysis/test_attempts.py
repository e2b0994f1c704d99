"""What a request that ended says of itself."""

from __future__ import annotations

from typing import Any

from rig.analysis.attempts import Attempt
from tests.analysis.tape import Tape


def attempt(tape: Tape) -> Attempt:
    return tape.attempts()[0]


def test_a_loss_by_the_rigs_deadline_failed_when_progress_stopped_and_others_when_they_ended() -> None:
    tape = Tape()
    tape.lost(1, 121, "hung", last_progress_t=20)
    assert (attempt(tape).failed_t, attempt(tape).by_deadline) == (20, True)
    tape = Tape()
    tape.lost(1, 121, "overdue")
    assert (attempt(tape).failed_t, attempt(tape).by_deadline) == (1, True)
    tape = Tape()
    tape.lost(1, 121, "truncated", last_progress_t=20)
    assert (attempt(tape).failed_t, attempt(tape).by_deadline) == (121, False)


def test_an_error_failed_when_it_ended_whoever_gave_up() -> None:
    tape = Tape()
    tape.error(1, 31, connected_t=None, evidence="no connection: ConnectTimeout")
    assert (attempt(tape).failed_t, attempt(tape).by_deadline) == (31, True)
    others: list[dict[str, Any]] = [{"connected_t": None, "evidence": "refused"}, {"evidence": "timeout"}]
    for more in others:
        tape = Tape()
        tape.error(1, 31, **more)
        assert (attempt(tape).failed_t, attempt(tape).by_deadline) == (31, False)


def test_only_a_failure_has_evidence() -> None:
    tape = Tape()
    tape.ok(1, 2, evidence="200")
    assert attempt(tape).evidence == ""
    tape = Tape()
    tape.error(1, 2)
    assert attempt(tape).evidence == "HTTP status 404"
