"""Recoveries as a whole journal tells them, in the awkward cases, and the live decision."""

from __future__ import annotations

import pytest

from rig.analysis.analyse import analyse
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.settings import settings_of
from rig.journal.records import FaultKind
from tests.analysis.generate import Shape, info_of, records_of
from tests.analysis.tape import A, B, Tape


def test_a_master_that_resets_everybody_three_seconds_after_the_first_success() -> None:
    tape = Tape()
    tape.steady(80, 100)
    tape.fault(0, "freeze", 100, 120, hit=("node-3",))
    tape.error(101, 101.1)
    tape.steady(121, 124)
    tape.error(123.5, 124.2)  # the resumed master resets its peers
    tape.error(130, 130.1)
    tape.steady(140, 200)
    tape.end(200)
    found = tape.recovery()
    assert found.time_to_serve_s == pytest.approx(1.2)
    assert found.serve_from_strike_s == pytest.approx(21.2)
    assert found.sustained_s == pytest.approx(20.2)
    assert found.outage_s == pytest.approx(40.2)
    assert found.failures == 3


def test_a_second_instance_that_serves_the_probe_is_no_survivor() -> None:
    tape = Tape()
    tape.instances(1, {"i1": (A, "id-a"), "i2": (A, "id-b")})
    tape.ok(98, 98.5, response_id="before")
    tape.served(99, "before", "i1")
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    tape.ok(103, 103.2, source="probe", response_id="after")
    tape.served(110, "after", "i2")
    tape.steady(104, 150)
    tape.end(150)
    found = tape.recovery()
    assert (found.recovery_class, found.instance_before, found.instance_after) == ("replaced", "i1", "i2")


def test_two_instances_and_no_word_on_which_served_is_unknown() -> None:
    tape = Tape()
    tape.instances(1, {"i1": (A, "id-a")})
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    tape.instances(102, {"i1": (A, "id-a"), "i2": (A, "id-b")})
    tape.steady(104, 150)
    tape.end(150)
    assert tape.recovery().recovery_class == "unknown"


def test_the_old_instance_still_listed_for_41_seconds_did_not_survive() -> None:
    tape = Tape()
    tape.view(1, "node-1", "node_id", "id-a")
    tape.instances(1, {"old": (A, "id-a")})
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.error(101, 101.1, entry="node-2")
    tape.instances(112, {"old": (A, "id-a"), "new": (A, "id-b")})
    tape.steady(115, 200, entry="node-2")
    tape.instances(141, {"new": (A, "id-b")})
    tape.end(200)
    found = tape.recovery()
    assert (found.recovery_class, found.instance_before, found.instance_after) == ("replaced", "old", "new")


def test_a_model_that_the_fault_did_not_touch_is_in_no_median() -> None:
    tape = Tape(models=(A, B))
    tape.steady(80, 200, model=B, entry="node-2")
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.error(101, 101.1, model=A, entry="node-2")
    tape.error(102, 102.1, model=B, entry="node-1")  # its own node
    tape.error(110.5, 110.6, model=B, entry="node-1")  # started again, but not yet caught up
    tape.view(90, "node-1", "event_index", 400)
    tape.view(99, "node-2", "event_index", 500)
    tape.view(111, "node-1", "event_index", 3)
    tape.view(113, "node-1", "event_index", 510)
    tape.steady(120, 200, model=A, entry="node-2")
    tape.end(200)
    analysis = tape.analyse()
    classes = {recovery.model: recovery.recovery_class for recovery in analysis.recoveries}
    assert classes == {A: "unknown", B: "unaffected"}
    row = next(row for row in analysis.kinds if row.kind == "node-crash")
    assert row.classes["unaffected"] == 1
    assert row.times["affected"].time_to_serve.count == 1


def test_a_node_that_caught_up_and_still_fails_touches_the_model() -> None:
    tape = Tape()
    tape.steady(80, 200, entry="node-2")
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.view(99, "node-2", "event_index", 500)
    tape.view(113, "node-1", "event_index", 510)
    tape.error(114, 114.1, entry="node-1")
    tape.end(200)
    assert tape.recovery().recovery_class != "unaffected"


