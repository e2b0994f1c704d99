"""Own node and rejoining, by literal cases."""

from __future__ import annotations

import pytest

from tests.analysis.tape import Tape


@pytest.mark.parametrize(
    ("start_t", "progress_t", "end_t", "own"),
    [
        (90.0, 98.9, 100.0, False),
        (90.0, 99.1, 100.0, True),  # a fault within a second after its last progress
        (105.0, 105.5, 140.0, True),
        (110.1, 111.0, 140.0, False),  # sent after the heal
        (90.0, None, 130.0, False),  # streamed, without progress: nothing but its start counts
        (99.5, None, 130.0, True),
    ],
)
def test_own_node_of_a_stream(start_t: float, progress_t: float | None, end_t: float, own: bool) -> None:  # noqa: FBT001
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    tape.lost(start_t, end_t, "truncated", last_progress_t=progress_t)
    tape.end(500)
    total = tape.analyse().requests.total
    assert (total.lost, total.own_node, total.lost_own_node) == (1, int(own), int(own))
    assert total.lost_not_own_node == (0 if own else 1)


@pytest.mark.parametrize(("entry", "own"), [("node-1", 1), ("node-2", 0)])
def test_only_the_faulted_node_is_own(entry: str, own: int) -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    tape.lost(105, 140, "truncated", entry=entry)
    tape.end(500)
    assert tape.analyse().requests.total.own_node == own


def test_partitions_between_peers_and_killed_runners_make_nothing_own() -> None:
    tape = Tape()
    tape.fault(0, "partition", 100, 130)
    tape.fault(1, "runner-kill", 200, 200)
    tape.lost(105, 140, "truncated")
    tape.lost(199, 201, "truncated", last_progress_t=200)
    tape.end(500)
    assert tape.analyse().requests.total.own_node == 0


def test_a_partition_that_cuts_the_clients_does() -> None:
    tape = Tape()
    tape.fault(0, "partition", 100, 130, cut=("node-1",))
    tape.lost(105, 140, "truncated")
    tape.end(500)
    assert tape.analyse().requests.total.own_node == 1


def test_not_streamed_it_may_have_progressed_until_the_first_strike() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    tape.fault(1, "freeze", 200, 210, hit=("node-2",))
    own = tape.lost(90, 300, "hung", streamed=False)  # the first strike after its start is on its own node
    tape.lost(180, 400, "hung", streamed=False)  # … on another
    just = tape.lost(70, 300, "hung", streamed=False)  # the strike came when it was silent for 30 s, and no longer
    tape.lost(69.9, 300, "hung", streamed=False)  # had hung for long when its own node was struck
    tape.lost(90, 95, "truncated", streamed=False, last_progress_t=95)  # its end was seen, before the strike
    tape.end(500)
    requests = tape.analyse().requests
    assert requests.total.lost == 5
    assert [one.id for one in requests.listed_own] == [own, just]


def test_what_had_ended_progressed_no_more() -> None:
    """Not streamed, its own node struck 28 s after its end: whenever it is counted, that is no excuse."""
    tape = Tape()
    tape.ok(70, 72, streamed=False, last_progress_t=None)
    tape.lost(70, 72, "empty", streamed=False)
    tape.lost(98, 99.5, "empty", streamed=False)  # within a second, as of a stream
    tape.lost(98, 98.9, "empty", streamed=False)
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    tape.end(500)
    total = tape.analyse().requests.total
    assert (total.lost, total.own_node, total.lost_own_node) == (3, 1, 1)


@pytest.mark.parametrize(
    ("start_t", "end_t", "own"),
    [
        (90, 98.4, 0),
        (90, 98.6, 1),  # within a second and the clocks' error of the strike
        (110.4, 112, 1),
        (110.6, 112, 0),
    ],
)
def test_what_completed_close_to_a_fault_is_the_own_nodes_too(start_t: float, end_t: float, own: int) -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",), error_s=0.5)
    tape.ok(start_t, end_t)
    tape.end(500)
    requests = tape.analyse().requests
    assert (requests.total.completed, requests.total.own_node, requests.calm.completed) == (1, own, 1 - own)


def test_the_error_of_the_clocks_widens_the_window() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",), error_s=0.5)
    tape.lost(110.4, 140, "truncated")
    tape.lost(110.6, 140, "truncated")
    tape.lost(90, 140, "truncated", last_progress_t=98.6)
    tape.lost(90, 140, "truncated", last_progress_t=98.4)
    tape.end(500)
    assert tape.analyse().requests.total.own_node == 2


def test_a_fault_without_effect_excuses_nothing() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, None, hit=("node-1",))
    tape.add(tape.change(0, "freeze", "ineffective", 112, hit=("node-1",)))
    tape.lost(105, 140, "truncated")
    tape.end(500)
    assert tape.analyse().requests.total.own_node == 0


def test_a_fault_that_could_not_be_healed_stays_in_force() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, None, hit=("node-1",))
    tape.add(tape.change(0, "freeze", "unhealed", 112, hit=("node-1",)))
    tape.fault(1, "runner-kill", 200, 200)
    tape.lost(300, 340, "truncated")
    tape.end(500)
    assert tape.analyse().requests.total.own_node == 1


