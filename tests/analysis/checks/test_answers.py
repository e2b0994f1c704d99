"""The checks of answers, over journals written out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.analysis.checks.check import Status
from rig.analysis.verdict import verdict_of
from rig.journal.records import AnswerMalformed, CanaryAnswered
from rig.report.json import report_json
from rig.report.markdown import markdown
from rig.report.tables import altered
from tests.analysis.tape import A, Tape

ONE, RIVER = ["one", ",", " two", ",", " three"], ["The", " river", " flows", " down"]


def tape_of(*, learnt: int = 4, judged: int = 12, struck: bool = True, entries: int = 2) -> Tape:
    """So many answers to each of two canaries before a fault, and so many as expected after it."""
    tape = Tape()
    for number in range(learnt):
        for canary, pieces in (("numbers", ONE), ("river", RIVER)):
            say(tape, 1.0 + number, pieces, canary, entry=f"node-{1 + number % entries}")
    if struck:
        tape.fault(0, "freeze", 20, 25, hit=("node-3",))
    for number in range(judged):
        say(tape, 30.0 + number, ONE)
    tape.ok(60, 61)
    return tape


def say(tape: Tape, t: float, pieces: list[str], canary: str = "numbers", entry: str = "node-1") -> str:
    name = tape.ok(t - 0.5, t, entry=entry)
    tape.add(
        CanaryAnswered(t=t, id=name, canary=canary, model=A, entry=entry, streamed=True, started_t=t - 0.5,
                       digest="".join(pieces), pieces=pieces)
    )  # fmt: skip
    return name


def malformed(tape: Tape, what: str) -> None:
    tape.add(AnswerMalformed(t=41.0, id=tape.ok(40, 41), model=A, entry="node-1", what=[what]))


Build = Callable[[], Tape]


def with_answer(pieces: list[str], t: float = 31.5) -> Build:
    def build() -> Tape:
        tape = tape_of()
        say(tape, t, pieces)
        return tape

    return build


def with_malformed(what: str) -> Build:
    def build() -> Tape:
        tape = tape_of()
        malformed(tape, what)
        return tape

    return build


def disagreeing() -> Tape:
    tape = Tape()
    for number in range(6):
        say(tape, 1.0 + number, ONE if number % 2 else RIVER, entry=f"node-{number % 2}")
    return tape


def unstable() -> Tape:
    tape = tape_of(learnt=0)
    for number in range(6):
        say(tape, 1.0 + number, [f"answer {number}"], entry=f"node-{number % 2}")
    return tape


CASES: list[tuple[str, Status, Build]] = [
    ("answers-unchanged", "pass", tape_of),
    ("answers-unchanged", "fail", with_answer(RIVER)),
    ("answers-unchanged", "fail", with_answer(["one", ",", " three"])),
    ("answers-unchanged", "unknown", with_answer(["one", ",", " too"])),
    ("answers-unchanged", "unknown", unstable),
    ("answers-unchanged", "unknown", lambda: tape_of(judged=9)),
    ("answers-unchanged", "unknown", lambda: tape_of(learnt=2)),
    ("answers-unchanged", "not-exercised", lambda: tape_of(struck=False)),
    ("answers-unchanged", "not-exercised", lambda: tape_of(learnt=0, judged=0)),
    ("no-cross-talk", "pass", tape_of),
    ("no-cross-talk", "fail", with_answer(RIVER)),
    ("no-cross-talk", "fail", with_answer(RIVER, t=4.5)),
    ("no-cross-talk", "pass", with_answer(["one", ",", " three"])),
    ("no-cross-talk", "fail", with_malformed("chunks of two answers: a and b")),
    ("no-cross-talk", "pass", with_malformed("a second finish reason: stop, then stop")),
    ("no-cross-talk", "unknown", unstable),
    ("replicas-agree", "pass", tape_of),
    ("replicas-agree", "fail", disagreeing),
    ("replicas-agree", "unknown", unstable),
    ("replicas-agree", "not-exercised", lambda: tape_of(entries=1)),
    ("answers-well-formed", "pass", tape_of),
    ("answers-well-formed", "fail", with_malformed("JSON was asked for, and the answer is none")),
    ("answers-well-formed", "not-exercised", Tape),
]


@pytest.mark.parametrize(("name", "expected", "build"), CASES)
def test_check(name: str, expected: Status, build: Build) -> None:
    check = next(check for check in verdict_of(build().analyse()).checks if check.name == name)
    assert check.status == expected, check.summary


def test_an_altered_answer_in_the_reports() -> None:
    analysis = with_answer(["one", ",", " three"])().analyse()
    verdict = verdict_of(analysis)
    check = next(check for check in verdict.checks if check.name == "answers-unchanged")
    assert check.summary == "answers altered: 1 of 13: 1 shifted"
    assert check.evidence[0].endswith("after fault 0 (freeze at 20.0 s): shifted from token 3 on, ' two,' is missing")
    said = "answers altered: 1 of 13: 1 shifted (2 of 2 canaries stable before the first fault)"
    assert said in markdown(analysis, verdict)
    table = altered(analysis)
    assert table is not None
    assert len(table.rows) == 1
    reported = report_json(analysis, verdict)["answers"]
    assert (reported["judged"], reported["altered"], reported["stable"]) == (13, 1, 2)
    assert reported["listed"][0]["how"] == "shifted"


def test_a_sound_run_says_how_many_were_judged() -> None:
    analysis = tape_of().analyse()
    said = "answers altered: 0 of 12 (2 of 2 canaries stable before the first fault)"
    assert said in markdown(analysis, verdict_of(analysis))
