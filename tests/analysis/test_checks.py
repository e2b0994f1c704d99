"""Each check passes, fails, does not know, and says so when it was not exercised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rig.analysis.analyse import Analysis, analyse
from rig.analysis.checks.check import Answer, Check, Status, evidence
from rig.analysis.checks.requests import as_many_by_chance
from rig.analysis.verdict import verdict_of
from rig.journal.read import BrokenLine
from rig.journal.records import ActivityDied, MasterSeen, Redeployed, RunEnded, ViewChanged
from tests.analysis.generate import KINDS, Shape, info_of, records_of
from tests.analysis.tape import A, B, Tape

Build = Callable[[Tape], object]


def status_of(name: str, tape: Tape) -> Status:
    return next(check.status for check in verdict_of(tape.analyse()).checks if check.name == name)


def plan(**changes: Any) -> dict[str, Any]:
    return {"plan": {"kinds": {"freeze": {"time_to_serve": 20.0}}, "settle": 240.0, "sustained": 15.0} | changes}


def status_told(tape: Tape, status: str | None, for_s: float) -> None:
    """A node's view of an instance that is loading, from 10 s on, and what it says of its deployment meanwhile."""
    held = {"model": A, "runners": {"id-1": "r"}, "port": 1}
    one = {"model": A, "status": status, "instance": "i", "error": None, "min_nodes": 1}

    def view(t: float, facet: Any, value: Any) -> None:
        tape.add(ViewChanged(t=t, node="node-1", facet=facet, since_t=t - 0.5, value=value))

    view(10.0, "instances", {"i": held})
    view(10.0, "runners", {"r": "RunnerLoading"})
    view(10.0, "deployments", {"d": one})
    view(10.5 + for_s, "deployments", {})


def runner_kill(tape: Tape) -> None:
    tape.fault(0, "runner-kill", 100, 100)
    tape.error(100.5, 101)
    tape.steady(106, 140)


def late(tape: Tape, served_t: float, error_s: float = 0.0) -> None:
    """Frozen from 100 to 110, served again so late, probed every half second until then."""
    tape.fault(0, "freeze", 100, 110, hit=("node-3",), error_s=error_s / 2)  # of strike and of heal
    for step in range(int((served_t - 101) / 0.5)):
        tape.error(101 + step * 0.5, 101.1 + step * 0.5)
    tape.ok(served_t - 0.2, served_t)
    tape.steady(served_t, served_t + 30)
    tape.end(served_t + 30)


def cut_short(tape: Tape, after_s: float, error_s: float = 0.0) -> None:
    """Frozen from 100 to 110, not served until another fault strikes."""
    tape.fault(0, "freeze", 100, 110, hit=("node-3",), error_s=error_s / 2)
    tape.error(101, 102)
    tape.fault(1, "runner-kill", 110 + after_s, 110 + after_s)
    tape.steady(110.5 + after_s, 200)
    tape.end(200)


def stalled(tape: Tape, *, requests: int) -> None:
    """For 1.1 s twice in five minutes; one of so many requests became void by that."""
    for second in range(1, 300):
        tape.own(float(second), lag_s=1.1 if second in (121, 200) else 0.0)
    tape.lost(1, 120.5, "hung")
    tape.steady(1, 299, step_s=298 / (requests - 1))


def doubled(tape: Tape, *, master: str = "node-2", claimed_t: float = 10, deployed: str = A) -> None:
    tape.add(MasterSeen(t=claimed_t, node=master, is_master=True, source="log", at_t=claimed_t))
    tape.view(11, "node-2", "deployments", {"d": {"model": deployed, "status": "serving"}})
    tape.instances(20, {"i": (A, "x"), "j": (A, "y"), "k": (B, "z")})


def replaying(tape: Tape) -> None:
    """The master's node was killed, and shows the instances of its old log until it has caught up."""
    tape.view(1, "node-1", "event_index", 500)
    tape.fault(0, "master-crash", 5, 8, hit=("node-2",))
    tape.view(12, "node-2", "event_index", 7)
    doubled(tape)


def vanished_after_unwedging(tape: Tape, *nodes: str, t: float = 125) -> None:
    """With every node restarted by the rig at once nobody is left to remember."""
    for node in nodes:
        tape.unwedged(0, node, 100, 102)
    tape.add(Redeployed(t=t, model=A, reason="vanished", ok=True))


