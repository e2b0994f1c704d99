"""When, how long after, and what follows from that of a rule."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rig.analysis.moments import Elapsed, Span, between
from rig.targets.exo.keeper.chronicle import Chronicle, Entry
from rig.targets.exo.keeper.rules import Held, Rules


def test_what_two_say_together() -> None:
    assert Span(1, 5).within(Span(3, 9)) == Span(3, 5)
    assert Span(1, 5).within(Span()) == Span(1, 5)
    assert Span(1, 5).within(Span(5, 9)) == Span(5, 5)
    assert Span(1, 5).within(Span(6, 9)) == Span(1, 5)  # they contradict each other


def test_spans_in_words() -> None:
    assert Span(1, 5).text() == "at 1.0 to 5.0 s"
    assert Span(by_t=5).text() == "by 5.0 s"
    assert Span(1).text() == "at a time not known"


def test_how_long_is_between_two_moments() -> None:
    assert between(Span(10, 11), Span(15, 18)) == Elapsed(4, 8)
    assert between(Span(10, 16), Span(15, 18)) == Elapsed(0, 8)
    assert between(Span(by_t=11), Span(15, 18)) == Elapsed(4, math.inf)
    assert between(Span(10, 11), Span(by_t=18)) == Elapsed(0, 8)
    assert between(Span(10), Span(15, 18)) == Elapsed(0, 8)
    assert between(Span(10, 11), Span(4, 5)) == Elapsed(0, 0)  # by clocks that disagree


def test_durations_in_words() -> None:
    assert Elapsed(4, 8).text() == "4.00 to 8.00 s"
    assert Elapsed(4, math.inf).text() == "at least 4.00 s"


@pytest.mark.parametrize(
    ("took", "held"),
    [
        (Elapsed(0, 8.9), "broken"),  # a tenth early is the target's timer
        (Elapsed(0, 9.1), "undecided"),
        (Elapsed(6.9, 12), "undecided"),
        (Elapsed(7.1, 12), "kept"),
    ],
)
def test_at_least_ten_seconds(took: Elapsed, held: Held) -> None:
    assert Rules().at_least(took, 10.0) == held
    halved = Elapsed(took.at_least_s / 2, took.at_most_s / 2)
    assert Rules(2.0).at_least(halved, Rules(2.0).scaled(10.0)) == held


@pytest.mark.parametrize(
    ("took", "held"),
    [
        (Elapsed(10.2, 12), "undecided"),  # three tenths for a busy machine
        (Elapsed(10.4, 12), "broken"),
        (Elapsed(0, 10.2), "kept"),
        (Elapsed(0, 10.4), "undecided"),
        (Elapsed(0, 99, 10.2), "kept"),  # by the session's own clock
        (Elapsed(0, 99, 10.4), "undecided"),
    ],
)
def test_promptly_within_ten_seconds(took: Elapsed, held: Held) -> None:
    assert Rules().promptly(took, 10.0) == held
    assert Rules(2.0).promptly(took, 20.0) == held


def test_the_backoff_grows_to_a_minute() -> None:
    assert [Rules().backoff_s(failures) for failures in range(1, 7)] == [10, 20, 40, 60, 60, 60]
    assert Rules(2.0).backoff_s(2) == 10
    assert Rules(4.0).report_s == 0.25


def entry(order: int, after_t: float, by_t: float, **reports: int) -> Entry:
    return Entry(order, "x", {}, Span(after_t, by_t), reports)


def chronicle(end: Entry, **more: Any) -> Chronicle:
    given: dict[str, Any] = {"node_id": "a", "exact": True, "period_s": 1.0, "begun": Span(0.0, 0.0)}
    return Chronicle(node="n", session="s", entries=[], end=end, **(given | more))


def elapsed(first: Entry | None, second: Entry, end: Entry, **more: Any) -> tuple[float, float, float]:
    took = chronicle(end, **more).elapsed(first, second)
    return took.at_least_s, took.at_most_s, took.likely_most_s


LONG = entry(99, 100, 100, a=100)  # a report a second
FIRST, SECOND = entry(1, 10, 20, a=10), entry(2, 12, 40, a=30)


def test_the_masters_own_reports_are_a_clock() -> None:
    assert elapsed(FIRST, SECOND, LONG) == (19.0, 30.0, 31.5)
    assert elapsed(None, SECOND, LONG) == (29.0, 40.0, 46.5)
    assert elapsed(FIRST, entry(2, 35, 40, a=12), LONG) == (15.0, 30.0, 4.5)  # the clock stood still: a frozen master
    assert elapsed(FIRST, entry(2, 12, 20, a=60), LONG)[0] == 10.0  # no longer than by the run's clock


def test_without_reports_of_its_own_there_is_the_runs_clock() -> None:
    assert elapsed(FIRST, SECOND, LONG, exact=False) == (0.0, 30.0, math.inf)
    assert elapsed(FIRST, SECOND, LONG, node_id=None) == (0.0, 30.0, math.inf)
    assert elapsed(FIRST, SECOND, LONG, node_id="b") == (0.0, 30.0, math.inf)
    assert elapsed(entry(1, 10, 20), SECOND, LONG)[0] == 29.0  # it had not reported yet: 30 reports since


def test_how_long_a_report_stands_for_is_measured_where_that_can_be() -> None:
    assert elapsed(FIRST, SECOND, entry(99, 50, 50, a=100)) == (9.5, 30.0, 31.5)  # half a second each
    assert elapsed(FIRST, SECOND, entry(99, 300, 300, a=100)) == (19.0, 30.0, 63.0)  # three
    assert elapsed(FIRST, SECOND, entry(99, 5, 5, a=19)) == (19.0, 30.0, 31.5)  # too few to tell
    assert elapsed(FIRST, SECOND, entry(99, 5, 5, a=20))[0] == pytest.approx(4.75)
    assert elapsed(FIRST, SECOND, LONG, begun=Span(by_t=0.0)) == (19.0, 30.0, 31.5)
    assert elapsed(FIRST, SECOND, LONG, period_s=0.5) == (9.5, 30.0, 21.0)


def test_how_often_each_node_reported_in_between() -> None:
    second = entry(2, 12, 40, a=30, b=5)
    assert chronicle(LONG).reported(entry(1, 10, 20, a=10), second) == {"a": 20, "b": 5}


def test_only_a_text_is_a_name() -> None:
    given = Entry(1, "x", {"instance": "i", "error": None, "n": 7}, Span())
    assert (given.get("instance"), given.get("error"), given.get("n"), given.get("other")) == ("i", None, None, None)
