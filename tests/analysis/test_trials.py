"""Which failures are a model's, and of which moment."""

from __future__ import annotations

import pytest

from rig.analysis.recovery.trials import stalled_long
from tests.analysis.tape import Tape


def failures(tape: Tape, error_s: float = 0.0) -> int:
    """Of a runner that was killed at 100, the model serving from 160 on."""
    tape.fault(0, "runner-kill", 100, 100, error_s=error_s)
    tape.steady(160, 220)
    tape.end(220)
    return tape.recovery().failures


@pytest.mark.parametrize(
    ("ended_t", "error_s", "count"), [(99.7, 0.5, 1), (99.3, 0.5, 0), (99.7, 0.0, 0), (100.0, 0.0, 1)]
)
def test_failures_count_from_the_strike_as_early_as_the_clocks_allow(
    ended_t: float, error_s: float, count: int
) -> None:
    tape = Tape()
    tape.error(99, ended_t)
    assert failures(tape, error_s) == count


def test_a_failure_just_before_the_strike_by_the_clocks_is_the_faults() -> None:
    tape = Tape()
    name = tape.lost(99, 99.7, "empty")
    early = tape.lost(99, 99.3, "empty")
    tape.error(101, 102)
    failures(tape, error_s=0.5)
    assert {lost.id: lost.fault for lost in tape.analyse().requests.listed} == {name: 0, early: None}


def test_what_had_stalled_long_before_the_strike_is_no_failure_of_it() -> None:
    tape = Tape()
    tape.lost(20, 140, "hung", last_progress_t=50)
    assert failures(tape) == 0
    tape = Tape()
    tape.lost(20, 140, "hung", last_progress_t=90)  # may have been stopped by it
    assert failures(tape) == 1


@pytest.mark.parametrize(("streamed", "granted_s"), [(True, 15.0), (False, 30.0)])
def test_how_long_is_long(streamed: bool, granted_s: float) -> None:  # noqa: FBT001
    tape = Tape()
    tape.lost(100, 300, "hung", streamed=streamed)
    attempts = tape.attempts()
    assert stalled_long(attempts, 100 + granted_s, 15.0).tolist() == [False]
    assert stalled_long(attempts, 100.1 + granted_s, 15.0).tolist() == [True]


@pytest.mark.parametrize(
    ("before_t", "after_t", "count"),
    [(107, 115, 0), (105, 115, 1), (107, 117, 1), (None, 115, 1), (107, None, 1)],
)
def test_a_probe_waits_in_a_queue_where_load_is_served_within_five_seconds_before_and_after(
    before_t: float | None, after_t: float | None, count: int
) -> None:
    tape = Tape()
    for start_t in (before_t, after_t):
        if start_t is not None:
            tape.ok(start_t, start_t + 0.5)
    tape.lost(111, 141, "hung", source="probe")
    assert failures(tape) == count


def test_only_load_that_was_served_through_the_same_node_excuses_a_probe() -> None:
    tape = Tape()
    tape.ok(108, 109, source="probe")
    tape.error(109, 110)
    tape.error(112, 113)
    tape.ok(108, 109, entry="node-2")
    tape.ok(112, 113, entry="node-2")
    tape.lost(111, 141, "hung", source="probe")
    assert failures(tape) == 3


def test_only_a_probe_that_met_the_rigs_limit_is_excused() -> None:
    tape = Tape()
    tape.ok(110, 110.5)
    tape.ok(112, 112.5)
    tape.error(111, 111.1, source="probe")
    tape.lost(111, 131, "hung")
    assert failures(tape) == 2


def test_load_is_found_by_its_starts_whatever_ended_first() -> None:
    tape = Tape()
    tape.ok(109, 120)
    tape.ok(115, 116)
    tape.ok(130, 131)
    tape.ok(108, 132)
    tape.lost(112, 142, "hung", source="probe")
    assert failures(tape) == 0


def test_a_probe_through_one_node_is_not_excused_by_what_failed_through_another() -> None:
    tape = Tape()
    tape.ok(108, 109, entry="node-2")
    tape.ok(112, 113, entry="node-2")
    tape.error(111, 111.1, entry="node-2")
    tape.lost(111, 141, "hung", source="probe", entry="node-1")
    assert failures(tape) == 2
