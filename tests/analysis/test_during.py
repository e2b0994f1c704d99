"""How long requests took while a fault went on: which requests are in a window, and what is made of them."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import msgspec
import pytest

from rig.analysis.analyse import Analysis, analyse
from rig.analysis.requests.settled import Settled
from rig.analysis.verdict import verdict_of
from rig.journal.records import RequestStarted
from rig.report.json import report_json
from rig.report.tables import during
from tests.analysis.generate import Shape, info_of, records_of
from tests.analysis.tape import A, B, Tape


class Ended(NamedTuple):
    id: str
    model: str
    started_t: float
    ended_t: float
    ok: bool
    void: bool


class Windows:
    """What the load was said to have been in, by request."""

    def __init__(self) -> None:
        self.faults: defaultdict[str, list[int]] = defaultdict(list)
        self.ended: list[Ended] = []

    def settled(self, batch: Settled) -> None:
        attempts = batch.attempts
        codes: list[int] = attempts.way.tolist()
        for at, code in enumerate(codes):
            way, void = attempts.ways[code], bool(batch.void[at])
            if way.source == "load":
                times = float(attempts.started_t[at]), float(attempts.ended_t[at])
                self.ended.append(Ended(attempts.id(at), way.model, *times, bool(attempts.ok[at]), void))
        for fault, places in batch.windows:
            for at in places.tolist():
                self.faults[attempts.id(at)].append(fault)

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        """Has no end to be in a window with."""


def heard(tape: Tape) -> tuple[Analysis, Windows]:
    windows = Windows()
    return analyse(tape.info, tape.records(), listener=windows), windows


def test_a_window_is_from_the_strike_to_the_sustained_recovery_of_the_model() -> None:
    tape = Tape(models=(A, B))
    tape.steady(1, 60, entry="node-3", step_s=7)
    before = tape.ok(90, 99.9, entry="node-3")
    across = tape.ok(91, 100.1, entry="node-3")
    tape.fault(0, "partition", 100, 110)
    tape.error(101, 105, entry="node-3")
    inside = tape.ok(102, 112, entry="node-3")
    last = tape.ok(113, 118, entry="node-3")  # the first success that is sent after the heal: sustained at 118
    edge = tape.ok(117.9, 130, entry="node-3")
    after = tape.ok(118.1, 130, entry="node-3")
    tape.steady(131, 170, entry="node-3")
    of_b = tape.ok(109.9, 111, B, entry="node-3")  # the model was unaffected: to the heal, at 110
    after_b = tape.ok(110.1, 111, B, entry="node-3")
    tape.steady(112, 170, B, entry="node-3")
    analysis, windows = heard(tape)
    assert {one.model: one.recovery_class for one in analysis.recoveries} == {A: "unknown", B: "unaffected"}
    assert set(windows.faults) >= {across, inside, last, edge, of_b}
    assert not {before, after, after_b} & set(windows.faults)
    times = analysis.during["partition"]
    assert (times.windows, times.length_s) == (2, pytest.approx(18 + 10))
    assert (times.latencies.good, times.latencies.failed) == (5, 1)
    assert times.latencies.e2el.quantile(1.0) == pytest.approx(12.1, rel=0.03)


def test_failures_are_infinite_and_what_is_void_is_no_failure() -> None:
    tape = Tape(workload={"name": "w", "models": [{"model": A}], "objectives": {"e2el": 3.0}})
    for second in range(1, 400):
        tape.own(float(second), lag_s=2.5 if second == 221 else 0.01)
    tape.fault(0, "partition", 100, 110)
    tape.error(101, 102, entry="node-3")
    tape.lost(100.5, 220.5, "hung", entry="node-3")  # void: the controller stalled at its deadline
    tape.ok(103, 105, entry="node-3")
    tape.ok(104, 109, entry="node-3")
    tape.steady(111, 160, entry="node-3", step_s=5)
    tape.end(400)
    analysis, _ = heard(tape)
    latencies = analysis.during["partition"].latencies
    assert analysis.requests.total.void == 1
    assert (latencies.good, latencies.failed, latencies.met) == (3, 1, 2)
    reported = report_json(analysis, verdict_of(analysis))["latency_by_fault"]["partition"]
    assert reported["e2el"]["good"]["p90_s"] == pytest.approx(5, rel=0.03)
    assert reported["e2el"]["failures_infinite"]["p90_s"] is None
    assert (reported["windows"], reported["failed"]) == (1, 1)
    table = during(analysis)
    assert table is not None
    assert [column.heading for column in table.columns[:7]] == [
        "fault", "windows", "total length", "completed", "failed", "met", "TTFT p50",
    ]  # fmt: skip
    assert table.rows[0][:6] == ("partition", "1", "11.2 s", "3", "1", "50.0 %")
    assert "(∞)" in table.rows[0][-1]


def test_an_open_loop_counts_from_when_each_was_due() -> None:
    tape = Tape(workload={"name": "w", "models": [{"model": A}], "arrivals": {"kind": "poisson", "rate": 1.0}})
    tape.fault(0, "partition", 100, 110)
    name = tape.ok(105, 106, entry="node-3")
    records = [
        msgspec.structs.replace(one, planned_t=101.0) if isinstance(one, RequestStarted) and one.id == name else one
        for one in tape.records()
    ]
    analysis = analyse(tape.info, records)
    assert analysis.during["partition"].latencies.e2el.quantile(1.0) == pytest.approx(5, rel=0.03)


def test_a_request_in_two_windows_counts_for_both_kinds_and_once_in_each() -> None:
    tape = Tape()
    tape.fault(0, "partition", 100, 110)
    tape.fault(1, "freeze", 120, 125)
    tape.fault(2, "partition", 130, 135)
    tape.ok(105, 140, entry="node-3")
    tape.steady(140, 190, entry="node-3")
    analysis, windows = heard(tape)
    assert max(windows.faults.values(), key=len) == [0, 1, 2]
    assert {kind: times.latencies.good for kind, times in analysis.during.items()} == {"partition": 1, "freeze": 1}
    assert {kind: times.windows for kind, times in analysis.during.items()} == {"partition": 2, "freeze": 1}


def test_what_had_no_effect_has_no_window() -> None:
    tape = Tape()
    tape.add(tape.change(0, "freeze", "leased", 99), tape.change(0, "freeze", "ineffective", 100, reason="no"))
    tape.steady(90, 130)
    analysis, windows = heard(tape)
    assert analysis.during == {}
    assert during(analysis) is None
    assert windows.faults == {}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_many_batches_it_is_what_comparing_every_request_with_every_recovery_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.analysis.analyse.AT_ONCE", 97)
    monkeypatch.setattr("rig.analysis.intake.batches.RECORDS", 173)
    shape = Shape(seed=seed, faults=9, requests=2500, duration_s=900.0, lost_share=0.2)
    windows = Windows()
    analysis = analyse(info_of(shape), records_of(shape), listener=windows)
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    good: defaultdict[str, set[str]] = defaultdict(set)
    failed: defaultdict[str, set[str]] = defaultdict(set)
    for recovery in analysis.recoveries:
        sustained_s = recovery.sustained_from_strike_s
        end_t = recovery.until_t if sustained_s is None else recovery.strike_t + sustained_s
        if recovery.recovery_class == "unaffected" and recovery.heal_t is not None:
            end_t = recovery.heal_t
        for one in windows.ended:
            if one.model == recovery.model and one.started_t <= end_t and one.ended_t >= recovery.strike_t:
                wanted[one.id].append(recovery.fault)
                if not one.void:
                    (good if one.ok else failed)[recovery.fault_kind].add(one.id)
    assert len(wanted) > 50
    assert {name: sorted(faults) for name, faults in windows.faults.items()} == {
        name: sorted(faults) for name, faults in wanted.items()
    }
    found = {kind: (times.latencies.good, times.latencies.failed) for kind, times in analysis.during.items()}
    assert found == {kind: (len(good[kind]), len(failed[kind])) for kind in found}
    assert sum(count for _, count in found.values()) > 0