def test_where_every_entry_node_is_hit_nothing_is_excused() -> None:
    tape = Tape(inventory={"name": "one", "nodes": {"node-1": {}}})
    tape.steady(80, 99)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.error(101, 101.1)
    tape.steady(120, 200)
    tape.end(200)
    assert tape.recovery().time_to_serve_s == pytest.approx(10.2)
    assert tape.recovery().failures == 1


def test_a_probe_that_hangs_right_after_the_strike_is_a_failure_although_load_is_served_later() -> None:
    tape = Tape()
    tape.fault(0, "master-crash", 100, 100.5, hit=("node-3",))
    tape.lost(101, 131, "hung", source="probe")
    tape.steady(104, 200)
    tape.end(200)
    assert tape.recovery().failures == 1


def test_a_queue_of_probes_does_not_make_a_serving_model_look_dead() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    for start_t in range(102, 130):  # every probe waits behind the others until its limit
        tape.lost(float(start_t), start_t + 30.0, "hung", source="probe")
    tape.steady(103.5, 200)
    tape.end(200)
    found = tape.recovery()
    assert found.time_to_serve_s == pytest.approx(3.7)
    assert found.sustained_s == pytest.approx(3.7)
    assert found.silence_s < 4


def test_probes_that_hang_while_no_load_is_served_are_failures() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.ok(100.5, 101)
    for start_t in range(102, 130):
        tape.lost(float(start_t), start_t + 30.0, "hung", source="probe")
    tape.steady(150, 200)
    tape.end(200)
    assert tape.recovery().sustained_s == pytest.approx(50.2)


def test_a_fault_in_the_last_minute_is_censored() -> None:
    tape = Tape()
    tape.steady(80, 100)
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 101.1)
    tape.error(118, 118.1)
    tape.end(120)
    found = tape.recovery()
    assert (found.recovery_class, found.at_least_s, found.time_to_serve_s) == ("censored", 10.0, None)


def test_another_fault_that_comes_first_censors() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 101.1)
    tape.steady(112, 118)
    tape.fault(1, "runner-kill", 118, 118)
    tape.error(118.5, 119)
    tape.steady(125, 200)
    tape.end(200)
    first, second = tape.recovery(0), tape.recovery(1)
    assert (first.recovery_class, first.at_least_s) == ("censored", 8.0)
    assert first.time_to_serve_s == pytest.approx(2.2)
    assert second.time_to_serve_s == pytest.approx(7.2)


def test_a_fault_without_effect_neither_recovers_nor_censors() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    tape.add(tape.change(1, "freeze", "struck", 105, hit=("node-3",)))
    tape.add(tape.change(1, "freeze", "ineffective", 106, hit=("node-3",)))
    tape.steady(110, 200)
    tape.end(200)
    found = tape.recoveries()
    assert list(found) == [(0, A)]
    assert found[0, A].sustained_s == pytest.approx(10.2)


def test_unwedging_is_no_recovery_and_its_cost_is_kept_apart() -> None:
    tape = Tape(models=(A, B))
    tape.steady(80, 600, model=B, entry="node-2")
    tape.instances(1, {"i": (A, "id-a")})
    tape.fault(0, "runner-kill", 100, 100)
    for start_t in range(101, 350, 5):
        tape.error(float(start_t), start_t + 0.1)
    tape.unwedged(0, "node-3", 345, 350)
    tape.steady(360, 600)
    tape.end(600)
    found = tape.recovery(0, A)
    assert (found.recovery_class, found.unwedged, found.group) == ("not recovered", True, "survived")
    assert found.at_least_s == pytest.approx(245)
    assert found.unwedge_cost_s == pytest.approx(15.2)
    assert found.time_to_serve_s is None
    assert tape.recovery(0, B).recovery_class == "unaffected"
    row = next(row for row in tape.analyse().kinds if row.kind == "runner-kill")
    median = row.times["survived"].sustained.median
    assert median is not None
    assert median.above


