"""Arrivals, lengths, objectives and traces in a workload: what is taken, and what is said of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.clock import Pace
from rig.config.paced import paced_workload
from rig.config.read import load_workload
from rig.config.traces import period_s, read_trace
from rig.config.workload import Arrivals, Objectives, Stage
from rig.errors import ConfigError

BEGIN = "name: w\nmodels: [{model: m}]\n"
ROW = '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n'


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "w.yaml"
    path.write_text(BEGIN + text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arrivals: {kind: poisson}\n", "w.yaml:3: arrivals.rate: missing"),
        ("arrivals: {kind: closed, rate: 3}\n", "a closed loop has no rate"),
        ("arrivals: {kind: poisson, rate: 3, think: 1s}\n", "only with kind closed"),
        ("arrivals: {kind: gamma, rate: 3}\n", "burstiness: missing: expected with kind gamma"),
        ("arrivals: {kind: poisson, rate: 3, burst: 4}\n", "burst: expected only with kind burst, not poisson"),
        ("arrivals: {kind: replay}\n", "trace: missing"),
        ("arrivals: {kind: replay, trace: nowhere.jsonl}\n", "nowhere.jsonl: no such file"),
        ("pairs: nowhere.jsonl\n", "w.yaml:3: pairs: nowhere.jsonl: no such file"),
        ("arrivals: {kind: poisson, rate: 1, stages: [{duration: 5s, rate: 2}]}\n", "not both"),
        ("arrivals: {kind: poisson, stages: [{duration: 5s, rate: 0}]}\n", "at least one stage with a rate above 0"),
        ("arrivals: {kind: poisson, stages: [{duration: 5, rate: 2}]}\n", "expected a duration"),
        ("prompt_tokens: {low: 5, high: 9, mean: 7}\n", "only with shape normal or lognormal"),
        ("prompt_tokens: {low: 5, high: 9, shape: normal, mean: 70}\n", "between `low` and `high`"),
        ("objectives: {ttft: 2}\n", "expected a duration"),
        ("objectives: {tfft: 2s}\n", "did you mean `ttft`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_workload(written(tmp_path, text))
    assert said in str(raised.value)


def test_pace_reaches_stages_speed_and_objectives(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(ROW)
    text = "arrivals: {kind: poisson, stages: [{duration: 60s, rate: 1, to: 3}, {duration: 10s, rate: 2}]}\n"
    paced = paced_workload(load_workload(written(tmp_path, text + "objectives: {ttft: 2s, itl: 50ms}\n")), Pace(10))
    assert paced.arrivals == Arrivals(
        kind="poisson",
        stages=[Stage(duration=6.0, rate=10.0, to=30.0), Stage(duration=1.0, rate=20.0)],
    )
    assert paced.objectives == Objectives(ttft=0.2, itl=0.005)
    replay = load_workload(written(tmp_path, f"arrivals: {{kind: replay, trace: {trace}, speed: 2.0}}\n"))
    assert paced_workload(replay, Pace(10)).arrivals.speed == 20.0


def test_traces_are_read_as_they_are_published(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(ROW + "\n" + ROW.replace("27482", "30482").replace("6955", "10") + ROW.replace("27482", "28482"))
    rows = read_trace(str(path))
    assert [(row.at_s, row.prompt_tokens, row.output_tokens) for row in rows] == [
        (0.0, 6955, 52),
        (1.0, 6955, 52),
        (3.0, 10, 52),
    ]
    assert period_s(rows) == 4.5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ROW + "{broken\n", "t.jsonl:2: no row of a trace"),
        (ROW + '{"input_length": 1, "output_length": 1}\n', "t.jsonl:2: missing: timestamp"),
        ('{"timestamp": 0, "input_length": 0, "output_length": 1}\n', "t.jsonl:1: expected lengths"),
        ("\n", "found none"),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError) as raised:
        read_trace(str(path))
    assert said in str(raised.value)
    if "timestamp" in said:
        assert len(read_trace(str(path), timed=False)) == 2
