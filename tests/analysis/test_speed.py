"""The level of speed: which times are calm, and what is slower there than in the baseline."""

from __future__ import annotations

from typing import Any

import pytest

from rig.analysis.recovery.faults import Window
from rig.analysis.symptoms.speed import MAX_BUCKETS, SpeedWatch, calm_windows, slower
from rig.journal.records import Gaps
from tests.analysis.tape import A, B, Tape

BASE, AFTER, LATER = Window(0, 60), Window(100, 160), Window(200, 260)


def served(tape: Tape, window: Window, *, apart_s: float = 0.05, count: int = 120, model: str = A, **more: Any) -> None:
    """So many requests of ten gaps, at even distances."""
    step_s = (window.to_t - window.from_t) / count
    for number in range(count):
        t = window.from_t + number * step_s + step_s / 2
        tape.ok(t - 0.1, t, model, gaps=Gaps(count=10, sum_s=10 * apart_s), **more)


def judged(tape: Tape, *windows: Window) -> tuple[list[tuple[str, float]], int]:
    found, compared = slower(tape.analyse().watch.speed, windows or (BASE, AFTER, LATER))
    return [(one.model, one.from_t) for one in found], compared


def test_slower_to_the_end_of_the_run() -> None:
    tape = Tape((A, B))
    for window, apart_s in ((BASE, 0.05), (AFTER, 0.15), (LATER, 0.12)):
        served(tape, window, apart_s=apart_s)
        served(tape, window, model=B)
    assert judged(tape) == ([(A, 100), (A, 200)], 4)


@pytest.mark.parametrize(("after_s", "later_s"), [(0.15, 0.05), (0.05, 0.15), (0.09, 0.09)])
def test_slow_once_or_a_little_is_not_slower(after_s: float, later_s: float) -> None:
    tape = Tape()
    for window, apart_s in ((BASE, 0.05), (AFTER, after_s), (LATER, later_s)):
        served(tape, window, apart_s=apart_s)
    assert judged(tape) == ([], 2)


def test_fewer_requests_a_second_are_slower_too() -> None:
    tape = Tape()
    for window, count in ((BASE, 120), (AFTER, 40), (LATER, 40)):
        served(tape, window, count=count)
    assert judged(tape) == ([(A, 100), (A, 200)], 2)
    tape = Tape()
    for window, count in ((BASE, 120), (AFTER, 80), (LATER, 80)):
        served(tape, window, count=count)
    assert judged(tape) == ([], 2)


def test_requests_a_second_are_told_of_the_length_of_the_time() -> None:
    tape = Tape()
    for window, count in ((BASE, 120), (Window(100, 120), 40), (Window(200, 220), 40)):
        served(tape, window, count=count)
    assert judged(tape, BASE, Window(100, 120), Window(200, 220)) == ([], 2)


def test_without_tokens_there_is_no_distance_between_them() -> None:
    tape = Tape()
    for window in (BASE, AFTER, LATER):
        tape.steady(window.from_t, window.to_t)
    assert judged(tape) == ([], 2)


def test_only_what_the_load_completed_counts() -> None:
    tape = Tape()
    for window in (BASE, AFTER, LATER):
        served(tape, window)
    for window in (AFTER, LATER):
        served(tape, window, apart_s=9, count=60, source="probe")
        for second in range(60):
            tape.error(window.from_t + second, window.from_t + second + 0.2, gaps=Gaps(count=10, sum_s=90))
    assert judged(tape) == ([], 2)
    levels, _ = tape.analyse().watch.speed.levels(LATER)
    assert {model: level.completed for model, level in levels.items()} == {A: 120}


@pytest.mark.parametrize(("base", "later", "compared"), [(20, 20, 2), (19, 120, 0), (120, 19, 0)])
def test_few_requests_say_nothing(base: int, later: int, compared: int) -> None:
    tape = Tape()
    for window, count in ((BASE, base), (AFTER, later), (LATER, later)):
        served(tape, window, count=count)
    assert judged(tape)[1] == compared


def test_one_model_with_few_requests_does_not_hide_another() -> None:
    tape = Tape((A, B))
    served(tape, BASE, count=5)
    for window, apart_s in ((BASE, 0.05), (AFTER, 0.15), (LATER, 0.15)):
        served(tape, window, apart_s=apart_s, model=B)
    assert judged(tape) == ([(B, 100), (B, 200)], 2)