def test_unwedging_before_the_settle_time_is_over_is_no_recovery_either() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(101, 101.1)
    tape.unwedged(0, "node-3", 150, 155)
    tape.steady(160, 300)
    tape.end(300)
    assert tape.recovery().recovery_class == "not recovered"


def test_what_did_not_recover_counts_in_both_groups_where_the_instance_is_not_known() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(101, 101.1)
    tape.end(400)
    assert tape.recovery().group is None
    row = next(row for row in tape.analyse().kinds if row.kind == "runner-kill")
    assert [row.times[name].sustained.count for name in ("survived", "replaced", "affected")] == [1, 1, 1]


def test_the_settle_time_makes_it_not_recovered_without_unwedging() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    for start_t in range(101, 400, 5):
        tape.error(float(start_t), start_t + 0.1)
    tape.end(400)
    assert tape.recovery().recovery_class == "not recovered"


def test_heal_of_a_killed_runner_is_its_strike() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 103)
    tape.error(100.5, 101)
    tape.steady(106, 200)
    tape.end(200)
    assert tape.recovery().time_to_serve_s == pytest.approx(6.2)


def test_silence_is_through_any_node_load_and_probes_together() -> None:
    tape = Tape()
    tape.steady(90, 100)
    tape.fault(0, "freeze", 100, 120, hit=("node-3",))
    tape.error(101, 101.1)
    tape.ok(104, 105, source="probe", entry="node-2")
    tape.ok(111, 112, entry="node-1")
    tape.error(113, 113.1)
    tape.steady(121, 200)
    tape.end(200)
    assert tape.recovery().silence_s == pytest.approx(9.2)


def test_a_strike_that_is_written_late_still_gets_the_failure_it_caused() -> None:
    tape = Tape()
    tape.steady(90, 99)
    tape.lost(95, 100.1, "truncated", last_progress_t=99.9)
    tape.fault(0, "runner-kill", 100, 100, late_s=3.0)
    tape.steady(104, 200)
    tape.end(200)
    found = tape.recovery()
    assert found.failures == 1
    assert found.time_to_serve_s == pytest.approx(4.2)


def test_a_hung_request_failed_when_its_progress_stopped_not_at_the_deadline() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 120, hit=("node-3",))
    tape.lost(95, 225, "hung", last_progress_t=105)
    tape.steady(121, 300)
    tape.end(300)
    found = tape.recovery()
    assert found.sustained_s == pytest.approx(1.2)
    assert found.late_failures == 0


def test_a_hung_request_of_an_earlier_fault_does_not_touch_the_next() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    name = tape.lost(95, 225, "hung", last_progress_t=105)
    tape.steady(106, 400)
    tape.fault(1, "runner-kill", 200, 200)
    tape.end(400)
    analysis = tape.analyse()
    assert {r.fault: r.recovery_class for r in analysis.recoveries} == {0: "unknown", 1: "unaffected"}
    assert [(lost.id, lost.fault) for lost in analysis.requests.listed] == [(name, 0)]


def test_a_request_that_the_next_strike_stopped_does_not_touch_the_fault_before() -> None:
    tape = Tape()
    tape.steady(80, 200)
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.fault(1, "runner-kill", 200, 200)
    name = tape.lost(195, 319, "hung", last_progress_t=199.8)  # its last token came just before the second strike
    waiting = tape.lost(197, 317, "hung")  # and this one had none yet
    tape.steady(206, 400)
    tape.end(400)
    analysis = tape.analyse()
    assert {r.fault: (r.recovery_class, r.failures) for r in analysis.recoveries} == {
        0: ("unaffected", 0),
        1: ("unknown", 2),
    }
    assert {lost.id: lost.fault for lost in analysis.requests.listed} == {name: 1, waiting: 1}


