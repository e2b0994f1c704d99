"""What the whole says of a run beside its requests and recoveries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.analysis.analyse import AT_ONCE, analyse
from rig.analysis.recovery.figures import Figure
from rig.analysis.settings import settings_of
from rig.journal.records import ActivityDied, AnyRecord, Finding, PhaseStarted
from rig.targets.exo.judged import watched
from tests.analysis.checks.sessions import Session
from tests.analysis.checks.test_symptoms import agreeing, nodes
from tests.analysis.tape import A, B, Heard, Tape


def test_findings_are_counted_and_the_first_listed() -> None:
    tape = Tape()
    for t in range(205):
        tape.add(Finding(t=float(t), code="odd", text=f"{t}"))
    tape.add(ActivityDied(t=300.0, activity="load", detail="KeyError"))
    analysis = tape.analyse()
    assert (analysis.finding_count, len(analysis.findings), analysis.findings[0].t) == (205, 200, 0.0)
    assert [died.activity for died in analysis.died] == ["load"]


def test_a_run_is_finished_when_it_says_so() -> None:
    tape = Tape()
    tape.steady(1, 5)
    assert not tape.analyse().finished
    tape.end(10)
    assert tape.analyse().finished


def test_the_baseline_is_up_to_the_next_phase() -> None:
    tape = Tape()
    tape.add(PhaseStarted(t=1.0, phase="warmup"))
    tape.phase(5, "baseline")
    tape.phase(60, "faults")
    tape.phase(200, "drain")
    baseline = tape.analyse().baseline
    assert baseline is not None
    assert (baseline.from_t, baseline.to_t) == (5, 60)
    assert Tape().analyse().baseline is None


def test_requests_are_counted_as_the_run_goes_on() -> None:
    tape, heard = Tape(), Heard()
    tape.steady(1, AT_ONCE + 2000)

    def fed() -> Iterator[AnyRecord]:
        for record in tape.records():
            yield record
            assert heard.batches or record.t < AT_ONCE + 1000, "nothing was counted"

    assert analyse(tape.info, fed(), listener=heard).requests.total.completed == AT_ONCE + 1999
    assert sum(len(batch.attempts) for batch in heard.batches) == AT_ONCE + 1999


@pytest.mark.parametrize("drain_t", [None, 190])
def test_what_lasts_is_found_and_the_end_of_the_load_known(drain_t: float | None) -> None:
    tape = Tape((A, B))
    agreeing(tape)
    nodes(tape, 100, {"node-2": ["b"]})
    if drain_t is not None:
        tape.phase(drain_t, "drain")
        tape.phase(drain_t + 5, "drain")
    tape.end(199)
    watch = tape.analyse().watch
    assert len(watch.views.disagreeing.found) == 1
    assert watch.load_end_t == (199.5 if drain_t is None else drain_t - 0.5)


def test_a_session_ends_with_the_journal() -> None:
    tape = Tape((A, B))
    session = Session(tape)
    session.deploy(20)
    tape.ok(100, 250)
    (story,) = watched(tape.analyse()).stories
    assert story.chronicle.end.span.by_t == 250


def test_what_the_plan_does_not_say_is_as_by_default_at_the_pace_of_the_run() -> None:
    settings = settings_of(Tape(plan={"kinds": {"freeze": {}, "partition": {"weight": 0.0}}}, pace=2.0).info)
    assert (settings.sustained_s, settings.settle_s, settings.baseline_s, settings.tolerance_s) == (7.5, 120, 150, 0.5)
    assert settings.plan_kinds == ("freeze",)
    said = settings_of(Tape(plan={"sustained": 3, "settle": 50.5, "baseline": None}).info)
    assert (said.sustained_s, said.settle_s, said.baseline_s) == (3.0, 50.5, 300.0)


def test_a_kind_is_told_by_classes_groups_and_its_worst() -> None:
    tape = Tape((A, B))
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.steady(99, 330, B)
    tape.error(101, 102)
    tape.error(115, 115.1)
    tape.steady(120, 300)
    tape.fault(1, "freeze", 300, 310, hit=("node-3",))
    tape.error(301, 302)
    tape.steady(317, 330)
    tape.end(330)
    row = next(row for row in tape.analyse().kinds if row.kind == "freeze")
    assert {name: count for name, count in row.classes.items() if count} == {
        "unaffected": 2,
        "unknown": 1,
        "censored": 1,
    }
    assert (row.times["survived"].sustained.count, row.times["replaced"].sustained.count) == (0, 0)
    assert row.outage.worst == Figure(30.0, above=True)
    assert row.outage.median is not None
    assert row.outage.median.value_s == pytest.approx((20.2 + 30.0) / 2)
    assert row.resolution_worst_s == pytest.approx(7.0)
    served = row.times["affected"].serve_from_strike.worst
    assert served is not None
    assert served.value_s < 31


def test_what_lasts_is_watched_to_the_end_of_the_journal() -> None:
    tape = Tape((A, B))
    agreeing(tape)
    nodes(tape, 150, {"node-2": ["b"]})
    tape.end(211)
    assert len(tape.analyse().watch.views.disagreeing.found) == 1
