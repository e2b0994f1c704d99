from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from rig.journal.records import Gaps, How, Outcome, Own, RequestEnded, RequestStarted
from rig.load.sketch import GapSketch
from rig.load.summary import flags, summary, summary_tables
from rig.load.tally import EXAMPLES, REASONS, Tally


def start(number: int, source: str = "load") -> RequestStarted:
    return RequestStarted(
        t=float(number),
        id=f"{source}{number}",
        source="probe" if source == "probe" else "load",
        client="c",
        model="m",
        entry="e",
        planned_t=number - 0.25,
        streamed=True,
        prompt_tokens=1,
        max_tokens=8,
    )


def end(number: int, outcome: Outcome = "completed", how: How | None = None, evidence: str = "") -> RequestEnded:
    sketch = GapSketch()
    sketch.add(0.1, 3)
    return RequestEnded(
        t=number + 1.0,
        id=f"load{number}",
        outcome=outcome,
        how=how,
        started_t=float(number),
        connected_t=number + 0.01,
        first_token_t=number + 0.2,
        last_token_t=number + 0.5,
        ended_t=number + 0.6,
        tokens=4,
        usage_tokens=5,
        gaps=Gaps(count=3, sum_s=0.3, max_s=0.1, sketch=sketch.record()),
        evidence=evidence,
    )


OWN = Own(t=9.0, interval_s=1.0, lag_max_s=0.0, cpu_percent=1.0, rss_bytes=1, open_files=1, wall_drift_s=0.0)


def near(value: float | None, expected: float, error: float) -> bool:
    return value is not None and abs(value - expected) <= error * expected


def test_counts_add_up_at_every_moment() -> None:
    tally = Tally(void=lambda _: False)
    outcomes: list[tuple[Outcome, How | None]] = [
        ("completed", None),
        ("error", None),
        ("lost", "hung"),
        ("lost", "empty"),
        ("completed", None),
    ]
    for number in range(6):
        tally.feed(start(number))
        tally.feed(start(number, "probe"))
    for number, (outcome, how) in enumerate(outcomes):
        assert tally.started == tally.completed + tally.error + tally.lost + tally.unfinished
        tally.feed(end(number, outcome, how, "why | tail"))
    assert (tally.completed, tally.unfinished) == (2, 4), "of what failed the rig's own health is not yet known"
    tally.feed(OWN)
    assert (tally.started, tally.completed, tally.error, tally.lost, tally.unfinished) == (6, 2, 1, 2, 1)
    assert tally.lost_how == {"hung": 1, "overdue": 0, "truncated": 0, "empty": 1}
    assert tally.reasons == {"why": 3}
    tally.feed(end(0))
    tally.feed(end(99))
    assert tally.ended == 5, "an end without a start in flight counts for nothing"


def test_what_says_nothing_of_the_target_is_void_and_in_no_other_count() -> None:
    known: set[str] = set()
    tally = Tally(void=lambda record: record.id in known)
    for number, outcome in enumerate(("completed", "lost", "error")):
        tally.feed(start(number))
        tally.feed(end(number, outcome, "hung" if outcome == "lost" else None, "why | tail"))
    known.add("load1")  # what the rig learns of itself with the next record of its health
    tally.feed(OWN)
    assert (tally.completed, tally.error, tally.lost, tally.void, tally.unfinished) == (1, 1, 0, 1, 0)
    assert (tally.reasons, tally.void_reasons) == ({"why": 1}, {"why": 1})
    assert tally.lost_how["hung"] == 0
    found = summary(tally, url="", model="", journal=None, stood_still_s=7.12)
    assert (found["requests"]["void"], found["stood_still_s"]) == (1, 7.12)
    assert found["flags"][:2] == [
        "the rig itself stood still for 7.1 s in all: gaps and times across that are its own",
        "1 requests are void, for the failure was the rig's own: why",
    ]
    assert [example["id"] for example in found["examples"]] == ["load2"]


def test_completed_requests_that_are_not_as_they_should_be_are_flagged() -> None:
    tally = Tally(void=lambda _: False)
    for number, note in enumerate(("2 tokens came after the finish reason", None)):
        tally.feed(start(number))
        tally.feed(msgspec.structs.replace(end(number), unclean_end=note, damaged="no content arrived"))
    assert flags(tally, 0.0)[:2] == [
        "1 completed requests did not end cleanly: 2 tokens came after the finish reason",
        "2 completed requests are damaged: their content is not what the server's usage says",
    ]


def test_times_are_of_completed_requests() -> None:
    tally = Tally(void=lambda _: False)
    for number in range(10):
        tally.feed(start(number))
        tally.feed(end(number, "completed" if number else "error"))
    assert tally.ttft.spread().count == tally.e2el.spread().count == tally.itl.spread().count == 9
    assert near(tally.ttft.spread().p50_s, 0.2, 0.006)
    assert near(tally.itl.spread().p90_s, 0.075, 0.006), "(last - first) / (tokens by the server - 1)"
    assert near(tally.e2el.spread().p99_s, 0.6, 0.006)
    assert near(tally.connect.spread().p50_s, 0.01, 0.006)
    assert near(tally.late.spread().p50_s, 0.25, 0.006)
    assert tally.gap.spread().count == 27
    assert near(tally.gap.spread().p50_s, 0.1, 0.02)
    assert tally.tokens == 50, "the server's usage where it is known"
    assert (tally.first_t, tally.last_t) == (0.0, 9.6)


def test_what_is_kept_is_bounded() -> None:
    tally = Tally(void=lambda _: False)
    for number in range(1000):
        tally.feed(start(number))
        tally.feed(end(number, "error", None, f"reason {number}"))
    tally.settle()
    assert len(tally.reasons) == REASONS
    assert len(tally.examples) == EXAMPLES


def test_what_a_server_says_is_printed_as_it_is() -> None:
    tally = Tally(void=lambda _: False)
    tally.feed(start(1))
    tally.feed(end(1, "error", None, "the server said: [/bold] [red]no | tail"))
    tally.settle()
    printed = io.StringIO()
    for table in summary_tables(tally, url="http://[::1]:5", model="org/[x]"):
        Console(file=printed, width=100).print(table)
    assert "[/bold] [red]no" in printed.getvalue()
    assert "org/[x] at http://[::1]:5" in printed.getvalue()


def test_beside_the_good_stand_the_same_with_failures_as_infinite() -> None:
    tally = Tally(void=lambda _: False)
    for number in range(10):
        tally.feed(start(number))
        tally.feed(end(number, "error" if number < 2 else "completed", evidence="no"))
    tally.settle()
    found = summary(tally, url="", model="", journal=None, stood_still_s=0.0)
    for name in ("ttft", "itl", "e2el", "ttft_due", "e2el_due"):
        good, beside = found["times"][name], found["times_failures_infinite"][name]
        assert near(beside["p50_s"], good["p50_s"], 0.02)
        assert (good["p99_s"], beside["p90_s"], beside["p99_s"]) == (pytest.approx(good["p50_s"], rel=0.02), None, None)
    printed = io.StringIO()
    Console(file=printed, width=160).print(summary_tables(tally, url="", model="")[1])
    assert "(∞)" in next(line for line in printed.getvalue().splitlines() if " E2EL " in line)