def test_a_request_that_stalled_in_an_outage_that_the_next_strike_cut_short_is_of_the_first() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 104, hit=("node-3",))
    tape.error(101, 101.1)
    name = tape.lost(99, 225, "hung", last_progress_t=105)
    tape.fault(1, "runner-kill", 112, 112)
    tape.steady(112.5, 400)
    tape.end(400)
    analysis = tape.analyse()
    assert {r.fault: (r.recovery_class, r.failures) for r in analysis.recoveries} == {
        0: ("censored", 2),
        1: ("unaffected", 0),
    }
    assert {lost.id: lost.fault for lost in analysis.requests.listed} == {name: 0}


def test_failures_after_the_next_strike_are_not_the_first_faults_although_its_node_still_lags() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.view(111, "node-1", "event_index", 3)
    tape.steady(111, 150, entry="node-2")
    tape.fault(1, "runner-kill", 150, 150, late_s=5)
    name = tape.lost(151, 152, "empty", entry="node-2")
    tape.steady(155, 300, entry="node-2")
    tape.end(300)
    assert {lost.id: lost.fault for lost in tape.analyse().requests.listed} == {name: 1}


def test_failures_through_a_node_that_still_lags_are_its_faults_after_the_model_serves_again() -> None:
    tape = Tape()
    tape.view(99, "node-2", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1",))
    tape.error(101, 101.1, entry="node-2")
    tape.view(111, "node-1", "event_index", 3)
    tape.steady(111, 300, entry="node-2")
    lagging = tape.lost(150, 152, "empty")
    tape.view(160, "node-1", "event_index", 900)
    later = tape.lost(170, 172, "empty")
    tape.end(300)
    assert {lost.id: lost.fault for lost in tape.analyse().requests.listed} == {lagging: 0, later: None}


def test_a_request_that_hung_since_the_fault_before_does_not_touch_the_next() -> None:
    tape = Tape()
    tape.steady(80, 100)
    tape.fault(0, "master-crash", 100, 105, hit=("node-3",))
    tape.error(110, 110.1)
    name = tape.lost(101, 221, "hung")
    tape.steady(120, 200)
    tape.fault(1, "runner-kill", 200, 200)
    tape.steady(200.5, 400)
    tape.end(400)
    analysis = tape.analyse()
    assert {r.fault: r.recovery_class for r in analysis.recoveries} == {0: "unknown", 1: "unaffected"}
    assert {lost.id: lost.fault for lost in analysis.requests.listed} == {name: 0}


def test_only_what_the_fault_stopped_counts_when_the_next_one_strikes_after_its_recovery() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 101.1)
    tape.steady(112, 200)
    tape.fault(1, "runner-kill", 200, 200)
    tape.lost(195, 319, "hung", last_progress_t=199.8)
    tape.steady(206, 400)
    tape.end(400)
    assert tape.recovery(0).failures == 1


def test_an_answer_that_was_cut_in_the_middle_was_not_stopped_by_the_next_fault() -> None:
    tape = Tape()
    tape.steady(80, 200)
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.lost(140, 150, "truncated", last_progress_t=149)
    tape.fault(1, "runner-kill", 200, 200)
    tape.steady(206, 400)
    tape.end(400)
    assert (tape.recovery(0).failures, tape.recovery(0).affected) == (1, True)


def test_what_was_not_affected_had_no_outage() -> None:
    tape = Tape()
    tape.steady(80, 200)
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.lost(150, 180, "hung", source="probe")  # waited in a queue of the rig's making
    tape.end(200)
    assert (tape.recovery().recovery_class, tape.recovery().outage_s) == ("unaffected", 0.0)
    assert [lost.fault for lost in tape.analyse().probes.listed] == [None]


def test_an_outage_may_be_shorter_than_a_second() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100, 100.1)
    tape.ok(100.1, 100.3)
    tape.steady(101, 200)
    tape.end(200)
    assert tape.recovery().outage_s == pytest.approx(0.3)


def test_late_in_a_run_the_last_minute_is_as_short() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 1000, 1010, hit=("node-3",))
    tape.error(1001, 1002)
    tape.end(1020)
    assert tape.recovery().recovery_class == "censored"