@pytest.mark.parametrize(("lag_s", "compared"), [(0.03, 2), (0.05, 1)])
def test_where_the_controller_lagged_more_nothing_is_said(lag_s: float, compared: int) -> None:
    """More than twice the mean lag of the baseline and 20 ms."""
    tape = Tape()
    for window in (BASE, AFTER, LATER):
        served(tape, window)
    for second in range(59):
        tape.own(second + 0.2, lag_s=0.0 if second % 2 else 0.02)
        tape.own(100.2 + second, lag_s=lag_s)
    assert judged(tape)[1] == compared


def test_nothing_to_compare() -> None:
    assert slower(SpeedWatch(), []) == ([], 0)


def test_only_buckets_that_lie_in_a_window_as_a_whole_count() -> None:
    tape = Tape()
    for end_t in (9.9, 10.1, 10.6, 11.4, 11.6):
        tape.ok(end_t - 0.05, end_t)
    levels, lag_s = tape.analyse().watch.speed.levels(Window(10.0, 11.5))
    assert (levels[A].completed, levels[A].seconds, lag_s) == (3, 1.5, 0.0)
    levels, _ = tape.analyse().watch.speed.levels(Window(10.2, 11.3))
    assert (levels[A].completed, levels[A].seconds) == (1, 0.5)


def test_a_long_run_has_wider_buckets_and_loses_nothing() -> None:
    tape = Tape((A, B))
    served(tape, Window(0, 2 * MAX_BUCKETS), count=3 * MAX_BUCKETS)
    served(tape, Window(0, 2 * MAX_BUCKETS), count=1000, model=B, apart_s=0.1)
    for second in range(0, 2 * MAX_BUCKETS, 2):
        tape.own(second + 0.1, lag_s=0.02)
    watch = tape.analyse().watch.speed
    assert watch.width_s == 4.0
    levels, lag_s = watch.levels(Window(0, 2 * MAX_BUCKETS))
    assert (levels[A].completed, levels[B].completed) == (3 * MAX_BUCKETS, 1000)
    assert (levels[A].itl_s, levels[B].itl_s) == (pytest.approx(0.05), pytest.approx(0.1))
    assert levels[A].per_s == pytest.approx(1.5)
    assert lag_s == pytest.approx(0.02)
    assert watch.levels(Window(0, 1000))[1] == pytest.approx(0.02)  # of buckets that were made wider
    assert watch.levels(Window(4096, 4104))[0][A].completed == 12


def windows(tape: Tape, load_end_t: float = 400) -> list[tuple[float, float]]:
    analysis = tape.analyse()
    found = calm_windows(analysis.baseline, analysis.faults, analysis.recoveries, load_end_t)
    return [(window.from_t, window.to_t) for window in found]


def test_calm_is_the_baseline_and_from_each_recovery_to_the_next_strike() -> None:
    tape = Tape()
    tape.phase(10, "baseline")
    tape.phase(60, "faults")
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.steady(112, 200)
    tape.fault(1, "runner-kill", 200, 200)
    tape.steady(200.5, 300)
    tape.fault(2, "freeze", 300, 310, hit=("node-3",))
    tape.error(301, 302)
    tape.steady(320, 400)
    tape.end(400)
    assert windows(tape) == [(10, 60), (112.2, 200), (200, 300), (320.2, 400)]
    assert windows(tape, load_end_t=320) == [(10, 60), (112.2, 200), (200, 300)]
    assert windows(tape, load_end_t=40)[0] == (10, 40)


def test_what_did_not_recover_was_never_calm() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.error(340, 341)
    tape.fault(1, "freeze", 360, None, hit=("node-3",))  # without a heal
    tape.end(400)
    assert windows(tape) == []


def test_calm_is_when_the_last_model_has_recovered() -> None:
    tape = Tape((A, B))
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    for model, served_t in ((A, 150), (B, 120)):
        tape.error(101, 102, model)
        tape.steady(served_t, 400, model)
    tape.end(400)
    assert windows(tape) == [(150.2, 400)]


def test_a_fault_without_effect_is_followed_by_nothing() -> None:
    tape = Tape()
    tape.steady(1, 400)
    tape.fault(0, "freeze", 100, None, hit=("node-3",))
    tape.add(tape.change(0, "freeze", "ineffective", 112))
    tape.end(400)
    assert windows(tape) == []
