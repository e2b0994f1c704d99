"""Times and tokens of requests put together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rig.analysis.intake.attempts import ROW, Rows, Ways, row_of
from rig.analysis.requests.counts import Counts, Latencies, Objectives, Timed
from rig.journal.records import Gaps, RequestEnded
from rig.load.sketch import GapSketch, LogSketch


def ended(**more: Any) -> RequestEnded:
    """Of five tokens from 10.5 to 12.5 s."""
    given: dict[str, Any] = {"t": 13.0, "id": "r", "outcome": "completed", "started_t": 10.0, "ended_t": 13.0}
    given |= {"first_token_t": 10.5, "last_token_t": 12.5, "tokens": 5}
    return RequestEnded(**(given | more))


def gaps(*lengths_s: float) -> Gaps:
    sketch = GapSketch()
    for length_s in lengths_s:
        sketch.add(length_s)
    return Gaps(count=len(lengths_s), sum_s=sum(lengths_s), max_s=max(lengths_s, default=0.0), sketch=sketch.record())


def latencies(*ends: RequestEnded, streamed: bool = True, objectives: Objectives | None = None) -> Latencies:
    found = Latencies()
    found.add(timed(*ends, streamed=streamed), np.full(len(ends), 10.0), objectives or Objectives())
    return found


def timed(*ends: RequestEnded, streamed: bool = True) -> Timed:
    rows = np.array([row_of(0, None, end) for end in ends], dtype=ROW)
    sketches = [(int(bucket), count) for end in ends for bucket, count in end.gaps.sketch.items()]
    return Timed(Rows(rows, Ways()), np.array(sketches, dtype=np.int32).reshape(-1, 2), streamed=streamed)


def p50(sketch: LogSketch) -> float | None:
    value = sketch.quantile(0.5)
    return None if value is None else round(value, 1)


def test_times_of_a_stream() -> None:
    found = latencies(ended())
    assert (p50(found.ttft), p50(found.itl), p50(found.e2el), found.tokens) == (0.5, 0.5, 3.0, 5)


def test_what_the_target_counted_goes_before_what_was_counted() -> None:
    found = latencies(ended(usage_tokens=3))
    assert (p50(found.itl), found.tokens) == (1.0, 3)


def test_a_distance_takes_two_tokens() -> None:
    assert p50(latencies(ended(tokens=2)).itl) == 2.0
    assert p50(latencies(ended(tokens=1)).itl) is None
    assert p50(latencies(ended(last_token_t=None)).itl) is None


def test_without_a_first_token_there_is_only_the_whole() -> None:
    found = latencies(ended(first_token_t=None))
    assert (p50(found.ttft), p50(found.itl), p50(found.e2el)) == (None, None, 3.0)


def test_what_is_not_streamed_has_only_the_whole() -> None:
    found = latencies(ended(), streamed=False)
    assert (p50(found.ttft), p50(found.itl), p50(found.e2el)) == (None, None, 3.0)


def test_failures_count_as_infinite_where_they_would_have_had_a_time() -> None:
    lost = ended(outcome="lost", how="hung")
    streamed = latencies(ended(), lost).quantiles()
    assert streamed["ttft"].with_failures[1:] == (math.inf, math.inf)
    assert streamed["e2el"].with_failures[1:] == (math.inf, math.inf)
    assert (streamed["ttft"].count, streamed["e2el"].good[2]) == (1, pytest.approx(3.0, rel=0.02))
    whole = latencies(ended(), lost, streamed=False)
    assert (whole.good, whole.failed, whole.failed_streamed, whole.tokens) == (1, 1, 0, 10)
    assert whole.quantiles()["ttft"].with_failures == (None, None, None)
    assert whole.quantiles()["e2el"].with_failures[2] == math.inf


def test_gaps_between_chunks_are_those_of_all_failures_as_well() -> None:
    found = latencies(ended(gaps=gaps(0.1, 0.4)), ended(outcome="error", gaps=gaps(0.1)), ended())
    assert found.chunk_gap.counts == {int(key): count for key, count in gaps(0.1, 0.1, 0.4).sketch.items()}
    assert found.gap_max_s == 0.4


def test_of_all_together() -> None:
    one = latencies(ended(gaps=gaps(0.1)), ended(outcome="error"), objectives=Objectives(e2el_s=3.0))
    other = latencies(ended(first_token_t=12.0, ended_t=16.0, gaps=gaps(0.7)), ended(outcome="lost"))
    one.take(other)
    assert (one.good, one.failed, one.failed_streamed, one.met, one.tokens, one.gap_max_s) == (2, 2, 2, 2, 20, 0.7)
    assert one.chunk_gap.counts == {int(key): count for key, count in gaps(0.1, 0.7).sketch.items()}
    assert [sum(sketch.counts.values()) for sketch in (one.ttft, one.itl, one.e2el)] == [2, 2, 2]
    other.take(latencies(ended(gaps=gaps(0.2))))
    assert other.gap_max_s == 0.7


@pytest.mark.parametrize(
    ("objectives", "met"),
    [
        (Objectives(), True),
        (Objectives(ttft_s=0.5, itl_s=0.5, e2el_s=3.0), True),  # just so is met
        (Objectives(ttft_s=0.49), False),
        (Objectives(itl_s=0.49), False),
        (Objectives(e2el_s=2.9), False),
    ],
)
def test_objectives(objectives: Objectives, met: bool) -> None:  # noqa: FBT001
    assert latencies(ended(), objectives=objectives).met == met
    unknown = np.array([np.nan])
    assert objectives.met(unknown, unknown, np.array([0.0])).tolist() == [True]


def test_each_of_a_batch_has_its_own_beginning_and_its_own_times() -> None:
    ends = [ended(), ended(outcome="error"), ended(tokens=1), ended(first_token_t=12.25, last_token_t=None)]
    from_t = np.array([10.0, 0.0, 10.25, 12.0])
    found = Latencies()
    found.add(timed(*ends), from_t, Objectives(ttft_s=0.3, e2el_s=2.8))
    assert [sketch.counts for sketch in (found.ttft, found.itl, found.e2el)] == [
        held_of(0.5, 0.25, 0.25),
        held_of(0.5),
        held_of(3.0, 2.75, 1.0),
    ]
    assert (found.good, found.failed, found.met, found.tokens) == (3, 1, 2, 16)


def held_of(*values_s: float) -> dict[int, int]:
    sketch = LogSketch()
    for value_s in values_s:
        sketch.add(value_s)
    return sketch.counts


def test_the_headline_says_how_much_it_leaves_out() -> None:
    assert Counts(started=10, own_node=2, void=1).excluded_share == pytest.approx(0.3)
    assert Counts().excluded_share == 0.0


def test_a_quantile_of_one() -> None:
    sketch = LogSketch()
    sketch.add(1.0)
    assert sketch.quantiles((0.1, 0.5, 0.6), infinite=1) == [pytest.approx(1.0, rel=0.03)] * 2 + [math.inf]