def test_a_fault_that_strikes_before_the_heal_leaves_no_time_to_watch() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 130, hit=("node-3",))
    tape.error(101, 102)
    tape.fault(1, "runner-kill", 120, 120)
    tape.steady(131, 200)
    tape.end(200)
    assert tape.recovery(0).at_least_s == 0.0


@pytest.mark.parametrize(("kind", "error_s"), [("freeze", 1.0), ("runner-kill", 0.5)])
def test_the_clocks_of_strike_and_heal_add_up(kind: FaultKind, error_s: float) -> None:
    tape = Tape()
    tape.fault(0, kind, 100, 110, hit=("node-3",), error_s=0.5)
    tape.error(101, 102)
    tape.steady(112, 200)
    tape.end(200)
    assert tape.recovery().error_s == error_s


def test_several_nodes_restarted_by_the_rig_are_one_intervention() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(101, 101.1)
    tape.error(340, 340.1)
    tape.unwedged(0, "node-2", 345, 350)
    tape.unwedged(0, "node-3", 355, 360)
    tape.ok(352, 353)
    late = tape.lost(358, 359, "empty")
    tape.error(361, 361.1)
    tape.steady(365, 500)
    tape.end(500)
    found = tape.recovery()
    assert (found.until_t, found.at_least_s) == (345, 245)
    assert found.unwedge_cost_s == pytest.approx(365.2 - 345)
    assert {lost.id: (lost.fault, lost.unwedging) for lost in tape.analyse().requests.listed} == {late: (None, 0)}


def test_an_instance_that_was_replaced_after_the_recovery_survived_the_fault() -> None:
    tape = Tape()
    tape.instances(1, {"i": (A, "id-a")})
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.steady(112, 200)
    tape.instances(160, {"j": (A, "id-a")})
    tape.end(200)
    assert tape.recovery().recovery_class == "survived"


def test_an_instance_on_a_frozen_node_may_have_survived() -> None:
    tape = Tape()
    tape.view(1, "node-3", "node_id", "id-a")
    tape.instances(1, {"i": (A, "id-a")})
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.steady(112, 200)
    tape.end(200)
    assert tape.recovery().recovery_class == "survived"


def test_who_served_is_asked_of_the_quiet_time_alone() -> None:
    tape = Tape()
    tape.instances(1, {"i": (A, "id-a")})
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.steady(112, 200)
    tape.ok(150, 150.1, response_id="late")
    tape.served(151, "late", "j")
    tape.end(200)
    assert (tape.recovery().recovery_class, tape.recovery().instance_after) == ("survived", "i")


def test_what_did_not_recover_with_another_instance_counts_as_replaced() -> None:
    tape = Tape()
    tape.instances(1, {"i": (A, "id-a")})
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(101, 102)
    tape.instances(120, {"j": (A, "id-a")})
    tape.end(400)
    assert (tape.recovery().recovery_class, tape.recovery().group) == ("not recovered", "replaced")


def test_failures_are_the_faults_until_the_last_of_its_nodes_has_caught_up() -> None:
    tape = Tape()
    tape.view(99, "node-3", "event_index", 500)
    tape.fault(0, "node-crash", 100, 110, hit=("node-1", "node-2"))
    tape.steady(80, 300, entry="node-3")
    tape.view(150, "node-2", "event_index", 600)
    tape.view(160, "node-1", "event_index", 700)
    lagging = tape.lost(155, 156, "empty")
    tape.end(300)
    assert {lost.id: lost.fault for lost in tape.analyse().requests.listed} == {lagging: 0}


def decided(tape: Tape, by_t: float) -> list[int]:
    return [recovery.fault for recovery in tape.tracker(by_t).recoveries]


def two_faults() -> Tape:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 102)
    tape.steady(112, 400)
    tape.fault(1, "freeze", 200, 210, hit=("node-3",))
    return tape


def test_a_recovery_is_decided_when_the_next_fault_is_over() -> None:
    assert [decided(two_faults(), t) for t in (150, 205, 215, 390)] == [[], [], [0], [0]]