CASES: list[tuple[str, Status, Build]] = [
    ("no-request-lost", "not-exercised", lambda t: t.end(1)),
    ("no-request-lost", "pass", lambda t: t.steady(1, 5)),
    ("no-request-lost", "fail", lambda t: (t.steady(1, 5), t.lost(5, 6, "empty"))),
    ("no-request-lost", "unknown", lambda t: t.started(5)),
    ("no-request-lost", "pass", lambda t: (t.lost(105, 106, "empty"), t.fault(0, "freeze", 100, 110, hit=("node-1",)))),
    ("no-request-lost", "pass", lambda t: t.error(1, 2)),
    (
        "no-request-lost",
        "pass",
        lambda t: (
            t.ok(1, 2),
            t.error(1, 2),
            t.lost(105, 106, "empty"),
            t.fault(0, "freeze", 100, 110, hit=("node-1",)),
        ),
    ),
    ("no-probe-cut", "not-exercised", lambda t: t.steady(1, 5)),
    ("no-probe-cut", "pass", lambda t: (t.ok(1, 2, source="probe"), t.lost(1, 61, "hung", source="probe"))),
    ("no-probe-cut", "fail", lambda t: t.lost(1, 2, "truncated", source="probe")),
    ("accounting", "not-exercised", lambda t: t.end(1)),
    ("accounting", "pass", lambda t: (t.started(1), t.lost(1, 2, "hung"))),
    ("accounting", "unknown", lambda t: (t.ok(1, 2), t.add(*[r for r in t.records() if r.t == 2]))),
    ("accounting", "unknown", lambda t: (t.started(1), t.add(*t.records()))),
    ("journal-sound", "unknown", lambda t: (t.ok(1, 2), t.add(*[r for r in t.records() if r.t == 2]))),
    ("journal-sound", "unknown", lambda t: (t.started(1), t.add(*t.records()))),
    ("calm-errors", "not-exercised", lambda t: t.started(1)),
    ("calm-errors", "pass", lambda t: t.steady(1, 50)),
    ("calm-errors", "unknown", lambda t: (t.steady(1, 50), t.error(3, 4))),
    ("calm-errors", "fail", lambda t: (t.steady(1, 50), *(t.error(n, n + 1) for n in range(5)))),
    ("baseline-clean", "not-exercised", lambda t: t.steady(1, 5)),
    ("baseline-clean", "pass", lambda t: (t.phase(0, "baseline"), t.steady(1, 5))),
    ("baseline-clean", "fail", lambda t: (t.phase(0, "baseline"), t.steady(1, 5), t.lost(1, 2, "empty"))),
    ("baseline-clean", "unknown", lambda t: (t.phase(0, "baseline"), t.error(1, 2))),
    ("faults-effective", "not-exercised", lambda t: t.add(t.change(0, "freeze", "skipped", 5))),
    ("faults-effective", "pass", runner_kill),
    ("faults-effective", "fail", lambda t: (runner_kill(t), t.add(t.change(1, "freeze", "ineffective", 200)))),
    ("faults-effective", "unknown", lambda t: t.add(t.change(1, "freeze", "leased", 200))),
    (
        "faults-effective",
        "unknown",
        lambda t: (t.fault(1, "freeze", 200, None), t.add(t.change(1, "freeze", "invalid", 210))),
    ),
    ("faults-healed", "not-exercised", lambda t: t.add(t.change(0, "freeze", "skipped", 5))),
    ("faults-healed", "pass", runner_kill),
    ("faults-healed", "unknown", lambda t: t.fault(0, "freeze", 100, None)),
    (
        "faults-healed",
        "fail",
        lambda t: (t.fault(0, "freeze", 100, None), t.add(t.change(0, "freeze", "unhealed", 170))),
    ),
    ("every-kind-struck", "pass", lambda t: t.fault(0, "freeze", 100, 110)),
    ("every-kind-struck", "fail", lambda t: t.add(t.change(0, "freeze", "skipped", 100))),
    ("every-kind-struck", "unknown", lambda t: t.add(t.change(0, "freeze", "skipped", 100, stopped=True))),
    (
        "every-kind-struck",
        "fail",
        lambda t: t.add(t.change(0, "freeze", "skipped", 100), t.change(1, "freeze", "skipped", 200, stopped=True)),
    ),
    ("every-kind-struck", "fail", lambda t: t.add(t.change(0, "freeze", "ineffective", 100))),
    ("every-kind-struck", "unknown", lambda t: t.end(1)),
    (
        "every-kind-struck",
        "fail",
        lambda t: t.add(t.change(0, "freeze", "skipped", 100), t.change(1, "freeze", "ineffective", 200)),
    ),
    (
        "every-kind-struck",
        "fail",
        lambda t: (
            t.add(t.change(0, "freeze", "skipped", 100)),
            t.fault(1, "freeze", 200, 210),
            t.add(t.change(1, "freeze", "invalid", 211)),
        ),
    ),
    ("exposure", "not-exercised", lambda t: t.steady(1, 5)),
    ("exposure", "not-exercised", lambda t: t.fault(0, "freeze", 100, 110)),
    ("exposure", "unknown", lambda t: (t.fault(0, "freeze", 100, 110), [t.ok(99, 101) for _ in range(4)])),
    ("exposure", "pass", lambda t: (t.fault(0, "freeze", 100, 110), [t.ok(99, 101) for _ in range(5)])),
    ("recovered", "not-exercised", lambda t: t.steady(1, 5)),
    ("recovered", "pass", runner_kill),
    ("recovered", "fail", lambda t: (t.fault(0, "freeze", 100, 110), t.error(101, 102), t.end(351))),
    (
        "recovered",
        "unknown",
        lambda t: (t.fault(0, "freeze", 100, 110), t.error(101, 102), t.own(50, lag_s=2), t.end(351)),
    ),
    (
        "recovered",
        "fail",
        lambda t: (t.fault(0, "freeze", 100, 110), t.error(101, 102), t.own(50, lag_s=0.1), t.end(351)),
    ),
    ("recovered", "unknown", lambda t: (t.fault(0, "freeze", 100, 110), t.error(101, 102), t.end(120))),
    ("recovered", "pass", lambda t: cut_short(t, 5)),
    ("time-to-serve", "not-exercised", runner_kill),
    ("time-to-serve", "not-exercised", lambda t: (t.fault(0, "freeze", 100, 110), t.steady(100, 140), t.end(200))),
    ("time-to-serve", "not-exercised", lambda t: cut_short(t, 5)),
    ("time-to-serve", "fail", lambda t: cut_short(t, 21)),
    ("time-to-serve", "not-exercised", lambda t: cut_short(t, 21, error_s=1.5)),
    ("time-to-serve", "unknown", lambda t: late(t, 129.0, error_s=1.5)),
    ("time-to-serve", "unknown", lambda t: late(t, 131.0, error_s=1.0)),
    ("time-to-serve", "pass", lambda t: late(t, 129.0, error_s=0.5)),
    ("time-to-serve", "pass", lambda t: late(t, 129.0)),
    ("time-to-serve", "unknown", lambda t: late(t, 130.3)),
    ("time-to-serve", "fail", lambda t: late(t, 131.0)),
    ("time-to-serve", "fail", lambda t: (t.fault(0, "freeze", 100, 110), t.error(101, 102), t.end(200))),
    ("one-instance-per-model", "not-exercised", lambda t: t.steady(1, 5)),
    ("one-instance-per-model", "fail", doubled),
    ("one-instance-per-model", "not-exercised", lambda t: doubled(t, master="node-1")),
    ("one-instance-per-model", "not-exercised", lambda t: doubled(t, claimed_t=19.8)),
    ("one-instance-per-model", "not-exercised", replaying),
    ("one-instance-per-model", "pass", lambda t: doubled(t, deployed=B)),
    ("status-true", "not-exercised", lambda t: t.steady(1, 5)),
    ("status-true", "pass", lambda t: status_told(t, "starting", 30.0)),
    ("status-true", "fail", lambda t: status_told(t, "serving", 30.0)),
    ("status-true", "not-exercised", lambda t: status_told(t, "serving", 3.0)),
    ("status-true", "not-exercised", lambda t: status_told(t, None, 30.0)),
    ("deployments-outlive-master", "not-exercised", runner_kill),
    ("deployments-outlive-master", "pass", lambda t: t.fault(0, "master-crash", 100, 110)),
    (
        "deployments-outlive-master",
        "fail",
        lambda t: (runner_kill(t), t.add(Redeployed(t=120, model=A, reason="vanished", ok=True))),
    ),
    (  # after two faults: what counts is that it had restarted several nodes after either of them
        "deployments-outlive-master",
        "not-exercised",
        lambda t: (t.unwedged(1, "node-3", 103, 104), vanished_after_unwedging(t, "node-1", "node-2")),
    ),
    ("deployments-outlive-master", "fail", lambda t: vanished_after_unwedging(t, "node-1")),
    (
        "deployments-outlive-master",
        "not-exercised",
        lambda t: vanished_after_unwedging(t, "node-1", "node-2"),
    ),
    ("deployments-outlive-master", "fail", lambda t: vanished_after_unwedging(t, "node-1", "node-2", t=500)),
    ("deployments-outlive-master", "fail", lambda t: vanished_after_unwedging(t, "node-1", "node-2", t=90)),
    ("run-finished", "unknown", lambda t: t.steady(1, 5)),
    ("run-finished", "pass", lambda t: t.end(1)),
    ("run-finished", "unknown", lambda t: t.add(RunEnded(t=5, reason="aborted", detail="a fault could not be healed"))),
    ("activities-alive", "pass", lambda t: t.end(1)),
    ("activities-alive", "unknown", lambda t: t.add(ActivityDied(t=5, activity="injection", detail="KeyError"))),
    ("controller-sound", "unknown", lambda t: t.steady(1, 5)),
    ("controller-sound", "pass", lambda t: t.own(1)),
    ("controller-sound", "unknown", lambda t: (t.own(1), t.own(2, lag_s=1.5))),
    (
        "controller-sound",
        "unknown",
        lambda t: ([t.own(float(s), lag_s=float(s == 121) * 1.1) for s in range(1, 200)], t.lost(1, 120.5, "hung")),
    ),
    ("controller-sound", "pass", lambda t: stalled(t, requests=1000)),
    ("controller-sound", "unknown", lambda t: stalled(t, requests=150)),
    ("journal-sound", "pass", lambda t: t.end(1)),
]


