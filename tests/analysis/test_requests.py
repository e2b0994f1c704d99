"""What is counted, and that it always adds up."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest

from rig.analysis.analyse import AT_ONCE, analyse
from rig.analysis.recovery.faults import strike_of
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.requests.counting import RequestCounter
from rig.analysis.requests.counts import Counts, Objectives
from rig.analysis.requests.tally import Tally
from rig.analysis.settings import settings_of
from rig.journal.records import FaultKind, FaultState, How, RequestStarted
from tests.analysis.generate import NODES, Shape, info_of, records_of
from tests.analysis.tape import A, B, Heard, Tape


def test_outcomes_and_how() -> None:
    tape = Tape()
    tape.ok(1, 2)
    tape.error(3, 4)
    for how in ("hung", "overdue", "truncated", "empty"):
        tape.lost(5, 6, how)
    tape.started(7)
    tape.end(10)
    total = tape.analyse().requests.total
    assert (total.started, total.completed, total.error, total.lost, total.void, total.unfinished) == (7, 1, 1, 4, 0, 1)
    assert total.how() == {"hung": 1, "overdue": 1, "truncated": 1, "empty": 1}
    assert total.lost_without_deadlines == 2
    assert total.balanced


def test_probes_are_counted_apart() -> None:
    tape = Tape()
    tape.ok(1, 2, source="probe")
    tape.end(10)
    analysis = tape.analyse()
    assert (analysis.requests.total.started, analysis.probes.total.completed) == (0, 1)


def test_exposed_is_in_flight_at_a_strike_or_sent_in_an_outage() -> None:
    tape = Tape(models=(A, B))
    tape.fault(0, "runner-kill", 100, 100)
    tape.ok(99, 99.9)  # ended before
    tape.ok(99, 101, model=B)  # in flight: whatever its model
    tape.error(100.5, 101)
    tape.ok(105, 106)  # its end ends the outage
    tape.ok(102, 103, model=B)  # its model has no outage
    tape.steady(107, 140)
    tape.steady(107, 140, model=B)
    tape.end(140)
    analysis = tape.analyse()
    assert analysis.requests.total.exposed == 3
    assert analysis.requests.by_fault[0].exposed == 3
    assert analysis.requests.calm.started == analysis.requests.total.started - 3


def test_a_skipped_fault_exposes_nobody() -> None:
    tape = Tape()
    tape.add(tape.change(0, "freeze", "skipped", 100))
    tape.fault(1, "freeze", 110, None)
    tape.add(tape.change(1, "freeze", "ineffective", 115))
    tape.ok(99, 112)
    tape.end(140)
    assert tape.analyse().requests.total.exposed == 0


def test_one_request_may_be_exposed_to_two_faults_and_counts_once() -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.fault(1, "runner-kill", 110, 110)
    tape.ok(99, 120)
    tape.end(200)
    requests = tape.analyse().requests
    assert (requests.total.exposed, requests.by_fault[0].exposed, requests.by_fault[1].exposed) == (1, 1, 1)


@pytest.mark.parametrize(
    ("start_t", "stalled_t", "end_t", "how", "fault"),
    [
        (95.0, 99.9, 101.0, "truncated", 0),
        (95.0, 105.0, 225.0, "hung", 0),  # stopped in the first, its deadline came in the second
        (150.0, 199.9, 319.9, "hung", 1),
        (150.0, 160.0, 280.0, "hung", None),  # had stalled long before the second: nobody's
        (150.0, 160.0, 200.5, "truncated", 1),  # ended by the target, when the second struck
        (300.0, 301.0, 302.0, "truncated", None),
    ],
)
def test_a_failure_belongs_to_the_first_fault_that_was_going_on(
    start_t: float, stalled_t: float, end_t: float, how: How, fault: int | None
) -> None:
    tape = Tape()
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    tape.steady(110, 195)
    tape.fault(1, "runner-kill", 200, 200)
    tape.error(200.6, 201)
    tape.steady(210, 500)
    name = tape.lost(start_t, end_t, how, last_progress_t=stalled_t)
    tape.end(500)
    listed = {lost.id: lost.fault for lost in tape.analyse().requests.listed}
    assert listed == {name: fault}


def test_void_takes_a_stall_across_the_deadline() -> None:
    tape = Tape()
    for second in range(1, 300):
        tape.own(float(second), lag_s=2.5 if second == 221 else 0.01)
    tape.lost(100, 220.5, "hung")
    tape.lost(100, 230.5, "hung")
    tape.lost(219.9, 220.4, "truncated")  # the target's doing, whatever the controller did
    tape.error(219.9, 220.4, connected_t=None, cause="connect-deadline")
    tape.end(300)
    total = tape.analyse().requests.total
    assert (total.void, total.lost, total.hung, total.truncated) == (2, 2, 1, 1)
    assert total.balanced
    assert len(tape.analyse().requests.listed) == 2


def test_void_waits_for_the_record_of_the_stall() -> None:
    tape = Tape()
    for _ in range(AT_ONCE - 2):
        tape.ok(1, 2)
    tape.lost(100, 220.5, "hung")
    tape.ok(220.6, 220.7)  # with so many, what can be is counted
    tape.own(221, lag_s=2.5)
    tape.end(300)
    assert tape.analyse().requests.total.void == 1


def test_void_after_a_sleep_within_the_request() -> None:
    tape = Tape()
    for second in range(1, 300):
        tape.own(float(second), drift_s=40.0 if second > 150 else 0.0)
    tape.lost(100, 220, "hung")
    tape.lost(160, 280, "hung")
    tape.end(300)
    total = tape.analyse().requests.total
    assert (total.void, total.lost) == (1, 1)


def test_a_small_lag_makes_nothing_void() -> None:
    tape = Tape()
    for second in range(1, 300):
        tape.own(float(second), lag_s=0.2)
    tape.lost(100, 220, "hung")
    tape.end(300)
    assert tape.analyse().requests.total.void == 0


def test_the_baseline_counts_what_was_sent_in_it_and_met_no_fault() -> None:
    tape = Tape()
    tape.ok(1, 2)
    tape.phase(5, "baseline")
    tape.ok(6, 7)
    tape.lost(99, 100.5, "truncated")
    tape.phase(99.5, "faults")
    tape.fault(0, "runner-kill", 100, 100)
    tape.ok(101, 102)
    tape.end(300)
    baseline = tape.analyse().requests.baseline
    assert (baseline.started, baseline.completed, baseline.lost) == (1, 1, 0)
    assert (baseline.exposed, tape.analyse().requests.calm.exposed) == (0, 0)


def test_latency_of_an_open_loop_counts_from_when_it_was_due() -> None:
    workload = {"name": "open", "models": [{"model": A}], "arrivals": {"kind": "poisson"}}
    tape = Tape(workload=workload)
    tape.ok(10, 20, first_token_t=12)
    tape.end(30)
    records = [
        msgspec.structs.replace(r, planned_t=8.0) if isinstance(r, RequestStarted) else r for r in tape.records()
    ]
    p50 = analyse(tape.info, records).requests.all_latencies().quantiles()["ttft"].good[0]
    assert p50 == pytest.approx(4.0, rel=0.03)


def test_ends_without_a_start_and_repeated_starts_are_noticed() -> None:
    tape = Tape()
    tape.ok(1, 2)
    tape.end(3)
    records = tape.records()
    assert analyse(tape.info, records[1:]).orphans == 1
    assert analyse(tape.info, [records[0], *records]).repeated == 1


@pytest.mark.parametrize("seed", range(40))
def test_each_is_judged_as_if_it_were_the_only_one(seed: int) -> None:
    """What whole columns say is compared with what a look at each request and each fault finds."""
    tape = _random_tape(random.Random(seed))
    tracker = RecoveryTracker(settings_of(tape.info))
    for record in tape.records():
        tracker.feed(record)
    tracker.finish()
    context, counter = tracker.context, RequestCounter("load", tracker.context)
    counter.ended(tape.attempts())
    for batch in counter.settle(math.inf, tracker.recoveries, tracker.rescues, None):
        for at in range(len(batch.attempts)):
            alone = batch.attempts.part(slice(at, at + 1))
            start, end = float(alone.started_t[0]), float(alone.ended_t[0])
            own = "node" if context.windows.own_node(alone)[0] else None
            own = own or ("rejoining" if context.windows.rejoining(alone)[0] else None)
            in_flight = {
                fault.number for fault in context.faults.struck if fault.effective and start <= strike_of(fault) <= end
            }
            outages = {
                recovery.fault
                for recovery in tracker.recoveries
                if recovery.affected
                and alone.of_model(recovery.model)[0]
                and recovery.strike_t <= start <= recovery.strike_t + recovery.outage_s
            }
            judged, met = batch.judged(at), {number for number, which in batch.met.items() if which[at]}
            assert (judged.own, judged.exposed, met) == (own, bool(in_flight | outages), in_flight | outages)
            cut = any(
                alone.of_model(one.model)[0] and (start <= one.from_t <= end or one.from_t <= start <= one.restored_t)
                for one in tracker.rescues
            )
            assert bool(counter.unwedged(alone)[0]) is cut


@pytest.mark.parametrize("seed", range(40))
def test_it_always_adds_up(seed: int) -> None:
    """Journals of anything in any order: ends without starts, faults that go back, lines that are missing."""
    rng = random.Random(seed)
    tape = _random_tape(rng)
    records = [record for record in tape.records() if rng.random() > 0.05]
    if rng.random() < 0.3:
        rng.shuffle(records)
    analysis = analyse(tape.info, records)
    for tally in (analysis.requests, analysis.probes):
        for counts in _all_counts(tally):
            assert counts.balanced
            assert counts.lost == sum(counts.how().values())
            assert counts.own_node + counts.own_rejoining <= counts.started
            assert counts.lost_own_node + counts.lost_own_rejoining <= counts.lost
    started = sum(counts.started for counts in analysis.requests.by_model.values())
    assert started == analysis.requests.total.started


def _all_counts(tally: Tally) -> list[Counts]:
    return [tally.total, tally.calm, tally.baseline, *tally.by_model.values(), *tally.by_entry.values()]


def _random_tape(rng: random.Random) -> Tape:
    tape = Tape(models=(A, B))
    kinds: tuple[FaultKind, ...] = ("node-crash", "master-crash", "freeze", "runner-kill", "partition")
    states: tuple[FaultState, ...] = ("leased", "struck", "healed", "skipped", "ineffective", "invalid", "unhealed")
    for number in range(rng.randint(0, 6)):
        kind, at_t, hit = rng.choice(kinds), rng.random() * 300, (rng.choice(NODES),)
        if rng.random() < 0.7:
            tape.fault(number, kind, at_t, at_t + rng.random() * 60 if rng.random() < 0.8 else None, hit=hit)
        else:
            for state in rng.sample(states, 3):
                tape.add(tape.change(number, kind, state, at_t + rng.random() * 20, hit=hit))
    hows: tuple[How, ...] = ("hung", "overdue", "truncated", "empty")
    for _ in range(rng.randint(0, 120)):
        model, entry, start_t = rng.choice((A, B)), rng.choice(NODES), rng.random() * 350
        more: dict[str, Any] = {"streamed": rng.random() < 0.7, "source": rng.choice(("load", "load", "probe"))}
        end_t = start_t + rng.random() * rng.choice((2, 130))
        match rng.randint(0, 4):
            case 0:
                tape.started(start_t, model, entry, **more)
            case 1:
                tape.error(start_t, end_t, model, entry, **more)
            case 2:
                tape.lost(start_t, end_t, rng.choice(hows), model, entry, **more)
            case _:
                shown = {} if more["streamed"] else {"last_progress_t": None}
                tape.ok(start_t, end_t, model, entry, **more, **shown)
    tape.unwedged(rng.randint(0, 6), "node-1", 100, 110)
    for _ in range(rng.randint(0, 5)):
        tape.own(rng.random() * 300, lag_s=rng.random() * 3)
    tape.end(400)
    return tape


def test_every_prefix_of_a_journal_still_reports_and_adds_up() -> None:
    shape = Shape(duration_s=180, baseline_s=30, faults=2, requests=60, views=30, lost_share=0.3)
    info, records = info_of(shape), records_of(shape)
    for length in range(0, len(records), 3):
        analysis = analyse(info, records[:length])
        assert analysis.requests.total.balanced
        assert analysis.ended is None


def test_memory_of_the_tally_does_not_grow_with_the_run() -> None:
    tape = Tape()
    tape.steady(0, 6000)
    tape.end(6000)
    analysis = tape.analyse()
    assert analysis.requests.total.completed == 6000
    assert len(analysis.requests.latencies[A].e2el.counts) == 1


def test_failures_are_counted_with_their_fault_and_listed_apart_when_their_own_node_was_hit() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 120, hit=("node-1",))
    tape.lost(101, 110, "hung", entry="node-1")  # its own node stands still
    tape.lost(101, 111, "truncated", entry="node-2")
    tape.error(102, 103, entry="node-2")
    tape.error(102, 104, entry="node-2")
    tape.ok(125, 126, entry="node-2")
    tape.steady(127, 190, entry="node-2")
    tape.end(200)
    requests = tape.analyse().requests
    counts = requests.by_fault[0]
    assert (counts.error, counts.lost, counts.lost_own_node) == (2, 2, 1)
    assert [one.how for one in requests.listed] == ["truncated"]
    assert [one.how for one in requests.listed_own] == ["hung"]
    assert {one.fault for one in (*requests.listed, *requests.listed_own)} == {0}


def test_answers_that_were_damaged_or_ended_uncleanly_are_counted_beside_their_outcome() -> None:
    tape = Tape()
    tape.ok(1, 2)
    name = tape.ok(2, 3, damaged="two finish reasons")
    tape.ok(3, 4, unclean_end="reset after [DONE]")
    tape.ok(4, 5, unclean_end="reset after [DONE]")
    tape.end(10)
    requests = tape.analyse().requests
    assert (requests.damaged, requests.damaged_ids, requests.unclean) == (1, [name], 2)


def test_the_time_of_the_load_is_from_the_first_start_to_the_last_end() -> None:
    tape = Tape(workload={"name": "w", "models": [{"model": A}], "objectives": {"e2el": 15.0}})
    tape.ok(5, 30)
    tape.ok(6, 20)
    tape.end(40)
    requests = tape.analyse().requests
    assert (requests.first_t, requests.last_t) == (5, 30)
    found = requests.goodput(Objectives(e2el_s=15.0))
    assert found is not None
    assert (found.met, found.share, found.per_s) == (1, 0.5, 1 / 25)


def test_without_an_end_there_is_no_rate() -> None:
    tape = Tape()
    tape.started(5)
    found = tape.analyse().requests.goodput(Objectives(e2el_s=20.0))
    assert found is not None
    assert (found.met, found.share, found.per_s) == (0, None, None)
    assert Tape().analyse().requests.goodput(Objectives(e2el_s=20.0)) == found
    tape = Tape()
    tape.ok(5, 5)
    found = tape.analyse().requests.goodput(Objectives(e2el_s=20.0))
    assert found is not None
    assert (found.share, found.per_s) == (1.0, None)
    tape = Tape()
    tape.ok(5, 5.5)
    found = tape.analyse().requests.goodput(Objectives(e2el_s=20.0))
    assert found is not None
    assert found.per_s == 2.0


def test_how_each_request_was_counted_is_told() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 110, hit=("node-1",))
    own = tape.lost(101, 105, "truncated")
    void = tape.lost(60, 180.5, "hung", entry="node-2")
    other = tape.error(102, 103, entry="node-2")
    good = tape.ok(120, 121, entry="node-2")
    tape.steady(122, 179, entry="node-2")
    tape.own(181, lag_s=2.0)
    tape.end(300)
    heard = Heard()
    analyse(tape.info, tape.records(), listener=heard)
    judged = {batch.attempts.id(at): batch.judged(at) for batch in heard.batches for at in range(len(batch.attempts))}
    assert {
        name: (judged[name].own, judged[name].void, judged[name].exposed, judged[name].fault)
        for name in (own, void, other, good)
    } == {
        own: ("node", False, True, 0),
        void: (None, True, True, None),
        other: (None, False, True, 0),
        good: (None, False, True, None),  # its end ended the outage
    }
    counts = analyse(tape.info, tape.records()).requests.by_fault[0]
    assert (counts.exposed, counts.error, counts.lost, counts.lost_own_node) == (4, 1, 1, 1)


def test_a_failure_of_a_node_is_its_faults_where_the_model_was_not_touched() -> None:
    tape = Tape()
    tape.steady(80, 200, entry="node-2")
    tape.fault(0, "freeze", 100, 110, hit=("node-1",), error_s=0.5)
    name = tape.lost(100.5, 330, "hung", last_progress_t=110.3)  # the heal may have been later, by the clocks
    tape.end(400)
    requests = tape.analyse().requests
    assert {one.id: one.fault for one in (*requests.listed, *requests.listed_own)} == {name: 0}


def test_streams_and_others_are_counted_apart() -> None:
    tape = Tape()
    tape.ok(1, 2)
    tape.ok(2, 3)
    tape.error(3, 4, streamed=False)
    tape.end(10)
    counts = tape.analyse().requests.by_streamed
    assert {way: (one.completed, one.error) for way, one in counts.items()} == {
        "streamed": (2, 0),
        "not streamed": (0, 1),
    }


def test_only_lost_requests_whose_own_node_was_hit_are_counted_so() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 100, 120, hit=("node-1",))
    for _ in range(3):
        tape.lost(101, 111, "truncated", entry="node-2")
    tape.lost(101, 110, "truncated", entry="node-1")
    tape.steady(127, 190, entry="node-2")
    tape.end(200)
    counts = tape.analyse().requests.by_fault[0]
    assert (counts.lost, counts.lost_own_node) == (4, 1)


def test_nothing_was_exposed_to_a_fault_that_did_not_touch_its_model() -> None:
    tape = Tape()
    tape.steady(80, 200)
    tape.fault(0, "freeze", 100.5, 110.5, hit=("node-3",))
    tape.end(200)
    assert tape.analyse().requests.by_fault[0].exposed == 0


def test_the_first_two_hundred_are_listed() -> None:
    tape = Tape()
    for number in range(210):
        tape.lost(float(number), number + 0.5, "empty")
    tape.end(300)
    requests = tape.analyse().requests
    assert (requests.total.lost, len(requests.listed)) == (210, 200)
