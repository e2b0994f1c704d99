"""Checks of what was answered to the rig's own calls, and of scripted expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pytest

from rig.analysis.checks import scenario
from rig.analysis.checks.check import Status
from rig.analysis.verdict import run_check
from rig.journal.records import ApiCall, Expected
from rig.targets.exo.checks import calls
from tests.analysis.checks.sessions import Session
from tests.analysis.tape import A, B, Tape

Build: TypeAlias = Callable[[Tape], object]


def call(tape: Tape, t: float, what: Any, status: int | None, **more: Any) -> None:
    tape.add(ApiCall(t=t, what=what, node="node-1", asked_t=t - 0.1, status=status, **more))


def deploys(tape: Tape, *answers: tuple[str, int | None]) -> None:
    for number, (model, status) in enumerate(answers):
        call(tape, 10.0 + number, "deploy", status, model=model, subject=f"d-{model}" if status == 200 else None)


def deleted_between(tape: Tape, status: int) -> None:
    call(tape, 10, "deploy", 200, model=A, subject="d")
    call(tape, 11, "delete-deployment", 200, subject="d")
    call(tape, 12, "deploy", status, model=A)


def deleted_twice(tape: Tape, again_t: float, status: int) -> None:
    call(tape, 10, "deploy", 200, model=A, subject="d")
    call(tape, 11, "delete-deployment", 200, subject="d")
    call(tape, again_t, "delete-deployment", status, subject="d")


def took_another(tape: Tape, lost_t: float) -> None:
    """The instance of a second deployment of the model goes then."""
    session = Session(tape, begun_t=2.0)
    session.deploy(12, "e")
    session.place(20, "i", "e")
    session.lose(lost_t, "i")
    session.read(100)
    tape.own(101.0)


def nameless(tape: Tape) -> None:
    """A deployment without a name is not the one that is deleted."""
    call(tape, 10, "deploy", 200, model=A)
    call(tape, 11, "delete-deployment", 404)
    call(tape, 12, "deploy", 200, model=A)


def expect(tape: Tape, *statuses: Literal["pass", "fail", "unknown"]) -> None:
    for step, status in enumerate(statuses):
        tape.add(Expected(t=float(step), step=step, text="placed a", status=status, evidence="new: i"))


CASES: list[tuple[str, Status, Build]] = [
    ("duplicates-refused", "not-exercised", lambda t: deploys(t, (A, 200), (B, 200))),
    ("duplicates-refused", "pass", lambda t: deploys(t, (A, 200), (A, 409))),
    ("duplicates-refused", "fail", lambda t: deploys(t, (A, 200), (A, 200))),
    ("duplicates-refused", "fail", lambda t: deploys(t, (A, 409))),
    ("duplicates-refused", "not-exercised", lambda t: deploys(t, (A, 200), (A, None))),
    ("duplicates-refused", "not-exercised", lambda t: deploys(t, (A, 400), (A, 200))),
    ("duplicates-refused", "not-exercised", lambda t: deploys(t, (A, 300), (A, 200))),
    ("duplicates-refused", "fail", nameless),
    ("duplicates-refused", "not-exercised", lambda t: deleted_between(t, 200)),
    ("duplicates-refused", "fail", lambda t: deleted_between(t, 409)),
    ("deleted-once", "not-exercised", lambda t: deleted_twice(t, 12, 200)),
    ("deleted-once", "pass", lambda t: deleted_twice(t, 30, 404)),
    ("deleted-once", "fail", lambda t: deleted_twice(t, 30, 200)),
    ("deleted-once", "fail", lambda t: (took_another(t, 30.5), deleted_twice(t, 30, 404))),
    ("deleted-once", "pass", lambda t: (took_another(t, 80.0), deleted_twice(t, 30, 404))),
    ("unknown-is-404", "not-exercised", lambda t: call(t, 10, "delete-deployment", 200, subject="d")),
    ("unknown-is-404", "pass", lambda t: call(t, 10, "delete-deployment", 404, subject="x", unknown=True)),
    ("unknown-is-404", "fail", lambda t: call(t, 10, "delete-instance", 200, subject="x", unknown=True)),
    ("placed-by-hand-appears", "not-exercised", lambda t: call(t, 10, "place", 400, model=A)),
    ("placed-by-hand-appears", "not-exercised", lambda t: call(t, 10, "place", 300, model=A)),
    ("placed-by-hand-appears", "pass", lambda t: call(t, 10, "place", 200, model=A, subject="i")),
    ("placed-by-hand-appears", "fail", lambda t: call(t, 10, "place", 200, model=A)),
    ("as-expected", "not-exercised", lambda t: t.steady(1, 5)),
    ("as-expected", "pass", lambda t: expect(t, "pass", "pass")),
    ("as-expected", "unknown", lambda t: expect(t, "pass", "unknown")),
    ("as-expected", "fail", lambda t: expect(t, "fail", "unknown")),
]


@pytest.mark.parametrize(("name", "expected", "build"), CASES, ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_check(name: str, expected: Status, build: Build) -> None:
    tape = Tape((A, B), schedule=[], expected_faults=0)
    build(tape)
    check = next(check for check in (*calls.CHECKS, *scenario.CHECKS) if check.name == name)
    assert run_check(check, tape.analyse()).status == expected
