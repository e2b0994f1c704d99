"""How long restarted nodes may show an old state."""

from __future__ import annotations

import pytest

from rig.analysis.recovery.faults import Window
from rig.analysis.symptoms.stale import growing, too_long


def after(*took_s: float) -> dict[str, list[Window]]:
    """A restart every hundred seconds."""
    return {"n": [Window(100.0 * number, 100.0 * number + one_s) for number, one_s in enumerate(took_s, 1)]}


@pytest.mark.parametrize(("pace", "most_s"), [(1.0, 60.0), (4.0, 15.0), (60.0, 6.0)])
def test_longer_than_a_minute_of_the_target(pace: float, most_s: float) -> None:
    assert too_long(after(most_s - 0.1), pace, 1000.0) == []
    assert too_long(after(1.0, most_s + 0.1), pace, 1000.0) == [
        f"n restarted at 200.0 s had caught up after {most_s + 0.1:.1f} s"
    ]


def test_a_run_that_ends_before_says_nothing_of_it() -> None:
    assert too_long(after(240.0), 1.0, 150.0) == []
    assert len(too_long(after(240.0), 1.0, 170.0)) == 1


def test_a_node_that_never_caught_up_took_too_long_whenever_it_was_restarted() -> None:
    for tenth in range(1000):
        begun_t = 100 + tenth / 10
        assert too_long({"n": [Window(begun_t, begun_t + 240.0)]}, 1.0, 1000.0), begun_t


def test_twice_as_long_in_the_second_half() -> None:
    assert growing(after(6, 6, 6, 13, 13, 13), 1.0, 1000.0) == (
        "catching up after a restart took 6.0 s in the first half of the run, 13.0 s in the second"
    )
    assert growing(after(6, 6, 6, 11.5, 11.5, 11.5), 1.0, 1000.0) is None  # not twice
    assert growing(after(1, 1, 1, 4, 4, 4), 1.0, 1000.0) is None  # not noticeably
    assert growing(after(30, 30, 30, 40, 40, 40), 1.0, 1000.0) is None
    assert growing(after(6, 6, 13, 13, 13), 1.0, 1000.0) is None  # too few
    assert growing(after(6, 6, 6, 13, 13, 13, 13), 1.0, 1000.0) is not None
    assert growing(after(6, 6, 6, 6, 13, 13, 13), 1.0, 1000.0) is not None
    assert growing(after(6, 6, 13, 6, 13, 13, 6), 1.0, 1000.0) is not None
    assert growing(after(6, 6, 6, 13, 13, 13), 1.0, 605.0) is None  # the last one had not ended


@pytest.mark.parametrize(("pace", "least_s"), [(1.0, 5.0), (2.5, 2.0), (50.0, 1.0)])
def test_noticeably_is_some_seconds_of_the_target(pace: float, least_s: float) -> None:
    def grown(by_s: float) -> dict[str, list[Window]]:
        return after(0.5, 0.5, 0.5, 0.5 + by_s, 0.5 + by_s, 0.5 + by_s)

    assert growing(grown(least_s - 0.1), pace, 1000.0) is None
    assert growing(grown(least_s + 0.1), pace, 1000.0) is not None


def test_restarts_of_all_nodes_are_put_together_by_their_times() -> None:
    early, late = after(6, 6, 6)["n"], [Window(500.0, 513.0), Window(600.0, 613.0), Window(700.0, 713.0)]
    assert growing({"a": late, "b": early}, 1.0, 1000.0) is not None
    assert growing({"a": [*early[:2], late[0]], "b": [*early[2:], *late[1:]]}, 1.0, 1000.0) is not None
