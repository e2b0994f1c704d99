"""What of a run is compared: one value a fault, one a minute of calm weather."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rig.compare.samples import Samples, read_samples, samples_of
from rig.report.frames import open_records
from tests.analysis.generate import write_journal
from tests.analysis.tape import A, B, Tape


def sampled(tape: Tape) -> Samples:
    return samples_of(open_records(tape.info, tape.records()))


def test_a_fault_counts_once_with_its_worst_model() -> None:
    tape = Tape(models=(A, B))
    for model, back_t in ((A, 105.0), (B, 112.0)):
        tape.steady(0, 100, model)
        tape.error(100.5, 101.0, model)
        tape.steady(back_t, 200, model)
    tape.fault(0, "runner-kill", 100.2, None)
    tape.end(200)
    found = sampled(tape)
    assert found.serve == {"runner-kill": [pytest.approx(112.2 - 100.2)]}
    assert found.outage == {"runner-kill": [pytest.approx(112.2 - 100.2)]}
    assert found.failed == {"runner-kill": [2]}
    assert found.lost == {"runner-kill": [0]}


def test_what_did_not_recover_is_infinite_also_when_it_served_once() -> None:
    tape = Tape()
    tape.steady(0, 100)
    tape.fault(0, "runner-kill", 100.2, None)
    tape.error(100.5, 101.0)
    tape.ok(102, 102.2)
    for second in range(104, 400, 4):
        tape.error(second, second + 0.5)
    tape.end(400)
    found = sampled(tape)
    (recovery,) = found.analysis.recoveries
    assert recovery.recovery_class == "not recovered"
    assert recovery.time_to_serve_s is not None
    assert found.serve == {"runner-kill": [math.inf]}
    assert found.outage == {"runner-kill": [math.inf]}


def test_a_fault_that_hurt_nothing_has_no_time_to_serve_and_no_outage() -> None:
    tape = Tape()
    tape.steady(0, 200)
    tape.fault(0, "partition", 100.5, 110.0)
    tape.end(200)
    found = sampled(tape)
    assert found.serve == {}
    assert found.outage == {"partition": [0.0]}


def test_calm_weather_is_without_what_a_fault_touched() -> None:
    """The slow answers in the outage are not the weather's."""
    tape = Tape()
    tape.steady(0, 60, first_token_t=None)
    for second in range(60, 100):
        tape.ok(second, second + 0.2, first_token_t=second + 0.1, usage_tokens=5)
    tape.fault(0, "runner-kill", 110.0, None)
    tape.error(110.5, 111.0)
    for number in range(10):
        tape.ok(111.1 + number / 100, 115.0, first_token_t=114.9)
    tape.steady(115.5, 170)
    tape.end(170)
    found = sampled(tape)
    assert found.ttft[A][0] == pytest.approx(0.1)
    assert found.itl[A] == [pytest.approx(0.1 / 4)]
    assert max(found.ttft[A]) < 1.0
    assert set(found.failing) == {0.0}


def test_failing_in_calm_weather_is_a_share_of_each_minute() -> None:
    tape = Tape()
    tape.steady(0, 60)
    tape.steady(60, 75)
    for second in range(80, 85):
        tape.error(second, second + 0.1)
    tape.end(120)
    assert sampled(tape).failing == [0.0, 0.25]


def test_a_run_is_called_after_its_folder(tmp_path: Path) -> None:
    """Also where the folder was copied or renamed since."""
    tape = Tape(run="as-it-was-called")
    tape.end(10)
    folder = write_journal(tmp_path / "as-it-is-called", tape.info, tape.records())
    assert read_samples(folder).name == "as-it-is-called"