def test_a_recovery_waits_for_what_was_in_flight_at_the_next_strike() -> None:
    tape = two_faults()
    tape.started(205)
    assert decided(tape, 215) == [0]
    tape.started(199)
    assert decided(tape, 215) == []
    tape.started(195, B)
    assert decided(two_faults(), 215) == [0]


def test_a_recovery_waits_for_those_before_it() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, None, hit=("node-3",))
    tape.fault(1, "freeze", 200, 210, hit=("node-3",))
    tape.fault(2, "freeze", 300, 310, hit=("node-3",))
    assert decided(tape, 350) == []
    tape.end(400)
    assert [recovery.fault for recovery in tape.analyse().recoveries] == [0, 1, 2]


def test_a_strike_that_is_written_twice_is_one() -> None:
    tape = two_faults()
    tape.add(tape.change(0, "freeze", "struck", 100, hit=("node-3",), late_s=0.3))
    tape.end(400)
    assert [recovery.fault for recovery in tape.analyse().recoveries] == [0, 1]


def test_a_failure_is_of_the_first_strike_however_late_that_was_written() -> None:
    tape = Tape()
    tape.fault(1, "freeze", 90, 104, hit=("node-3",), late_s=20)
    tape.fault(0, "runner-kill", 100, 100)
    name = tape.lost(85, 130, "hung", last_progress_t=92)
    tape.steady(140, 300)
    tape.end(300)
    assert {lost.id: lost.fault for lost in tape.analyse().requests.listed} == {name: 1}


def test_live_decision_looks_no_more_than_thirty_times_in_the_quiet_time() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 101.1)
    tape.steady(112, 140)
    tape.fault(1, "runner-kill", 111, None)  # of which more is to come
    tracker = tape.tracker(139)
    assert tracker.recovered(0, 127.1) is None
    assert tracker.recovered(0, 127.3) is None  # it looked a moment ago
    assert tracker.recovered(0, 127.7) is True
    assert tracker.recovered(1, 127.8) is True  # another one
    tracker = tape.tracker(139)
    assert tracker.recovered(0, 127.1) is None
    assert tracker.recovered(0, 126.0) is None  # a clock that was set back stops nothing
    assert tracker.recovered(0, 127.3) is True


def test_live_decision_before_the_quiet_time_can_be_over_is_no_look() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.steady(99, 140)
    tracker = tape.tracker(139)
    assert tracker.recovered(0, 124.9) is None
    assert tracker.recovered(0, 125.1) is True


def test_live_decision_for_what_was_never_healed_counts_from_the_end_of_its_story() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, None, hit=("node-3",))
    tape.add(tape.change(0, "freeze", "unhealed", 130, hit=("node-3",)))
    tape.steady(99, 200)
    assert tape.tracker(199).recovered(0, 144.9) is None
    assert tape.tracker(199).recovered(0, 145.1) is True


def test_live_decision_without_a_heal_waits_for_the_hold() -> None:
    tape = Tape()
    tape.add(tape.change(0, "freeze", "struck", 100, hit=("node-3",), hold_s=50))
    assert tape.tracker(200).recovered(0, 389.9) is None
    assert tape.tracker(200).recovered(0, 390) is False


def test_live_decision_follows_the_journal() -> None:
    tape = Tape(models=(A, B))
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.error(101, 101.1)
    tape.steady(112, 140)
    tape.steady(100, 140, model=B)
    assert tape.tracker(99).recovered(0, 99) is None
    assert tape.tracker(105).recovered(0, 105) is None
    assert tape.tracker(127.1).recovered(0, 127.1) is None
    assert tape.tracker(127.3).recovered(0, 127.3) is True


def test_live_decision_needs_every_deployed_model() -> None:
    tape = Tape(models=(A, B))
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.steady(100, 400)
    assert tape.tracker(300).recovered(0, 300) is None
    assert tape.tracker(351).recovered(0, 351) is False
    assert not tape.tracker(300).steady(200, 300)


def test_live_decision_when_nothing_is_sent_is_not_recovered() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    assert tape.tracker(200).recovered(0, 200) is None
    assert tape.tracker(341).recovered(0, 341) is False


