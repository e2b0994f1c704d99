"""`rig compare` on made-up runs: silent when nothing changed, outspoken when something did."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import structs

from bench.compare_power import flagged, made_up, pair
from rig.analysis.checks.check import CheckResult
from rig.analysis.verdict import Verdict
from rig.cli.compare import compare as command
from rig.compare.compare import Comparison, Figure, compare
from rig.compare.samples import Samples, read_samples
from rig.compare.words import as_json, tables
from rig.errors import UsageError
from rig.journal.records import RunEnded
from rig.journal.run import RunInfo, read_info
from tests.analysis.generate import Shape, info_of, records_of, write_journal
from tests.analysis.tape import Tape

SMALL = Shape(duration_s=5400.0, faults=60, requests=700, views=30, baseline_s=120.0)
SHORT = Shape(duration_s=600.0, faults=6, requests=300, views=30)


def write(results: Path, name: str, shape: Shape = SHORT, **changes: Any) -> Path:
    return write_journal(results / name, info_of(shape, run=name, **changes), records_of(shape))


def figure(comparison: Comparison, name: str) -> Figure:
    return next(one for one in comparison.against[0].figures if one.name == name)


def changed(samples: Samples, **values: Any) -> Samples:
    return replace(samples, **values)


@pytest.fixture(scope="module")
def base() -> Samples:
    return made_up(SMALL)


def test_equal_runs_raise_nothing_and_slower_ones_are_found() -> None:
    """Few pairs here; `make compare-power` runs a hundred of each."""
    assert len(flagged(6, 1.0, SMALL)) <= 1
    assert len(flagged(6, 1.5, SMALL, first=100)) >= 4


def test_a_run_against_itself_is_neither_worse_nor_better(base: Samples) -> None:
    comparison = compare(base, [base])
    assert not comparison.regressed
    assert {one.word for one in comparison.against[0].figures} <= {"alike", "unclear", "too few"}


def test_alike_is_only_what_the_interval_shows_to_be_so(base: Samples) -> None:
    steady = changed(base, outage={"freeze": [10.0, 10.1, 10.2] * 20})
    assert figure(compare(steady, [steady]), "outage").word == "alike"
    spread = changed(base, outage={"freeze": [1.0, 10.0, 40.0]})
    assert figure(compare(spread, [spread]), "outage").word == "unclear"
    never = changed(base, outage={"freeze": [10.0, 10.1, 10.2] * 19 + [math.inf] * 3})
    assert figure(compare(steady, [never]), "outage").word != "alike"


def test_counts_are_alike_by_their_interval_too(base: Samples) -> None:
    """Three faults with an error each say little of the next ones; sixty do."""
    few = changed(base, failed={"freeze": [0.0, 1.0, 2.0]})
    assert figure(compare(few, [few]), "errors and lost").word == "unclear"
    many = changed(base, failed={"freeze": [1.0] * 60})
    assert figure(compare(many, [many]), "errors and lost").word == "alike"


def test_what_got_worse_is_named(base: Samples) -> None:
    slower = changed(base, serve={kind: [value * 1.8 for value in some] for kind, some in base.serve.items()})
    comparison = compare(base, [slower])
    assert "time to serve" in comparison.against[0].worse
    headline = figure(comparison, "time to serve")
    assert headline.change is not None
    assert headline.change.low > 1.0
    assert "outage" not in comparison.against[0].worse
    back = compare(slower, [base])
    assert not back.regressed
    assert "time to serve" in back.against[0].better


def test_what_never_recovers_counts_as_the_longest(base: Samples) -> None:
    """A fifth of the crashes is never served again: the median hardly moves."""
    stuck = {
        kind: [math.inf if index % 4 == 0 else value for index, value in enumerate(some)]
        for kind, some in base.serve.items()
    }
    comparison = compare(base, [changed(base, serve=stuck)])
    found = figure(comparison, "time to serve")
    assert found.head.endless == sum(math.ceil(len(some) / 4) for some in base.serve.values())
    assert found.test is not None
    assert found.test.p_worse < 0.05
    never = {kind: [math.inf] * len(some) for kind, some in base.serve.items()}
    assert "time to serve" in compare(base, [changed(base, serve=never)]).against[0].worse


def test_more_that_never_recover_matter_also_when_the_typical_time_is_the_same(base: Samples) -> None:
    usual = changed(base, serve={kind: [10.0] * 12 for kind in base.serve})
    worse = changed(base, serve={kind: [10.0] * 7 + [math.inf] * 5 for kind in base.serve})
    comparison = compare(usual, [worse])
    headline = figure(comparison, "time to serve")
    assert headline.change is not None
    assert headline.change.value == 1.0
    assert "time to serve" in comparison.against[0].worse


def test_a_difference_that_is_sure_but_small_does_not_matter(base: Samples) -> None:
    slightly = changed(base, ttft={model: [value * 1.03 for value in some] for model, some in base.ttft.items()})
    assert not compare(base, [slightly]).regressed
    much = changed(base, ttft={model: [value * 2 for value in some] for model, some in base.ttft.items()})
    assert [name for name in compare(base, [much]).against[0].worse if name.startswith("TTFT")]


def test_losses_after_faults_are_found(base: Samples) -> None:
    lossy = changed(base, lost={kind: [3.0] * len(some) for kind, some in base.lost.items()})
    comparison = compare(base, [lossy])
    assert comparison.against[0].worse == ["lost"]
    assert figure(comparison, "lost").change is not None


@pytest.mark.parametrize("before", ["pass", "unknown"])
def test_a_broken_promise_is_no_matter_of_chance(base: Samples, before: Literal["pass", "unknown"]) -> None:
    sound = changed(base, verdict=Verdict(before, ()))
    lost = CheckResult("no-request-lost", "none is lost", "fail", "1 of 700", ())
    broken = changed(base, verdict=Verdict("fail", (lost,)))
    assert compare(sound, [broken]).against[0].worse == [f"verdict: {before}, now fail (no-request-lost)"]
    assert compare(broken, [broken]).against[0].worse == []
    assert compare(broken, [sound]).against[0].worse == []


def test_the_exit_code_is_that_of_a_regression_only_where_it_is_asked_for(results: Path) -> None:
    write(results, "base", SMALL)
    write(results, "head", replace(SMALL, seed=2, lost_share=1.0))
    assert command(runs=["base", "head"]) == 0
    assert command(runs=["base", "head"], fail_on_regression=True) == 1
    assert command(runs=["base", "base"], fail_on_regression=True) == 0
    assert command(runs=["head", "base"], fail_on_regression=True) == 0


def test_several_heads_share_one_chance_of_a_false_alarm(base: Samples) -> None:
    slower = changed(base, serve={kind: [value * 1.8 for value in some] for kind, some in base.serve.items()})
    alone = figure(compare(base, [slower]), "time to serve")
    among = figure(compare(base, [slower, base, base, base]), "time to serve")
    assert alone.p_adjusted is not None
    assert among.p_adjusted is not None
    assert among.p_adjusted > alone.p_adjusted


OTHERS: dict[str, dict[str, Any]] = {
    "another inventory": {"inventory": {"name": "made-up", "nodes": {"node-1": {}, "node-2": {}}}},
    "another workload": {"workload": {"name": "chat", "models": [{"model": "lab/tiny-a"}]}},
    "another fault plan": {"plan": {"name": "keeper", "settle": 100.0, "kinds": {}, "requires": []}},
    "pace 1 against 10": {"pace": 10.0},
    "ran on the embedded cluster": {"embedded": True},
}


@pytest.mark.parametrize("reason", OTHERS)
def test_what_cannot_be_compared_is_said_to_be_so(results: Path, reason: str) -> None:
    write(results, "base")
    write(results, "head", **OTHERS[reason])
    with pytest.raises(UsageError, match=reason) as caught:
        command(runs=["base", "head"])
    assert caught.value.exit_code == 2
    assert command(runs=["base", "head"], force=True) == 0


def test_an_unfinished_run_is_not_compared(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(results, "base")
    write(results, "head", replace(SHORT, finished=False))
    with pytest.raises(UsageError, match="head did not finish"):
        command(runs=["base", "head"])
    assert command(runs=["base", "head"], force=True) == 0
    assert "NOT COMPARABLE (head did not finish)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes", [{"seed": 9}, {"rig_version": "9"}, {"duration_s": 700.0}, {"target_revisions": {"node-1": "abc"}}]
)
def test_what_may_be_just_what_is_compared_is_only_remarked(results: Path, changes: dict[str, Any]) -> None:
    write(results, "base")
    write(results, "head", **changes)
    assert command(runs=["base", "head"]) == 0


def test_ports_and_folders_of_an_embedded_cluster_do_not_matter(results: Path) -> None:
    for name, port in (("base", 1), ("head", 2)):
        nodes = {"node-1": {"ssh": {"host": "127.0.0.1", "port": port}, "api": f"http://127.0.0.1:{port}"}}
        write(results, name, embedded=True, behaviour="sound", inventory={"name": "embedded", "nodes": nodes})
    assert command(runs=["base", "head"]) == 0


def test_other_machines_do(results: Path) -> None:
    for name, host in (("base", "studio-1.local"), ("head", "studio-9.local")):
        write(results, name, inventory={"name": "x", "nodes": {"a": {"ssh": {"host": host}}}})
    with pytest.raises(UsageError, match=r"nodes\.a\.host"):
        command(runs=["base", "head"])


def test_one_run_is_not_a_comparison(results: Path) -> None:
    write(results, "base")
    with pytest.raises(UsageError, match="at least two"):
        command(runs=["base"])


def test_json_has_every_figure(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(results, "base")
    write(results, "head", replace(SHORT, seed=2))
    capsys.readouterr()
    assert command(runs=["base", "head"], as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    (against,) = found["against"]
    names = [one["figure"] for one in against["figures"]]
    assert {"time to serve", "outage", "errors and lost", "lost", "failing in calm weather"} <= set(names)
    assert {f"{name}, lab/tiny-{letter}" for name in ("TTFT", "ITL") for letter in "ab"} <= set(names)
    assert found["base"]["requests"]["started"] == 300
    assert found["regressed"] is (against["worse"] != [])


def test_markdown_folds_what_did_not_change(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(results, "base", SMALL)
    write(results, "head", replace(SMALL, seed=2, lost_share=1.0, slower=2.0))
    assert command(runs=["base", "head"], markdown=True) == 0
    shown, folded = capsys.readouterr().out.split("<details>")
    assert shown.startswith("## head against base: WORSE\n")
    assert re.search(r"^- \*\*WORSE\*\*: time to serve [\d.]+ s → [\d.]+ s; ", shown, re.MULTILINE)
    assert "| time to serve |" in shown
    assert "| no-request-lost | pass | fail |" in shown
    assert "| WORSE |" not in folded
    assert "| unclear |" in folded
    assert "| unclear |" not in shown
    assert command(runs=["base", "base"], markdown=True) == 0
    text = capsys.readouterr().out
    assert text.startswith("## base against base: no regression found\n")
    assert "| figure | base | n | head | n | head / base | p | p, all counted |  |" in text
    assert "worse: nothing beyond noise" in text


def test_an_aborted_head_is_the_worst_regression_and_no_error(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(results, "base")
    tape = Tape(run="head")
    tape.steady(0, 60)
    tape.fault(0, "freeze", 30.0, 35.0)
    tape.add(RunEnded(t=60, reason="aborted", detail="fault 0 could not be undone"))
    base = read_info(results / "base")
    head = write_journal(results / "head", structs.replace(base, run="head"), tape.records())
    assert command(runs=["base", "head"], fail_on_regression=True, markdown=True) == 1
    assert "**WORSE**: aborted after 60.0 s: fault 0 could not be undone" in capsys.readouterr().out
    with pytest.raises(UsageError, match="head did not finish"):
        command(runs=["head", "base"])
    assert read_samples(head).name == "head"


def test_infinite_values_are_no_json_but_counts(base: Samples) -> None:
    never = changed(base, serve={kind: [math.inf] * len(some) for kind, some in base.serve.items()})
    content = json.dumps(as_json(compare(base, [never])), allow_nan=False)
    affected = sum(len(some) for some in base.serve.values())
    assert affected > 50
    assert f'"endless": {affected}' in content
    worse = next(table for table in tables(compare(base, [never])) if table.rows[0][0] == "time to serve")
    assert worse.rows[0][3] == "∞ [∞ … ∞]"


def test_pairs_of_the_bench_are_runs_of_their_own() -> None:
    comparison = pair(3, 1.0, SHORT)
    seeds = [run.analysis.info.seed for run in (comparison.base, comparison.against[0].head)]
    assert seeds == [7, 8]
    assert isinstance(comparison.base.analysis.info, RunInfo)


def test_more_faults_of_the_slow_kind_are_not_slower(base: Samples) -> None:
    """By chance the head met the slow kind more often; each kind takes as long as it did."""
    fast, slow = [1.0, 1.1, 1.2, 1.3], [50.0, 51.0, 52.0, 53.0]
    one = changed(base, serve={"freeze": fast * 6, "node-crash": slow})
    other = changed(base, serve={"freeze": fast, "node-crash": slow * 6})
    assert compare(one, [other]).against[0].worse == []
