"""Arrivals, lengths, objectives and traces in a workload: what is taken, and what is said of what is not."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from rig.clock import Pace
from rig.config import traces
from rig.config.paced import paced_workload
from rig.config.read import load_workload
from rig.config.traces import MAX_ROWS, TraceRow, period_s, read_trace
from rig.config.workload import Arrivals, Objectives, Stage
from rig.errors import ConfigError

BEGIN = "name: w\nmodels: [{model: m}]\n"
SHORT = '{"timestamp": 0, "input_length": 10, "output_length": 5}\n'
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
        ("arrivals: {kind: poisson, rate: -3}\n", "w.yaml:3: arrivals.rate: expected more than 0, not -3"),
        ("arrivals: {kind: poisson, rate: 0}\n", "w.yaml:3: arrivals.rate: expected more than 0, not 0"),
        ("arrivals: {kind: poisson, rate: 1e9}\n", "w.yaml:3: arrivals.rate: expected at most 10000, not 1000000000"),
        ("arrivals: {kind: poisson, rate: .nan}\n", "w.yaml:3: arrivals.rate: expected a finite number, not nan"),
        ("arrivals: {kind: poisson, rate: fast}\n", "w.yaml:3: arrivals.rate: expected a number, not 'fast'"),
        (
            "arrivals: {kind: bursts, rate: 1}\n",
            "w.yaml:3: arrivals.kind: expected closed, constant, poisson, gamma, b",
        ),
        ("arrivals: {kind: poisson, stages: []}\n", "w.yaml:3: arrivals.stages: expected at least 1"),
        ("arrivals: {kind: poisson, stages: {rate: 1}}\n", "w.yaml:3: arrivals.stages: expected a list"),
        (
            "arrivals:\n  kind: poisson\n  stages:\n    - {duration: 5s, rate: 1}\n    - {duration: 5s, rate: -1}\n",
            "w.yaml:7: arrivals.stages[1].rate: expected at least 0, not -1",
        ),
        (
            "arrivals: {kind: poisson, stages: [{duration: 0s, rate: 1}]}\n",
            "w.yaml:3: arrivals.stages[0].duration: expected more than 0",
        ),
        (
            "arrivals: {kind: poisson, stages: [{duration: 5s, rate: 1, to: -2}]}\n",
            "w.yaml:3: arrivals.stages[0].to: expected at least 0, not -2",
        ),
        ("arrivals: {kind: poisson, stages: [{rate: 1}]}\n", "w.yaml:3: arrivals.stages[0].duration: missing: "),
        ("arrivals: {kind: poisson, stages: [{duration: 5s}]}\n", "w.yaml:3: arrivals.stages[0].rate: missing: "),
        ("arrivals: {kind: gamma, rate: 3, burstiness: 0}\n", "w.yaml:3: arrivals.burstiness: expected more than 0"),
        ("arrivals: {kind: burst, rate: 3}\n", "w.yaml:3: arrivals.burst: missing: expected with kind burst"),
        ("arrivals: {kind: burst, rate: 3, burst: 1}\n", "w.yaml:3: arrivals.burst: expected at least 2, not 1"),
        ("arrivals: {kind: burst, rate: 3, burst: 2.5}\n", "w.yaml:3: arrivals.burst: expected a whole number"),
        ("arrivals: {kind: poisson, rate: 3, speed: 2}\n", "w.yaml:3: arrivals.speed: expected only with kind replay"),
        ("arrivals: {kind: replay, trace: t, speed: 0}\n", "w.yaml:3: arrivals.speed: expected more than 0, not 0"),
        (
            "arrivals: {kind: poisson, rate: 3, max_concurrency: 0}\n",
            "w.yaml:3: arrivals.max_concurrency: expected at least 1, not 0",
        ),
        (
            "arrivals: {kind: poisson, rate: 3, max_concurrency: 5000}\n",
            "w.yaml:3: arrivals.max_concurrency: expected at most 4096, not 5000",
        ),
        ("arrivals: {max_concurrency: 10}\n", "w.yaml:3: arrivals.max_concurrency: expected only with open-loop kinds"),
        (
            "clients: 3\narrivals: {kind: poisson, rate: 3}\n",
            "w.yaml:3: clients: expected only with kind closed, not p",
        ),
        (
            "prompt_tokens: {low: 5, high: 9}\narrivals: {kind: replay, trace: sample-trace.jsonl}\n",
            "w.yaml:3: prompt_tokens: expected only without a replay: its trace has the lengths",
        ),
        (
            "output_tokens: {low: 5, high: 9}\npairs: sample-trace.jsonl\n",
            "w.yaml:3: output_tokens: expected either this or `pairs`, which has the lengths, not both",
        ),
        ("objectives: {ttft: 0s}\n", "w.yaml:3: objectives.ttft: expected more than 0"),
        ("objectives: {itl: -5ms}\n", "w.yaml:3: objectives.itl: expected a duration such as"),
        ("objectives: 2s\n", "w.yaml:3: objectives: expected keys under it, not '2s'"),
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
    path.write_text(ROW + "\n" + ROW.replace("27482", "28482") + SHORT.replace("0", "30482", 1))
    rows = read_trace(str(path))
    assert rows[:] == [TraceRow(0.0, 6955, 52, (46, 47)), TraceRow(1.0, 6955, 52, (46, 47)), TraceRow(3.0, 10, 5)]
    assert rows[-1] == rows[2]
    assert period_s(rows) == 4.5


def test_a_large_trace_is_no_burden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run holds it for days beside everything else; ten times as many may be in it."""
    count = MAX_ROWS // 10
    path = tmp_path / "t.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"timestamp": {n}, "input_length": 600, "output_length": 9}}\n' for n in range(count))
    tracemalloc.start()
    try:
        rows = read_trace(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(rows), rows[count - 1]) == (count, TraceRow((count - 1) / 1000, 600, 9))
    assert peak < 60 * count
    monkeypatch.setattr(traces, "MAX_ROWS", count - 1)
    with pytest.raises(ConfigError, match=rf"t\.jsonl:{count}: expected at most {count - 1} rows: cut the file, as wi"):
        read_trace(str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            ROW + "{broken\n",
            "t.jsonl:2: no row of a trace: JSON is malformed: object keys must be strings (byte 1); exp",
        ),
        (ROW + "12, 5\n", 'expected one such as {"timestamp": 27482, "input_length": 6955, "output_length": 52}'),
        (ROW + '{"input_length": 1, "output_length": 1}\n', "t.jsonl:2: timestamp: missing: expected milliseconds"),
        (SHORT.replace("10", "0"), "t.jsonl:1: input_length: expected 1 to 1000000 tokens, not 0"),
        (SHORT.replace("5", "-5"), "t.jsonl:1: output_length: expected 1 to 1000000 tokens, not -5"),
        (SHORT.replace("10", "1.5"), "t.jsonl:1: no row of a trace: Expected `int`, got `float` - at `$.input_length`"),
        (SHORT.replace("0", "-3", 1), "t.jsonl:1: timestamp: expected 0 or more milliseconds, not -3"),
        (
            ROW + ROW.replace("27482", "27481"),
            "t.jsonl:2: timestamp: 27481 is before that of the row above (27482): expected rows in the order of time; "
            "sort the file by its timestamps",
        ),
        (
            ROW + ROW.replace("27482", "27482000000000"),
            "t.jsonl:2: timestamp: 27482000000000 is more than 30 days after the first: expected milliseconds",
        ),
        (SHORT[:-2] + ', "hash_ids": [1, 2]}\n', "t.jsonl:1: hash_ids: expected at most 1, one for 512 tokens of 10"),
        (SHORT[:-2] + ', "more": "' + "x" * (1 << 20) + '"}\n', "t.jsonl:1: expected a row of less than 1048576 bytes"),
        ("\n", "found none"),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError) as raised:
        read_trace(str(path))
    assert said in str(raised.value)
    if "timestamp" in said and "such as" not in said:
        assert len(read_trace(str(path), timed=False)) == content.count("\n"), "for lengths alone time does not matter"
