"""When the controller stalled, and what became void by that."""

from __future__ import annotations

import pytest

from rig.analysis.intake.attempts import Attempts
from rig.analysis.intake.ticks import health_row, healths
from rig.analysis.recovery.stalls import MAX_KEPT, Stalls
from rig.journal.records import How, Own
from tests.analysis.tape import Tape


def own(t: float, lag_s: float = 0.0, drift_s: float = 0.0, cpu: float = 1.0, rss: int = 1, files: int = 1) -> Own:
    return Own(
        t=t, interval_s=1.0, lag_max_s=lag_s, cpu_percent=cpu, rss_bytes=rss, open_files=files, wall_drift_s=drift_s
    )


def stalls(*records: Own, pace: float = 1.0) -> Stalls:
    found = Stalls(pace)
    if records:
        found.take(healths(map(health_row, records)))
    return found


def hung(started_t: float, ended_t: float, how: How = "hung") -> Attempts:
    tape = Tape()
    tape.lost(started_t, ended_t, how)
    return tape.attempts()


def test_what_the_controller_used_is_its_worst() -> None:
    found = stalls(own(1, 0.2, cpu=9, rss=5, files=3), own(2, 0.1, cpu=4, rss=7, files=2))
    assert (found.records, found.observed_s, found.lag_max_s) == (2, 2.0, 0.2)
    assert (found.cpu_max_percent, found.rss_max_bytes, found.open_files_max) == (9, 7, 3)
    assert (found.count, found.total_s, found.kept) == (0, 0.0, [])
    nothing = stalls()
    assert (nothing.records, nothing.observed_s, nothing.lag_max_s, nothing.total_s) == (0, 0.0, 0.0, 0.0)
    assert (nothing.cpu_max_percent, nothing.rss_max_bytes, nothing.open_files_max) == (0.0, 0, 0)


@pytest.mark.parametrize(("pace", "least_s"), [(1.0, 1.0), (2.0, 0.5), (60.0, 0.25)])
def test_a_stall_is_a_second_of_the_target_but_no_little_lag(pace: float, least_s: float) -> None:
    assert stalls(own(5, least_s - 0.01), pace=pace).count == 0
    found = stalls(own(5, least_s), own(6, least_s), pace=pace)
    assert (found.count, found.total_s) == (2, 2 * least_s)
    assert [(stall.from_t, stall.to_t, stall.length_s) for stall in found.kept] == [(4, 5, least_s), (5, 6, least_s)]


def test_a_jump_of_the_wall_clock_is_a_sleep() -> None:
    found = stalls(own(5, drift_s=7.0), own(6, drift_s=8.9), own(7, 0.5, drift_s=3.0), own(8, drift_s=3.0))
    assert [(stall.to_t, stall.length_s, stall.slept) for stall in found.kept] == [(7, pytest.approx(5.9), True)]


def test_all_are_counted_and_the_first_are_kept() -> None:
    found = stalls(*(own(float(t), 1.5) for t in range(MAX_KEPT + 5)))
    assert (found.count, found.total_s, len(found.kept)) == (MAX_KEPT + 5, 1.5 * (MAX_KEPT + 5), MAX_KEPT)


@pytest.mark.parametrize(
    ("started_t", "ended_t", "how", "void"),
    [
        (100, 219, "hung", False),
        (100, 220, "hung", True),  # from an interval before the record
        (100, 223.5, "overdue", True),  # to as long after it as it lasted
        (100, 223.6, "hung", False),
        (100, 221, "truncated", False),
        (220.9, 221.5, "hung", True),
        (221.1, 223, "hung", False),  # sent when it was over
    ],
)
def test_a_deadline_that_ran_out_in_a_stall_decides_nothing(
    started_t: float,
    ended_t: float,
    how: How,
    void: bool,  # noqa: FBT001
) -> None:
    found = stalls(own(150, 1.0), own(221, 2.5), own(400, 1.0))
    assert found.voids(hung(started_t, ended_t, how)).tolist() == [void]


def test_a_sleep_anywhere_in_the_request_makes_it_void() -> None:
    found = stalls(own(100), own(150, drift_s=40.0), own(151, drift_s=40.0))
    assert found.voids(hung(120, 240)).tolist() == [True]
    assert found.voids(hung(151, 271)).tolist() == [False]
    assert found.voids(hung(20, 140)).tolist() == [False]


def test_a_jump_of_the_wall_clock_between_two_batches_is_seen() -> None:
    found = stalls(own(5, drift_s=0.0))
    found.take(healths([health_row(own(6, drift_s=9.0))]))
    assert [(stall.to_t, stall.length_s) for stall in found.kept] == [(6.0, 9.0)]