@pytest.mark.parametrize(("name", "expected", "build"), CASES, ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_check(name: str, expected: Status, build: Build) -> None:
    tape = Tape(**plan(), schedule=[], expected_faults=0)
    if name == "every-kind-struck":
        tape = Tape(**plan())  # whose schedule has every kind due
    if name == "time-to-serve" and build is runner_kill:
        tape = Tape(**plan(kinds={"runner-kill": {}}))
    build(tape)
    assert status_of(name, tape) == expected


def test_broken_lines_make_the_journal_unsound() -> None:
    tape = Tape()
    analysis = tape.analyse()
    analysis.notes.broken_count = 1
    analysis.notes.broken.append(BrokenLine("journal.jsonl", 7, "no JSON"))
    check = next(check for check in verdict_of(analysis).checks if check.name == "journal-sound")
    assert (check.status, check.evidence) == ("unknown", ("journal.jsonl:7: no JSON",))


def told(name: str, tape: Tape) -> tuple[str, tuple[str, ...]]:
    """What a check says, and its evidence."""
    return next((check.summary, check.evidence) for check in verdict_of(tape.analyse()).checks if check.name == name)


def test_a_plan_without_faults_has_none_due() -> None:
    assert status_of("every-kind-struck", Tape(**plan(kinds={}), schedule=[], expected_faults=0)) == "not-exercised"


def test_a_run_that_was_too_short_for_any_fault_of_its_plan_is_unknown() -> None:
    tape = Tape(**plan(), schedule=[], expected_faults=0)
    assert status_of("every-kind-struck", tape) == "unknown"
    assert "too short for its plan" in told("every-kind-struck", tape)[0]
    tape.fault(0, "freeze", 100, 110)
    assert status_of("every-kind-struck", tape) == "pass"


def test_bounds_are_for_the_kinds_that_have_one() -> None:
    bounds = {"freeze": {"time_to_serve": 20.0}, "runner-kill": {}}
    tape = Tape(**plan(kinds=bounds))
    runner_kill(tape)
    assert told("time-to-serve", tape)[0] == "no model was affected by a fault with a bound"
    assert told("time-to-serve", Tape(**plan(kinds={})))[0] == "the plan sets no bound"
    tape = Tape(**plan())
    late(tape, 120.0)
    assert told("time-to-serve", tape)[0] == "all 1 recoveries within their bounds"
    tape = Tape(**plan())
    tape.fault(1, "freeze", 80, 85, hit=("node-3",))
    tape.error(81, 82)
    late(tape, 120.0)
    assert (
        told("time-to-serve", tape)[0]
        == "all 1 recoveries within their bounds; 1 of 2 recoveries were cut short before their bounds"
    )


def test_every_group_of_requests_is_accounted_for() -> None:
    analysis = Tape().analyse()
    analysis.requests.by_model["m"].started += 1
    analysis.requests.by_entry["e"].started += 2
    check = next(check for check in verdict_of(analysis).checks if check.name == "accounting")
    assert check.status == "fail"
    assert [line.split(":")[0] for line in check.evidence] == ["model m", "entry e"]
    analysis.notes.broken_count = 1
    check = next(check for check in verdict_of(analysis).checks if check.name == "accounting")
    assert (check.status, check.evidence[0]) == ("unknown", "and 1 more broken lines")


def test_a_request_that_is_started_twice_is_told() -> None:
    tape = Tape()
    tape.started(1)
    tape.add(*tape.records())
    assert "1 starts of a request that was in flight already" in told("accounting", tape)[1]


def test_a_lost_request_is_told_with_its_fault() -> None:
    tape = Tape()
    tape.lost(5, 6, "empty")
    assert told("no-request-lost", tape)[1] == ("r0: empty, lab/tiny-a through node-1 at 5.0 s, no fault near",)
    tape.fault(3, "freeze", 5.5, 7, hit=("node-3",))
    assert told("no-request-lost", tape)[1] == ("r0: empty, lab/tiny-a through node-1 at 5.0 s, fault 3",)


def test_a_fault_is_told_with_its_strike_and_what_became_of_it() -> None:
    tape = Tape()
    tape.add(tape.change(1, "freeze", "ineffective", 200, reason="nothing stood still"))
    assert told("faults-effective", tape)[1] == (
        "fault 1 (freeze, somewhere) never struck, ineffective: nothing stood still",
    )
    tape = Tape()
    tape.fault(0, "freeze", 100, None)
    assert told("faults-healed", tape)[1] == ("fault 0 (freeze, somewhere) struck at 100.0 s, struck",)


def test_how_the_run_ended_is_told() -> None:
    tape = Tape()
    tape.add(RunEnded(t=5, reason="failed", detail="KeyError"))
    assert told("run-finished", tape)[0] == "the run failed at 5.0 s: KeyError"
    tape = Tape()
    tape.add(RunEnded(t=5, reason="interrupted"))
    assert told("run-finished", tape)[0] == "the run was interrupted at 5.0 s"


def test_how_much_of_the_journal_was_read_is_told() -> None:
    def said(*, lines: int, torn: bool) -> str:
        analysis = Tape().analyse()
        analysis.notes.lines, analysis.notes.torn = lines, torn
        return next(check.summary for check in verdict_of(analysis).checks if check.name == "journal-sound")

    assert said(lines=7, torn=False) == "7 lines read"
    assert said(lines=7, torn=True) == "7 lines read, its last line is torn"
    assert said(lines=0, torn=False) == "read"


def test_what_was_cut_short_is_told() -> None:
    tape = Tape(**plan())
    cut_short(tape, 5)
    assert told("recovered", tape)[0] == "every model served again after every fault (1 cut short)"
    tape = Tape()
    runner_kill(tape)
    assert told("recovered", tape)[0] == "every model served again after every fault"


@pytest.mark.parametrize(("count", "last"), [(20, "line 19"), (21, "and 2 more"), (100, "and 81 more")])
def test_evidence_is_at_most_twenty_lines(count: int, last: str) -> None:
    lines = evidence([f"line {number}" for number in range(count)])
    assert (len(lines), lines[18], lines[-1]) == (20, "line 18", last)
    assert evidence(["one"]) == ("one",)


def fixed(status: Status) -> Check:
    return Check(f"always-{status}", "", lambda _: Answer(status, ""))


def crash(_: Analysis) -> Answer:
    raise KeyError("node-7")


@pytest.mark.parametrize(
    ("statuses", "word", "exit_code"),
    [
        (("pass", "not-exercised"), "pass", 0),
        (("pass", "unknown"), "unknown", 3),
        (("pass", "unknown", "fail"), "fail", 1),
        (("not-exercised",), "unknown", 3),
    ],
)
def test_the_verdict_is_the_worst(statuses: tuple[Status, ...], word: str, exit_code: int) -> None:
    verdict = verdict_of(Tape().analyse(), tuple(fixed(status) for status in statuses))
    assert (verdict.word, verdict.exit_code) == (word, exit_code)


@pytest.mark.parametrize("required", ["always-not-exercised", "no-such-check"])
def test_what_the_plan_requires_must_have_been_exercised(required: str) -> None:
    checks = (fixed("pass"), fixed("not-exercised"))
    assert verdict_of(Tape(**plan(requires=["always-pass"])).analyse(), checks).word == "pass"
    assert verdict_of(Tape(**plan(requires=[required])).analyse(), checks).word == "unknown"


def test_a_check_that_crashes_is_unknown_and_says_so() -> None:
    verdict = verdict_of(Tape().analyse(), (fixed("pass"), Check("crashes", "", crash)))
    assert verdict.word == "unknown"
    assert "KeyError('node-7')" in verdict.checks[1].summary


def test_a_sound_made_up_run_passes_and_a_lossy_one_fails() -> None:
    sound, lossy = Shape(seed=3), Shape(seed=3, lost_share=0.4)
    assert _verdict(sound) == ("pass", [])
    assert _verdict(lossy) == ("fail", ["no-request-lost", "no-cut-stream"])


def test_a_run_that_was_killed_is_unknown() -> None:
    word, bad = _verdict(Shape(seed=3, finished=False))
    assert (word, bad) == ("unknown", ["run-finished"])


def _verdict(shape: Shape) -> tuple[str, list[str]]:
    assert shape.faults >= len(KINDS)
    verdict = verdict_of(analyse(info_of(shape), records_of(shape)))
    return verdict.word, [check.name for check in verdict.checks if check.status in ("fail", "unknown")]


def in_calm(errors: int, ended: int, bound: float | None = None) -> Tape:
    """So many errors among so many requests, of which no fault has touched any."""
    tape = Tape(**plan(**({} if bound is None else {"calm_errors": bound})))
    for number in range(ended):
        (tape.error if number < errors else tape.ok)(number + 1, number + 1.5)
    return tape


@pytest.mark.parametrize(
    ("errors", "ended", "bound", "expected"),
    [
        (0, 1000, None, "pass"),
        (2, 1000, None, "pass"),
        (3, 1000, None, "unknown"),  # more than half of 0.5 %
        (10, 1000, None, "unknown"),
        (12, 1000, None, "fail"),
        (290, 1000, None, "fail"),
        (1, 100, None, "unknown"),  # one alone may be chance
        (3, 100, None, "unknown"),
        (4, 100, None, "fail"),
        (12, 1000, 0.05, "pass"),
        (26, 1000, 0.05, "unknown"),
        (1, 1000, 0.0, "fail"),
        (0, 1000, 0.0, "pass"),
    ],
)
def test_errors_in_calm_weather_have_a_bound(errors: int, ended: int, bound: float | None, expected: Status) -> None:
    assert status_of("calm-errors", in_calm(errors, ended, bound)) == expected


def test_the_baseline_has_the_same_bound_however_calm_the_rest() -> None:
    tape = in_calm(4, 100)
    tape.phase(0, "baseline")
    tape.phase(101, "faults")
    tape.steady(200, 2000)
    assert status_of("calm-errors", tape) == "fail"
    assert told("calm-errors", tape)[1] == (
        "baseline: 4 errors of 100 requests", "calm weather: 4 errors of 1900 requests",
    )  # fmt: skip


def test_errors_that_a_fault_brought_about_are_not_of_calm_weather() -> None:
    tape = Tape()
    tape.steady(1, 100)
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    for start_t in range(101, 109):
        tape.error(start_t, start_t + 0.5)
    tape.steady(112, 300)
    tape.end(300)
    assert status_of("calm-errors", tape) == "pass"
    assert status_of("calm-errors", Tape()) == "not-exercised"


def test_the_chance_of_so_many_errors() -> None:
    assert as_many_by_chance(0, 10, 0.5) == 1
    assert as_many_by_chance(1, 10, 0.5) == pytest.approx(1 - 1 / 1024)
    assert as_many_by_chance(10, 10, 0.5) == pytest.approx(1 / 1024)
    assert as_many_by_chance(600, 100_000, 0.005) < 1e-4 < as_many_by_chance(540, 100_000, 0.005)
    assert (as_many_by_chance(1, 10, 0.0), as_many_by_chance(0, 10, 0.0)) == (0, 1)
