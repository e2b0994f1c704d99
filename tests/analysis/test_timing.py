"""Times by node and weather, goodput, and whether an open loop was sent when it was due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rig.analysis.checks.check import Status
from rig.analysis.requests.counts import Objectives
from rig.analysis.requests.tally import CALM, FAULTED
from rig.analysis.verdict import verdict_of
from rig.journal.records import AnyRecord, HeldBack, RequestEnded, RequestStarted
from rig.report.json import report_json
from rig.report.tables import goodput, requests
from tests.analysis.tape import A, B, Tape

OPEN = {"kind": "poisson", "rate": 5.0}


def tape_of(**workload: Any) -> Tape:
    return Tape(workload={"name": "w", "models": [{"model": A}, {"model": B}], **workload})


def arrival(tape: Tape, number: int, planned_t: float, started_t: float, ended_t: float) -> None:
    tape.add(
        RequestStarted(
            t=started_t,
            id=f"a{number}",
            source="load",
            client="arrivals",
            model=A,
            entry="node-1",
            planned_t=planned_t,
            streamed=True,
            prompt_tokens=1,
            max_tokens=1,
        ),
        RequestEnded(
            t=ended_t,
            id=f"a{number}",
            outcome="completed",
            started_t=started_t,
            first_token_t=ended_t - 0.1,
            last_token_t=ended_t,
            last_progress_t=ended_t,
            ended_t=ended_t,
            tokens=2,
        ),
    )


def test_times_are_told_apart_by_entry_node_and_weather() -> None:
    tape = tape_of()
    tape.steady(1, 11, entry="node-1")
    tape.steady(1, 6, model=B, entry="node-2")
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.ok(99, 112, entry="node-2")
    tape.ok(99.5, 103, entry="node-3")
    tape.steady(112, 160)
    result = tape.analyse().requests
    assert {name: values.good for name, values in result.latencies_by_entry.items()} == {
        "node-1": 58,
        "node-2": 6,
        "node-3": 1,
    }
    assert {name: values.good for name, values in result.latencies_by_weather.items()} == {CALM: 63, FAULTED: 2}
    assert result.latencies_by_weather[CALM].e2el.quantile(1.0) == pytest.approx(0.2, rel=0.03)
    assert result.latencies_by_weather[FAULTED].e2el.quantile(1.0) == pytest.approx(13, rel=0.03)
    assert {name: values.good for name, values in result.latencies.items()} == {A: 60, B: 5}


@pytest.mark.parametrize(
    ("objectives", "met"),
    [
        ({"ttft": 0.5}, 3),  # the one that is not streamed has no first token to be late
        ({"e2el": 0.5}, 2),
        ({"itl": 0.15}, 3),
        ({"ttft": 0.5, "itl": 0.15, "e2el": 1.5}, 2),
    ],
)
def test_goodput_takes_every_objective(objectives: dict[str, float], met: int) -> None:
    tape = tape_of(objectives=objectives)
    tape.ok(10, 10.4, first_token_t=10.1, last_token_t=10.4, tokens=4)  # ITL 0.1
    tape.ok(11, 12.0, first_token_t=11.1, last_token_t=12.0, tokens=4)  # ITL 0.3
    tape.ok(13, 14.0, first_token_t=13.9, last_token_t=14.0, tokens=2)  # TTFT 0.9
    tape.ok(15, 15.4, streamed=False, first_token_t=None, last_token_t=None)
    tape.error(16, 20)
    analysis = tape.analyse()
    found = analysis.requests.goodput(analysis.settings.objectives)
    assert found is not None
    assert (found.met, found.share, found.per_s) == (met, met / 5, met / 10)
    table = goodput(analysis)
    assert table is not None
    assert table.rows[0] == ("all", f"{met}", f"{met * 20:.1f} %")
    reported = report_json(analysis, verdict_of(analysis))["goodput"]
    assert reported["met"] == met
    assert reported["objectives"]["ttft_s"] == objectives.get("ttft")


def test_a_stream_that_completed_without_content_has_not_met_its_time_to_first_token() -> None:
    tape = tape_of(objectives={"ttft": 0.5})
    tape.ok(10, 10.4, first_token_t=None, last_token_t=None, tokens=0)
    tape.ok(11, 11.4)
    analysis = tape.analyse()
    found = analysis.requests.goodput(analysis.settings.objectives)
    assert found is not None
    assert (found.met, found.share) == (1, 0.5)


def test_goodput_tells_streams_from_what_has_no_first_token_to_be_late() -> None:
    tape = tape_of(objectives={"ttft": 0.5})
    tape.ok(10, 12)
    tape.ok(11, 13, entry="node-2", streamed=False, first_token_t=None, last_token_t=None)
    table = goodput(tape.analyse())
    assert table is not None
    shares = {name: share for name, _, share in table.rows}
    assert (shares["streamed"], shares["not streamed"]) == ("0 %", "100.0 %")
    assert (shares["through node-1"], shares["through node-2"]) == ("0 %", "100.0 %")


def test_what_is_void_is_no_failure_of_the_target_in_any_time() -> None:
    tape = tape_of(objectives={"e2el": 1.0})
    for second in range(1, 300):
        tape.own(float(second), lag_s=2.5 if second == 221 else 0.01)
    tape.ok(10, 10.5)
    tape.lost(100, 220.5, "hung", tokens=7)
    tape.error(30, 31)
    tape.end(300)
    analysis = tape.analyse()
    together = analysis.requests.all_latencies()
    assert (analysis.requests.total.void, together.good, together.failed) == (1, 1, 1)
    assert together.tokens == 1 + 7, "of all answers"
    found = analysis.requests.goodput(analysis.settings.objectives)
    assert found is not None
    assert found.share == 0.5


def test_without_objectives_there_is_no_goodput() -> None:
    tape = tape_of()
    tape.ok(1, 2)
    analysis = tape.analyse()
    assert analysis.requests.goodput(Objectives()) is None
    assert goodput(analysis) is None
    assert report_json(analysis, verdict_of(analysis))["goodput"] is None


def test_an_open_loop_counts_from_when_a_request_was_due_and_beside_it_from_its_start() -> None:
    tape = tape_of(arrivals=OPEN)
    for number in range(100):
        arrival(tape, number, number, number + 0.51, number + 0.71)
    analysis = tape.analyse()
    result, latencies = analysis.requests, analysis.requests.latencies[A]
    assert latencies.e2el.quantile(0.5) == pytest.approx(0.7, rel=0.03)
    assert latencies.ttft.quantile(0.5) == pytest.approx(0.6, rel=0.03)
    assert result.from_start.e2el.quantile(0.5) == pytest.approx(0.2, rel=0.03)
    reported = report_json(analysis, verdict_of(analysis))
    assert reported["sent_late"]["max_s"] == reported["sent_late"]["p99_s"] == 0.51, (
        "a sketch's p99 is not above the worst"
    )
    assert reported["latency_from_start"]["e2el"]["good"]["p50_s"] == pytest.approx(0.2, rel=0.03)


def sent(late_s: float, share: float) -> Callable[[Tape], object]:
    """A thousand arrivals, this share of them so late."""

    def build(tape: Tape) -> None:
        for number in range(1000):
            arrival(tape, number, float(number), number + (late_s if number < share * 1000 else 0.0001), number + 5.0)

    return build


def held(*, late_s: float, unsent: int) -> Callable[[Tape], object]:
    """A bound in flight that was met."""

    def build(tape: Tape) -> None:
        sent(late_s, 1.0)(tape)
        tape.add(HeldBack(t=1005.0, bound=4, held=7, longest_s=2.5, unsent=unsent))

    return build


def starts_alone(late_s: float) -> Callable[[Tape], object]:
    """None of them ended."""

    def build(tape: Tape) -> None:
        tape.add(*(one for one in sent_records(late_s) if isinstance(one, RequestStarted)))

    return build


def sent_records(late_s: float) -> list[AnyRecord]:
    tape = tape_of(arrivals=OPEN)
    sent(late_s, 1.0)(tape)
    return tape.records()


CASES: list[tuple[str, Status, Callable[[Tape], object]]] = [
    ("load-on-time", "pass", sent(0.004, 1.0)),
    ("load-on-time", "unknown", sent(0.02, 0.02)),
    ("load-on-time", "not-exercised", lambda t: t.end(1)),
    ("load-on-time", "pass", sent(2.0, 0.005)),  # the 99th percentile decides: one in 200 is none
    ("load-on-time", "pass", held(late_s=0.001, unsent=0)),
    ("load-on-time", "unknown", held(late_s=0.001, unsent=1)),  # no percentile has what was never sent
    ("load-on-time", "unknown", lambda t: t.add(HeldBack(t=9.0, bound=4, held=0, longest_s=0.0, unsent=3))),
    ("load-on-time", "unknown", starts_alone(0.02)),
    ("load-on-time", "pass", starts_alone(0.001)),
]


@pytest.mark.parametrize(("name", "expected", "build"), CASES)
def test_check(name: str, expected: Status, build: Callable[[Tape], object]) -> None:
    tape = tape_of(arrivals=OPEN)
    build(tape)
    check = next(check for check in verdict_of(tape.analyse()).checks if check.name == name)
    assert check.status == expected, check.summary


def test_what_a_bound_held_back_is_said_in_every_report() -> None:
    tape = tape_of(arrivals=OPEN)
    held(late_s=0.001, unsent=12)(tape)
    analysis = tape.analyse()
    verdict = verdict_of(analysis)
    assert report_json(analysis, verdict)["held_back"] == {"bound": 4, "held": 7, "longest_s": 2.5, "unsent": 12}
    said = requests(analysis).note
    assert (
        "With 4 in flight, 7 requests had to wait for a place, at most 2.5 s; 12 more were due and never sent" in said
    )
    check = next(check for check in verdict.checks if check.name == "load-on-time")
    assert check.summary.startswith("12 requests were due but never sent, and are in no figure: ")
    assert "7 waited behind 4 in flight, at most 2.5 s" in check.summary
    assert analysis.requests.total.started == 1000, "what was not sent is in no count"


def test_a_closed_loop_has_no_time_to_be_late_for() -> None:
    tape = tape_of()
    tape.ok(1, 2)
    analysis = tape.analyse()
    check = next(check for check in verdict_of(analysis).checks if check.name == "load-on-time")
    assert check.status == "not-exercised"
    assert check.summary == "not applicable: the load is a closed loop"
    reported = report_json(analysis, verdict_of(analysis))
    assert (reported["sent_late"], reported["latency_from_start"]) == (None, None)
