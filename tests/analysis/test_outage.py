"""The rule for one fault and one model, in literal trials."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from rig.analysis.recovery.outage import Outage, Success, Trials
from rig.analysis.recovery import outage as rule


class Trial(NamedTuple):
    started_t: float
    ended_t: float
    failed_t: float | None = None
    counts: bool = True

    @property
    def success(self) -> Success:
        return Success(self.started_t, self.ended_t)


def table(trials: list[Trial]) -> Trials:
    started_t, ended_t, failed_t, counts = zip(*trials, strict=True) if trials else ((), (), (), ())
    return Trials(
        np.array(started_t, dtype=np.float64),
        np.array(ended_t, dtype=np.float64),
        np.array(failed_t, dtype=np.float64),
        np.array(counts, dtype=np.bool_),
    )


def outage(trials: list[Trial], **given: float) -> Outage:
    return rule.outage(table(trials), **given)


def serves(trials: list[Trial], **given: float) -> bool:
    return rule.serves(table(trials), **given)


def silence(trials: list[Trial], from_t: float, to_t: float) -> float:
    return rule.silence(table(trials).ended_t, from_t, to_t)


def resolution(trials: list[Trial], from_t: float, to_t: float) -> float:
    return rule.resolution(table(trials), from_t, to_t)


def ok(start_t: float, end_t: float) -> Trial:
    return Trial(start_t, end_t)


def bad(start_t: float, end_t: float, failed_t: float | None = None, *, counts: bool = True) -> Trial:
    return Trial(start_t, end_t, end_t if failed_t is None else failed_t, counts)


def steady(from_t: float, to_t: float) -> list[Trial]:
    return [ok(float(t), t + 0.2) for t in range(int(from_t), int(to_t))]


def test_serves_again_after_errors() -> None:
    trials = [bad(101, 101.1), bad(110, 110.1), *steady(120, 200)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert found.served == trials[2].success
    assert found.sustained == trials[2].success
    assert (found.failures, found.late_failures, found.quiet) == (2, 0, False)
    assert found.silence_s == pytest.approx(20.2)
    assert found.resolution_s == pytest.approx(10.0)


def test_a_success_that_was_sent_before_the_heal_is_none() -> None:
    trials = [bad(101, 101.1), ok(104, 106), *steady(120, 200)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert found.served == trials[2].success


def test_what_serves_for_good_before_the_heal_is_restored_by_then() -> None:
    trials = [bad(101, 101.1), ok(101, 101.2), bad(102, 102.4), ok(102, 103), *steady(103, 160)]
    found = outage(trials, strike_t=100, heal_t=120, until_t=160, quiet_s=15)
    assert found.restored_t == 103
    assert found.served is not None
    assert found.served.started_t == 120
    assert found.sustained == found.served


def test_everybody_is_reset_three_seconds_after_the_first_success() -> None:
    trials = [bad(101, 101.1), ok(110, 110.2), ok(111, 111.2), bad(110.5, 113.2), bad(113, 113.3), *steady(125, 200)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert found.served == trials[1].success
    assert found.sustained is not None
    assert found.sustained.started_t == 125


@pytest.mark.parametrize(("gap_s", "sustained_at"), [(14.9, 140), (15.1, 120)])
def test_quiet_for_exactly_the_sustained_time(gap_s: float, sustained_at: float) -> None:
    last = ok(140, 140.2)
    trials = [bad(101, 101.1), ok(120, 120.2), ok(121, 121.2), bad(130, 120.2 + gap_s), last, ok(141, 141.2)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert found.sustained is not None
    assert found.sustained.started_t == sustained_at
    assert found.late_failures == (1 if sustained_at == 120 else 0)


def test_nothing_is_sustained_where_nothing_more_was_asked() -> None:
    found = outage([bad(101, 101.1), ok(110, 110.2)], strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert found.served is not None
    assert found.sustained is None


def test_a_success_that_is_not_followed_up_in_time_proves_nothing() -> None:
    trials = [bad(101, 101.1), ok(110, 110.2), ok(150, 150.2), ok(151, 151.2)]
    assert outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15).sustained == trials[2].success


def test_nothing_is_sustained_before_it_was_watched_long_enough() -> None:
    trials = [bad(101, 101.1), *steady(110, 124)]
    assert outage(trials, strike_t=100, heal_t=105, until_t=125, quiet_s=15).sustained is None
    assert outage(trials, strike_t=100, heal_t=105, until_t=125.3, quiet_s=15).sustained == trials[1].success


def test_quiet_takes_a_success_after_the_heal() -> None:
    assert outage(steady(100, 130), strike_t=100, heal_t=105, until_t=130, quiet_s=15).quiet
    assert not outage(steady(100, 104), strike_t=100, heal_t=105, until_t=130, quiet_s=15).quiet
    assert not outage([], strike_t=100, heal_t=105, until_t=130, quiet_s=15).quiet
    assert not outage(steady(100, 130), strike_t=100, heal_t=105, until_t=119, quiet_s=15).quiet


def test_a_failure_that_comes_late_makes_it_affected_all_the_same() -> None:
    trials = [*steady(100, 141), bad(140, 141.5), *steady(160, 200)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=200, quiet_s=15)
    assert not found.quiet
    assert found.sustained is not None
    assert found.sustained.started_t == 160


def test_failures_that_do_not_count_or_came_before_are_none() -> None:
    trials = [bad(98, 99.9), bad(101, 101.1, counts=False), *steady(101, 130)]
    assert outage(trials, strike_t=100, heal_t=100, until_t=130, quiet_s=15).quiet


def test_nothing_after_the_next_strike_is_looked_at() -> None:
    trials = [bad(101, 101.1), *steady(119, 200)]
    found = outage(trials, strike_t=100, heal_t=105, until_t=110, quiet_s=15)
    assert found.served is None
    assert found.sustained is None
    assert found.silence_s == pytest.approx(10.0)


def test_live_decision_needs_success_and_quiet() -> None:
    trials = [bad(101, 101.1), *steady(110, 126)]
    assert not serves(trials, since_t=100, heal_t=105, now=125.1, quiet_s=15)
    assert serves(trials, since_t=100, heal_t=105, now=125.3, quiet_s=15)


def test_live_decision_without_any_request_is_no() -> None:
    assert not serves([], since_t=100, heal_t=105, now=500, quiet_s=15)
    assert not serves(steady(106, 110), since_t=100, heal_t=105, now=130, quiet_s=15)  # served once, then nobody asked


def test_live_decision_without_a_failure_counts_from_the_heal() -> None:
    trials = steady(100, 121)
    assert not serves(trials, since_t=100, heal_t=105, now=119.9, quiet_s=15)
    assert serves(trials, since_t=100, heal_t=105, now=120.1, quiet_s=15)


def test_silence_looks_at_the_edges_too() -> None:
    assert silence([ok(0, 5), ok(0, 6)], 0, 20) == 14
    assert silence([], 0, 20) == 20
    assert silence([ok(0, 25)], 0, 20) == 20


def test_resolution_is_the_largest_gap_between_attempts() -> None:
    assert resolution([ok(1, 2), bad(4, 5), ok(5, 6)], 0, 6) == 3
    assert resolution([], 0, 6) == 6


def test_a_model_that_was_not_touched_is_watched_for_the_quiet_time_after_the_heal() -> None:
    def watched(trials: list[Trial], until_t: float) -> tuple[float, float]:
        found = outage(trials, strike_t=100, heal_t=105, until_t=until_t, quiet_s=15)
        return found.silence_s, found.resolution_s

    assert watched(steady(100, 110), 200) == (pytest.approx(120 - 109.2), 1.0)
    assert watched([*steady(100, 110), ok(118, 118.2), ok(150, 150.2)], 200) == (pytest.approx(9.0), 9.0)
    assert watched(steady(100, 110), 115) == (pytest.approx(115 - 109.2), 1.0)
    assert watched([*steady(100, 104), ok(130, 131)], 200) == (pytest.approx(131 - 103.2), 25.0)


def test_live_decision_counts_from_the_latest_failure() -> None:
    trials = [bad(101, 101.1), *steady(110, 120), bad(119.5, 120), *steady(120, 150)]
    assert not serves(trials, since_t=100, heal_t=105, now=134, quiet_s=15)
    assert serves(trials, since_t=100, heal_t=105, now=135.3, quiet_s=15)


def test_live_decision_takes_no_failure_for_a_success() -> None:
    hung = [bad(106.5, 108, 107), bad(106.6, 125, 107)]
    assert not serves([ok(106, 106.2), *hung], since_t=100, heal_t=105, now=130, quiet_s=15)


def test_live_decision_needs_one_recent_success() -> None:
    assert serves([ok(106, 106.2), ok(124, 124.2)], since_t=100, heal_t=105, now=130, quiet_s=15)
    assert not serves([ok(104, 124.2)], since_t=100, heal_t=105, now=130, quiet_s=15)  # sent before the heal


def test_resolution_is_not_told_from_what_was_not_asked_at_the_end() -> None:
    assert resolution([ok(1, 2)], 0, 6) == 1


def freeze(trials: list[Trial], patience_s: float = 15) -> Outage:
    return outage(trials, strike_t=100, heal_t=140, until_t=300, quiet_s=15, patience_s=patience_s)


def test_a_silence_in_which_nothing_failed_is_an_outage_until_something_was_completed() -> None:
    waiting = [ok(99, 141), ok(99.5, 142)]
    found = freeze([*steady(80, 100), *waiting, *steady(143, 300)])
    assert (found.quiet, found.failures) == (False, 0)
    assert found.restored_t == 141  # somebody was served, although asked before the heal
    assert (found.served, found.sustained) == (Success(143, 143.2), Success(143, 143.2))
    assert found.silence_s == 41


def test_a_silence_that_is_not_long_or_that_nobody_waited_in_is_none() -> None:
    waiting = [*steady(80, 100), ok(99, 141), *steady(143, 300)]
    assert freeze(waiting, patience_s=41).quiet
    assert not freeze(waiting, patience_s=40.9).quiet
    assert freeze([*steady(80, 100), *steady(143, 300)]).quiet  # nothing was asked


def test_the_longest_wait_is_for_what_was_completed_in_the_end() -> None:
    good = table([ok(0, 1), ok(2, 10), ok(3, 11), ok(20, 22)])
    assert rule.longest_wait(good, 0, 30) == (8, 10)
    assert rule.longest_wait(good, 5, 30) == (5, 10)
    assert rule.longest_wait(good, 10, 30) == (2, 22)
    assert rule.longest_wait(good, 0, 9.9) == (1, 1)
    assert rule.longest_wait(good, 22, 30) == (0, 22)