def test_live_decision_sees_a_probe_that_hangs() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.steady(101, 200)
    tape.started(105, entry="node-1", source="probe")
    assert tape.tracker(130).recovered(0, 130) is True  # loaded requests pass it by
    tape.started(105, entry="node-2", source="probe")
    assert tape.tracker(119).recovered(0, 119) is True
    assert tape.tracker(121).recovered(0, 121) is None
    tape.ok(120.5, 121.5, entry="node-2")
    assert tape.tracker(122).recovered(0, 122) is True


@pytest.mark.parametrize("state", ["skipped", "ineffective"])
def test_live_decision_for_a_fault_that_never_struck(state: str) -> None:
    tape = Tape()
    tape.add(tape.change(0, "freeze", "planned", 100))
    assert tape.tracker(100).recovered(0, 100) is None
    tape.add(tape.change(0, "freeze", "skipped" if state == "skipped" else "ineffective", 101))
    assert tape.tracker(101).recovered(0, 101) is True


def test_live_decision_without_a_heal_ends_after_hold_and_settle() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, None, hit=("node-3",))
    tape.steady(100, 400)
    assert tape.tracker(339).recovered(0, 339) is None
    assert tape.tracker(340).recovered(0, 340) is False


@pytest.mark.parametrize("seed", range(5))
def test_live_decision_agrees_with_the_report(seed: int) -> None:
    """Asked after every record: it turns true when the report's quiet time is over, not before, and not long after."""
    info, records = info_of(Shape(seed=seed)), records_of(Shape(seed=seed))
    final = analyse(info, records).recoveries
    tracker = RecoveryTracker(settings_of(info))
    seen: dict[int, float] = {}
    for record in records:
        tracker.feed(record)
        for fault in range(6):
            if fault not in seen and tracker.recovered(fault, record.t):
                seen[fault] = record.t
    for fault in range(6):
        ends = [r.strike_t + (r.sustained_from_strike_s or 0.0) for r in final if r.fault == fault and r.affected]
        heal_t = next(r.heal_t for r in final if r.fault == fault)
        assert heal_t is not None
        due_t = max([heal_t, *ends]) + 15.0
        assert due_t <= seen[fault] < due_t + 2.0


def test_memory_of_the_tracker_does_not_grow_with_the_run() -> None:
    tape = Tape()
    tape.steady(0, 9000, step_s=1.0)
    tracker = tape.tracker(9000)
    assert sum(len(part) for part in tracker._parts) < 2100  # pyright: ignore[reportPrivateUsage]  # what is bounded is inside


def frozen(*, gap_s: float = 1.0, hold_s: float = 42.0) -> Recovery:
    """A freeze in which all that was asked waits, and is served after it. Before it, one answer every `gap_s`."""
    tape = Tape()
    tape.instances(1, {"i": (A, "id-a")})
    for number in range(40):
        tape.ok(100 - (number + 1) * gap_s, 100 - number * gap_s - 0.1, entry="node-2")
    tape.fault(0, "freeze", 100, 100 + hold_s, hit=("node-3",))
    for start_t in (99.95, 100.5, 101):
        tape.ok(start_t, 100 + hold_s + 0.5, entry="node-2")
    tape.steady(101 + hold_s, 300, entry="node-2")
    tape.end(300)
    return tape.recovery()


def test_a_model_that_kept_everybody_waiting_was_affected_although_nothing_failed() -> None:
    found = frozen()
    assert (found.recovery_class, found.failures) == ("survived", 0)
    assert found.outage_s == pytest.approx(42.5)
    assert found.time_to_serve_s == pytest.approx(1.2)
    assert found.silence_s == pytest.approx(42.5)


def test_a_wait_that_is_short_or_as_long_as_in_calm_weather_is_none() -> None:
    assert frozen(hold_s=14).recovery_class == "unaffected"
    assert frozen(hold_s=15).recovery_class == "survived"
    assert frozen(gap_s=15).recovery_class == "unaffected"  # 42.5 s are not three times as long
    assert frozen(gap_s=13).recovery_class == "survived"
