"""What the rig's own unwedging did to requests, apart from the fault before it."""

from __future__ import annotations

import pytest

from rig.analysis.analyse import Analysis
from tests.analysis.tape import A, B, Tape


def wedged() -> Tape:
    """A model that serves nothing from a runner kill at 100 s until the rig has restarted node-3, at 345 to 350 s."""
    tape = Tape(models=(A, B))
    tape.steady(60, 100, entry="node-2")
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(101, 101.1, entry="node-2")
    tape.unwedged(0, "node-3", 345, 350)
    tape.view(351, "node-3", "event_index", 1)
    tape.steady(365, 500, entry="node-2")
    tape.end(600)
    return tape


def whose(analysis: Analysis) -> dict[str, tuple[int | None, int | None]]:
    return {lost.id: (lost.fault, lost.unwedging) for lost in analysis.requests.listed}


@pytest.mark.parametrize(
    ("start_t", "progress_t", "end_t", "own"),
    [
        (200, None, 320, False),  # sent into the wedge, which ended it
        (344, None, 464, False),  # sent into it, and then cut by the restart: it had stopped before
        (320, 344.4, 464, False),
        (344.6, None, 464, True),  # the restart was under way
        (347, None, 467, True),
        (360, None, 480, True),
        (380, None, 500, True),  # it did not come back by itself: that goes on until the next strike
    ],
)
def test_what_stopped_before_the_restart_is_the_faults(
    start_t: float, progress_t: float | None, end_t: float, *, own: bool
) -> None:
    tape = wedged()
    name = tape.lost(start_t, end_t, "hung", entry="node-2", last_progress_t=progress_t)
    assert whose(tape.analyse())[name] == ((None, 0) if own else (0, None))


def test_a_model_that_had_recovered_is_the_unwedgings_until_it_serves_again() -> None:
    tape = wedged()
    tape.steady(60, 345, model=B, entry="node-2")
    tape.error(110, 110.5, model=B, entry="node-2")
    in_flight = tape.lost(343, 463, "hung", model=B, entry="node-2", last_progress_t=343.5)
    within = tape.lost(355, 475, "hung", model=B, entry="node-2")
    tape.steady(370, 500, model=B, entry="node-2")
    later = tape.lost(430, 550, "hung", model=B, entry="node-2")
    found = whose(tape.analyse())
    assert {one.model: (one.from_t, one.restored_t) for one in tape.analyse().rescues}[B] == (345, pytest.approx(370.2))
    assert (found[in_flight], found[within], found[later]) == ((None, 0), (None, 0), (None, None))


def test_the_next_strike_ends_the_reach_of_an_unwedging() -> None:
    tape = wedged()
    tape.fault(1, "freeze", 480, 490, hit=("node-3",))
    before = tape.lost(470, 590, "hung", entry="node-2", last_progress_t=479.4)
    after = tape.lost(470, 591, "hung", entry="node-2", last_progress_t=479.6)
    silent = tape.lost(470, 592, "hung", entry="node-2", streamed=False)  # shows no progress: taken to have gone on
    found = whose(tape.analyse())
    assert (found[before], found[after], found[silent]) == ((None, 0), (1, None), (1, None))


def test_what_was_exposed_to_an_unwedging_is_not_calm() -> None:
    tape = wedged()
    tape.ok(344, 346, entry="node-2")  # in flight at the restart
    tape.ok(352, 353, model=B, entry="node-2")  # served again: from then on it is calm
    tape.ok(354, 355, model=B, entry="node-2")
    analysis = tape.analyse()
    assert analysis.requests.by_unwedging[0].exposed == 3  # with the first to be served again
    without = wedged()
    assert analysis.requests.calm.started == without.analyse().requests.calm.started + 1


def test_an_unwedging_after_a_fault_without_effect_is_told_all_the_same() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.add(tape.change(0, "freeze", "ineffective", 120, hit=("node-3",)))
    tape.unwedged(0, "node-3", 345, 350)
    name = tape.lost(347, 467, "hung", entry="node-2")
    tape.steady(365, 500, entry="node-2")
    tape.end(600)
    analysis = tape.analyse()
    assert analysis.recoveries == []
    assert whose(analysis)[name] == (None, 0)
    assert analysis.requests.by_unwedging[0].lost == 1


def test_an_unaffected_fault_owns_nothing_after_its_heal_even_if_its_node_was_restarted_long_after() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 106, hit=("node-1",))
    tape.steady(60, 300, entry="node-2")
    tape.fault(1, "node-crash", 300, 310, hit=("node-1",))
    late = tape.lost(250, 370, "hung", entry="node-2", last_progress_t=299)
    tape.steady(312, 400, entry="node-2")
    tape.end(400)
    analysis = tape.analyse()
    assert analysis.recoveries[0].recovery_class == "unaffected"
    assert analysis.recoveries[0].span_end_t == 106
    assert whose(analysis)[late] == (1, None)


def test_what_met_a_node_that_an_unaffected_crash_had_restarted_is_the_crashs() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.view(111, "node-1", "event_index", 3)
    tape.view(130, "node-1", "event_index", 600)
    tape.steady(60, 300, entry="node-2")
    through = tape.lost(115, 116, "empty", entry="node-1")
    beside = tape.lost(115, 116.5, "empty", entry="node-3")
    tape.end(300)
    found = whose(tape.analyse())
    assert found[through] == (0, None)
    assert tape.recovery().recovery_class != "unaffected"  # the other one is the model's own failure
    assert found[beside] == (0, None)