def test_rejoining_until_the_event_index_has_caught_up() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    tape.view(99, "node-3", "event_index", 498)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.view(115, "node-1", "event_index", 100)
    tape.view(120, "node-1", "event_index", 499)
    tape.lost(112, 140, "empty")
    tape.lost(119, 140, "empty")
    tape.lost(121, 140, "empty")
    tape.end(500)
    total = tape.analyse().requests.total
    assert (total.own_node, total.own_rejoining, total.lost_own_rejoining, total.lost_not_own_node) == (0, 2, 2, 3)


def test_rejoining_is_bounded_by_the_settle_time() -> None:
    tape = Tape()
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.lost(349, 380, "empty")
    tape.lost(351, 380, "empty")
    tape.end(500)
    assert tape.analyse().requests.total.own_rejoining == 1


def rejoining(tape: Tape, *sent_t: float) -> list[float]:
    """Which of requests sent to node 1 at these times met a node that had not caught up."""
    for t in sent_t:
        tape.error(t, t + 0.05)
    tape.end(900)
    rejoins = tape.analyse().rejoins["node-1"]
    at = [t for t in sent_t if any(window.from_t <= t < window.to_t for window in rejoins)]
    assert tape.analyse().requests.total.own_rejoining == len(at)
    return at


def crashed(tape: Tape, number: int, struck_t: float) -> None:
    tape.fault(number, "node-crash", struck_t, struck_t + 10, hit=("node-1",))


def test_without_an_event_index_it_has_caught_up_when_it_answers() -> None:
    tape = Tape()
    tape.view(1, "node-1", "event_index", None)
    tape.reachable(90, "node-2", reachable=True)  # one that was never restarted
    crashed(tape, 0, 100)
    tape.reachable(105, "node-1", reachable=False)
    tape.reachable(112, "node-2", reachable=True)
    tape.reachable(113, "node-1", reachable=False)
    tape.reachable(118, "node-1", reachable=True)
    assert rejoining(tape, 98, 117, 119) == [117]


def test_with_an_event_index_to_answer_is_not_to_have_caught_up() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    crashed(tape, 0, 100)
    tape.reachable(112, "node-1", reachable=True)
    tape.view(120, "node-1", "event_index", 500)
    assert rejoining(tape, 119, 120) == [119]


def test_a_node_that_does_not_answer_is_no_measure_of_having_caught_up() -> None:
    tape = Tape()
    tape.view(50, "node-2", "event_index", 100)
    tape.view(50, "node-3", "event_index", 50)
    tape.reachable(60, "node-3", reachable=False)
    tape.reachable(70, "node-2", reachable=False)
    tape.reachable(80, "node-2", reachable=True)  # answers again
    tape.view(99, "node-2", "event_index", 500)
    crashed(tape, 0, 100)
    tape.view(115, "node-1", "event_index", 60)
    tape.view(120, "node-1", "event_index", 500)
    assert rejoining(tape, 116, 121) == [116]


def test_a_node_alone_has_nobody_to_catch_up_with() -> None:
    tape = Tape()
    crashed(tape, 0, 100)
    tape.view(115, "node-1", "event_index", 0)
    assert rejoining(tape, 114, 116) == [114]


def test_two_nodes_that_restarted_are_no_measure_for_each_other() -> None:
    tape = Tape()
    tape.view(99, "node-3", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1", "node-2"))
    tape.view(111, "node-2", "event_index", 3)
    tape.view(112, "node-1", "event_index", 5)
    tape.view(120, "node-1", "event_index", 500)
    assert rejoining(tape, 115, 121) == [115]


def test_a_node_that_has_caught_up_is_a_measure_again() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-2",))
    tape.view(111, "node-1", "event_index", 500)
    tape.view(112, "node-2", "event_index", 500)
    crashed(tape, 1, 200)
    tape.view(212, "node-1", "event_index", 7)
    tape.view(220, "node-1", "event_index", 500)
    assert rejoining(tape, 213, 221) == [213]


def test_what_was_seen_before_the_restart_is_of_the_old_process() -> None:
    tape = Tape()
    tape.view(98, "node-2", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",), late_s=-2)  # its clock is two seconds ahead
    tape.view(109, "node-1", "event_index", 501)
    tape.view(115, "node-1", "event_index", 7)
    assert rejoining(tape, 116) == [116]


def test_a_node_restarted_again_before_it_had_caught_up_begins_anew() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    crashed(tape, 0, 100)
    tape.view(111, "node-1", "event_index", 3)
    crashed(tape, 1, 150)
    tape.view(165, "node-1", "event_index", 500)
    assert rejoining(tape, 140, 155, 164, 166, 300) == [140, 164]
    assert [(w.from_t, w.to_t) for w in tape.analyse().rejoins["node-1"]] == [(110, 150), (160, 165)]


def test_a_node_restarted_by_the_rig_has_to_catch_up_too() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    crashed(tape, 0, 100)
    tape.unwedged(0, "node-1", 200, 205)
    tape.view(220, "node-1", "event_index", 500)
    tape.error(202, 202.1)
    assert rejoining(tape, 190, 219, 221) == [190, 219]
    assert tape.analyse().requests.total.own_node == 1


def test_a_freeze_restarts_nothing() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    tape.end(500)
    assert tape.analyse().rejoins == {}


def test_a_node_restarted_by_the_rig_is_its_own_doing() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.unwedged(0, "node-1", 345, 350)
    tape.lost(344, 346, "truncated", last_progress_t=345)
    tape.end(500)
    assert tape.analyse().requests.total.lost_own_node == 1
