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
    tape.lost(90, 300, "hung", streamed=False)  # the first strike after its start is on its own node
    tape.lost(180, 400, "hung", streamed=False)  # … on another
    tape.lost(60, 300, "hung", streamed=False)  # had hung for long when its own node was struck
    tape.lost(90, 95, "truncated", streamed=False, last_progress_t=95)  # its end was seen, before the strike
    tape.end(500)
    total = tape.analyse().requests.total
    assert (total.lost, total.lost_own_node) == (4, 1)


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


def test_a_node_restarted_by_the_rig_is_its_own_doing() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.unwedged(0, "node-1", 345, 350)
    tape.lost(344, 346, "truncated", last_progress_t=345)
    tape.end(500)
    assert tape.analyse().requests.total.lost_own_node == 1
