"""Points, counts over time and lanes: what plots are drawn from."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rig.analysis.analyse import analyse
from rig.journal.records import (
    AnyRecord,
    MasterSeen,
    NodeMemory,
    Own,
    Reachability,
    RequestStarted,
    ViewChanged,
)
from rig.report.joined import Joined
from rig.report.lanes import Lanes, Samples, Track
from rig.report.points import MAX_COMPLETED, Bins, Requests, Thinned
from rig.report.series import gather
from rig.report.write import read_report
from tests.analysis.generate import Shape, info_of, records_of
from tests.analysis.tape import A, Tape


def view(t: float, node: str, facet: Any, value: Any) -> ViewChanged:
    return ViewChanged(t=t, node=node, facet=facet, since_t=None, value=value)


def instance(model: str = A, **runners: str) -> dict[str, Any]:
    return {"model": model, "runners": runners, "port": 1}


def lanes(*records: AnyRecord) -> Lanes:
    found = Lanes()
    for record in records:
        found.feed(record)
    return found


def spans(track: Track) -> list[tuple[float, float | None, str]]:
    return [(span.from_t, span.to_t, span.state) for span in track.spans]


def test_points_and_bins_agree_with_the_tables(lossy_run: Path) -> None:
    found = read_report(lossy_run)
    total, bins = found.analysis.requests.total, found.series.requests.bins.columns
    sums = {name: round(sum(values)) for name, values in bins.items()}
    latencies = found.analysis.requests.all_latencies()
    assert sums == {
        "started": total.started, "completed": total.completed, "error": total.error, "lost": total.lost,
        "void": total.void, "unfinished": total.unfinished, "tokens": latencies.tokens,
    }  # fmt: skip
    fates = [point.fate for point in found.series.requests.points()]
    assert (fates.count("lost"), fates.count("error"), len(fates)) == (total.lost, total.error, total.started)


def test_what_never_ended_is_a_point_as_long_as_it_was_seen() -> None:
    tape = Tape()
    name = tape.started(10)
    tape.end(25)
    _, series = gather(tape.info, tape.records())
    (point,) = [one for one in series.requests.points() if one.fate == "unfinished"]
    assert (point.id, point.due_t, point.duration_s) == (name, 10, 15)


def test_a_point_of_an_open_loop_counts_from_when_it_was_due() -> None:
    """As the tables do: what the rig or its bound held back shows in the plot."""
    tape = Tape(workload={"name": "w", "models": [{"model": A}], "arrivals": {"kind": "poisson", "rate": 1.0}})
    tape.ok(20, 21, first_token_t=20.5, last_token_t=21)
    tape.started(22)
    records = [
        msgspec.structs.replace(record, planned_t=15.0) if isinstance(record, RequestStarted) else record
        for record in tape.records()
    ]
    _, series = gather(tape.info, records)
    ended, open_ = series.requests.points()
    assert (ended.due_t, ended.duration_s, ended.ttft_s) == (15, 6, 5.5)
    assert (open_.due_t, open_.duration_s, open_.fate) == (15, 7, "unfinished")


def test_thinning_keeps_to_its_bound_and_counts_what_it_left_out() -> None:
    shape = Shape(requests=300, faults=0, duration_s=300, views=3)
    whole = gather(info_of(shape), records_of(shape))[1].requests.points()
    thinned = Thinned(64)
    thinned.add(100, lambda asked: [whole[at] for at in asked])
    for point in whole[100:]:
        thinned.add(1, lambda _, point=point: [point])
    assert 32 <= len(thinned.kept) < 64
    assert thinned.seen == 300
    positions = [whole.index(point) for point in thinned.kept]
    assert {later - earlier for earlier, later in itertools.pairwise(positions)} == {8}


def test_a_long_run_keeps_every_failure() -> None:
    requests = Requests(completed=Thinned(10))
    shape = Shape(requests=200, faults=4, duration_s=400, views=3, lost_share=1.0)
    joined: list[Joined] = []
    gather(info_of(shape), records_of(shape), joined.append)
    analyse(info_of(shape), records_of(shape), listener=requests)
    load = [one for one in joined if one.start.source == "load"]
    failed = sum(one.fate != "completed" for one in load)
    assert len(requests.failed.kept) == failed > 0
    assert requests.left_out == len(load) - failed - len(requests.completed.kept)
    assert MAX_COMPLETED > 16_000


def test_bins_widen_and_lose_nothing() -> None:
    bins = Bins(("a", "b"), width_s=1.0, limit=8)
    for second in range(100):
        bins.add("a", second + 0.5)
    bins.spread("b", 0.0, 100.0, 50.0)
    assert bins.width_s == 16.0
    assert len(bins) == 7
    assert bins.columns["a"] == [16, 16, 16, 16, 16, 16, 4]
    assert bins.columns["b"] == pytest.approx([8, 8, 8, 8, 8, 8, 2])


def test_a_track_closes_one_state_when_the_next_begins() -> None:
    track = Track()
    for at_t, state in ((1.0, "a"), (2.0, "a"), (3.0, "b"), (5.0, None), (8.0, "a")):
        track.set(at_t, state)
    assert spans(track) == [(1.0, 3.0, "a"), (3.0, 5.0, "b"), (8.0, None, "a")]


def test_samples_keep_the_peaks() -> None:
    samples = Samples(limit=8)
    for second in range(40):
        samples.add(second, 100.0 if second == 17 else 1.0)
    assert len(samples.kept) < 8
    assert max(sample.value for sample in samples.kept) == 100.0


def test_instances_are_as_the_master_sees_them() -> None:
    found = lanes(
        view(1, "n1", "instances", {"i": instance(x="r1", y="r2")}),
        view(1, "n2", "instances", {"i": instance(x="r1", y="r2"), "old": instance(x="r0")}),
        MasterSeen(t=1, node="n1", is_master=True, source="log", at_t=1),
        view(2, "n1", "runners", {"r1": "RunnerReady", "r2": "RunnerLoading"}),
        view(3, "n1", "runners", {"r1": "RunnerRunning", "r2": "RunnerReady"}),
        view(4, "n2", "runners", {"r1": "RunnerFailed"}),
        view(5, "n1", "runners", {"r1": "RunnerFailed", "r2": "RunnerReady"}),
        view(6, "n1", "instances", {}),
        view(7, "n2", "instances", {}),
    )
    assert spans(found.instances["i"].track)[-4:] == [
        (2, 3, "starting"), (3, 5, "ready"), (5, 6, "failed"), (6, 7, "elsewhere"),
    ]  # fmt: skip
    assert spans(found.instances["old"].track)[-1][2] == "elsewhere"


def test_a_silent_node_lists_nothing() -> None:
    found = lanes(
        view(1, "n1", "instances", {"i": instance(x="r")}),
        Reachability(t=4, node="n1", since_t=3, reachable=False),
        Reachability(t=9, node="n1", since_t=8, reachable=True),
    )
    assert spans(found.instances["i"].track) == [(1, 4, "listed"), (9, None, "listed")]
    assert spans(found.nodes["n1"].reach) == [(4, 9, "silent"), (9, None, "answers")]


def test_memory_is_that_of_the_node_itself() -> None:
    found = lanes(
        view(1, "n1", "node_id", "id-1"),
        view(2, "n1", "memory", {"id-1": 100, "id-2": 7}),
        view(3, "n2", "memory", {"id-1": 5}),
        NodeMemory(t=4, node="n2", look="before", fault=0, available_bytes=50, wired_bytes=None),
    )
    assert [(sample.t, sample.value) for sample in found.nodes["n1"].memory.kept] == [(2, 100)]
    assert found.nodes["n2"].memory.kept == []
    assert [sample.value for sample in found.nodes["n2"].measured.kept] == [50]


def test_what_the_controller_is_to_blame_for_is_void() -> None:
    tape = Tape()
    name = tape.lost(1, 10, "hung")
    tape.add(Own(t=10.2, interval_s=1.0, lag_max_s=5.0, cpu_percent=1.0, rss_bytes=1, open_files=1, wall_drift_s=0.0))
    tape.end(20)
    analysis, series = gather(tape.info, tape.records())
    assert analysis.requests.total.void == 1
    assert [(point.id, point.fate) for point in series.requests.points()] == [(name, "void")]
    assert sum(series.requests.bins.columns["void"]) == 1
    assert sum(series.requests.bins.columns["lost"]) == 0
