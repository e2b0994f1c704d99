"""When requests are due: spacings, rates over time, replays; and lengths."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from random import Random
from statistics import fmean, pstdev
from typing import Any

import pytest

from rig.config.traces import TraceRow
from rig.config.workload import Arrivals, Lengths, Stage, Workload
from rig.load.arrivals import at_rate, due, replayed, spaced
from rig.load.draw import Draw, length


def arrivals(**values: Any) -> Arrivals:
    return Arrivals.model_validate(values)


def times(given: Arrivals, count: int) -> list[float]:
    return [one.at_s for one in islice(due(given, Random(3)), count)]


@pytest.mark.parametrize(("burstiness", "variation"), [(0.25, 2.0), (1.0, 1.0), (16.0, 0.25)])
def test_gamma_gaps_are_as_bursty_as_asked(burstiness: float, variation: float) -> None:
    at = times(arrivals(kind="gamma", rate=20.0, burstiness=burstiness), 20_000)
    gaps = [later - earlier for earlier, later in pairwise([0.0, *at])]
    assert fmean(gaps) == pytest.approx(0.05, rel=0.05)
    assert pstdev(gaps) / fmean(gaps) == pytest.approx(variation, rel=0.06)


def test_bursts_come_together_and_keep_the_rate() -> None:
    at = times(arrivals(kind="burst", rate=10.0, burst=5), 1000)
    assert at[:6] == [0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert set(Counter(at).values()) == {5}
    assert at[-1] == pytest.approx(100.0)


def test_a_ramp_and_what_follows_it() -> None:
    stages = [
        {"duration": 10.0, "rate": 0.0, "to": 10.0},
        {"duration": 5.0, "rate": 0.0},
        {"duration": 4.0, "rate": 2.0},
    ]
    at = times(arrivals(kind="constant", stages=stages), 100)
    assert sum(t <= 10 for t in at) == 50, "the area of the ramp"
    assert sum(t <= 5 for t in at) == 12, "a quarter of it in its first half"
    assert not any(10 < t < 15 for t in at)
    assert at[50:54] == pytest.approx([15.5, 16.0, 16.5, 17.0])
    assert at[-1] > 30, "the last rate goes on"
    assert at == sorted(at)


def test_a_ramp_down_to_nothing_ends_the_load() -> None:
    at = list(at_rate(spaced("constant", Random(1)), [Stage(duration=10.0, rate=4.0, to=0.0)]))
    assert len(at) == 20
    assert at[-1] == pytest.approx(10.0)


def test_independent_arrivals_follow_the_rate_too() -> None:
    stages = [{"duration": 100.0, "rate": 5.0}, {"duration": 100.0, "rate": 50.0}]
    at = times(arrivals(kind="poisson", stages=stages), 5500)
    assert sum(t < 100 for t in at) == pytest.approx(500, rel=0.15)
    assert sum(100 <= t < 200 for t in at) == pytest.approx(5000, rel=0.05)


def test_a_replay_keeps_times_and_lengths_and_begins_again() -> None:
    trace = [TraceRow(0.0, 100, 10), TraceRow(1.0, 200, 20), TraceRow(4.0, 300, 30)]
    found = list(islice(replayed(trace, 2.0), 7))
    assert [one.at_s for one in found] == [0.0, 0.5, 2.0, 3.0, 3.5, 5.0, 6.0], "6 s long, at twice the speed"
    assert [(one.prompt_tokens, one.output_tokens) for one in found[:4]] == [(100, 10), (200, 20), (300, 30), (100, 10)]


def test_a_trace_of_one_moment_does_not_repeat_without_end_at_once() -> None:
    found = list(islice(replayed([TraceRow(0.0, 1, 1)] * 3, 1.0), 7))
    assert found[-1].at_s > 0


def test_prompts_of_a_replay_begin_alike_as_far_as_their_blocks_do() -> None:
    trace = [TraceRow(0.0, 1300, 9, (7, 8, 9)), TraceRow(1.0, 1100, 9, (7, 8, 5)), TraceRow(2.0, 600, 9)]
    workload = Workload.model_validate({"name": "t", "models": [{"model": "m"}]})
    draw = Draw(workload, 1, "arrivals")
    found = list(islice(replayed(trace, 1.0), 4))
    first, second, plain, again = (
        draw.next(one.prompt_tokens, one.output_tokens, one.blocks).prompt.split() for one in found
    )
    assert [len(words) for words in (first, second, plain, again)] == [1300, 1100, 600, 1300]
    assert first[:1024] == second[:1024], "two blocks of 512 tokens"
    assert first[1024:1032] != second[1024:1032], "and then a block of its own"
    assert first[:8] != first[512:520], "no block is like another"
    assert plain[:8] != first[:8]
    assert again[:8] != first[:8], "what comes around again is new to a prefix cache"
    other = Draw(workload, 2, "arrivals").next(1300, 9, found[0].blocks).prompt.split()
    assert other[:8] != first[:8], "so is another run"


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_lengths_from_distributions(shape: str) -> None:
    lengths = Lengths.model_validate({"low": 1, "high": 100_000, "shape": shape, "mean": 500.0, "deviation": 100.0})
    rng = Random(1)
    drawn = [length(lengths, rng) for _ in range(5000)]
    assert fmean(drawn) == pytest.approx(500, rel=0.02)
    assert pstdev(drawn) == pytest.approx(100, rel=0.06)
    skew = fmean(((value - fmean(drawn)) / pstdev(drawn)) ** 3 for value in drawn[:2000])
    assert (skew > 0.3) == (shape == "lognormal")


def test_lengths_stay_in_their_range() -> None:
    rng = Random(1)
    narrow = Lengths(low=90, high=110, shape="normal", mean=100.0, deviation=50.0)
    assert {length(narrow, rng) for _ in range(2000)} == set(range(90, 111))
    hopeless = Lengths(low=1, high=2, shape="lognormal", mean=2.0, deviation=1e6)
    assert all(length(hopeless, rng) in (1, 2) for _ in range(20))
    assert {length(Lengths(low=7, high=7, shape="normal"), rng) for _ in range(9)} == {7}


def test_pairs_keep_prompt_and_output_together() -> None:
    workload = Workload.model_validate({"name": "t", "models": [{"model": "m"}]})
    draw = Draw(workload, 1, "c", [(10, 1), (20, 2), (30, 3)])
    drawn = [draw.next() for _ in range(200)]
    assert {(one.prompt_tokens, one.max_tokens) for one in drawn} == {(10, 1), (20, 2), (30, 3)}
    assert all(len(one.prompt.split()) == one.prompt_tokens for one in drawn)
    given = draw.next(5000, 6)
    assert (len(given.prompt.split()), given.max_tokens) == (5000, 6)
