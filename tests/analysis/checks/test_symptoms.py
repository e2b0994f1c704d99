"""Checks for the symptoms of sick clusters, each with what it must and must not take for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from rig.analysis.checks import requests, symptoms
from rig.analysis.checks.check import Status
from rig.analysis.verdict import run_check
from rig.journal.records import Gaps, MasterSeen, NodeMemory, PhaseStarted, Reachability, ViewChanged
from tests.analysis.checks.sessions import calm, processes
from tests.analysis.tape import A, B, Tape

Build: TypeAlias = Callable[[Tape], object]
GIB = 1 << 30


def view(t: float, node: str, facet: Any, value: Any) -> ViewChanged:
    return ViewChanged(t=t, node=node, facet=facet, since_t=t - 1, value=value)


def nodes(tape: Tape, t: float, listed: dict[str, list[str]]) -> None:
    """What each node lists, by ids."""
    for node, ids in listed.items():
        tape.add(view(t, node, "nodes", ids))


def named(tape: Tape, t: float = 1.0, **ids: str) -> None:
    for node, node_id in ids.items():
        tape.add(view(t, node.replace("_", "-"), "node_id", node_id))


def claims(tape: Tape, t: float, node: str, *, is_master: bool = True) -> None:
    tape.add(MasterSeen(t=t, node=node, is_master=is_master, source="log", at_t=t))


def agreeing(tape: Tape) -> None:
    named(tape, node_1="a", node_2="b")
    claims(tape, 2, "node-1")
    nodes(tape, 3, {"node-1": ["a", "b"], "node-2": ["a", "b"]})
    calm(tape, 10, 200)


def split(tape: Tape, until_t: float) -> None:
    agreeing(tape)
    nodes(tape, 50, {"node-2": ["b"]})
    nodes(tape, until_t, {"node-2": ["a", "b"]})


def split_by_a_fault(tape: Tape) -> None:
    """For 50 s of a partition and 50 s after it."""
    split(tape, 150)
    tape.fault(0, "partition", 49, 100)


def ghost(tape: Tape, until_t: float) -> None:
    agreeing(tape)
    named(tape, 60, node_2="c")
    nodes(tape, 61, {"node-1": ["a", "b", "c"], "node-2": ["a", "b", "c"]})
    nodes(tape, until_t, {"node-1": ["a", "c"], "node-2": ["a", "c"]})


def two_masters(tape: Tape, until_t: float) -> None:
    agreeing(tape)
    claims(tape, 60, "node-2")
    claims(tape, until_t, "node-2", is_master=False)


def no_master(tape: Tape) -> None:
    agreeing(tape)
    claims(tape, 60, "node-1", is_master=False)


def stranded(tape: Tape, until_t: float) -> None:
    """A runner on node b, which is no longer listed."""
    agreeing(tape)
    held: dict[str, Any] = {"i": {"model": A, "runners": {"b": "r"}, "port": 1}}
    for node in ("node-1", "node-2"):
        tape.add(view(50, node, "instances", held))
        tape.add(view(60, node, "nodes", ["a"]))
        tape.add(view(until_t, node, "instances", {}))


def dead(tape: Tape) -> None:
    """Listed all along, and nothing is served after the fault."""
    tape.instances(1, {"i": (A, "x")})
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    for second in range(101, 360):
        tape.error(second, second + 0.5)
    tape.end(360)


def elections(tape: Tape, *times: float) -> None:
    agreeing(tape)
    for t in times:
        claims(tape, t, "node-2", is_master=False)


def dies(tape: Tape, *, main: str | None = "9:9", hit: str = "node-2", fault: Any = "node-crash") -> None:
    tape.add(processes(10), processes(60, main=main))
    tape.fault(0, fault, 30, 35, hit=(hit,))


def idle(tape: Tape, used_s: float, runner_s: float = 0.0) -> None:
    tape.add(processes(10, look="idle", cpu_s=5.0, runners={"8:1": 3.0}))
    tape.add(processes(20, look="idle", cpu_s=5.0 + used_s, runners={"8:1": 3.0 + runner_s}))


def hosting(tape: Tape, *instances: str) -> None:
    """Two runners, seen twice, on a node that lists these instances."""
    tape.add(view(5, "node-1", "instances", {name: {"runners": {"a": "r"}} for name in instances}))
    tape.add(processes(10, runners={"8:1": 1.0, "9:1": 1.0}), processes(60, runners={"8:1": 1.0, "9:1": 1.0}))


def memory(tape: Tape, *free: float, again: str = "a", models: tuple[str, ...] = (A,)) -> None:
    """Free memory as the target tells it, looked at before each of several faults."""
    named(tape, 1, node_1="a")
    for number, gib in enumerate(free):
        t = 100.0 + 100 * number
        node_id = "a" if number == 0 else again
        tape.add(view(t, "node-1", "node_id", node_id))
        runners: dict[str, Any] = {node_id: "r"}
        listed = {
            f"i{number}{model}": {"model": model, "runners": runners, "port": 1} for model in models[: number + 1]
        }
        tape.add(view(t + 1, "node-1", "instances", listed))
        tape.add(view(t + 2, "node-1", "memory", {node_id: int(gib * GIB)}))
        tape.add(tape.change(number, "freeze", "planned", t + 60))


def own_memory(tape: Tape, *free: float) -> None:
    for number, gib in enumerate(free):
        t = 100.0 + 100 * number
        tape.add(processes(t))
        tape.add(
            NodeMemory(
                t=t + 0.1, node="node-1", look="before", fault=1, available_bytes=int(gib * GIB), wired_bytes=None
            )
        )


def served(
    tape: Tape, from_t: float, to_t: float, *, apart_s: float = 0.05, step_s: float = 0.5, model: str = A
) -> None:
    """Requests of ten gaps each."""
    tape.steady(from_t, to_t, model, step_s=step_s, gaps=Gaps(count=10, sum_s=10 * apart_s))


def speed(tape: Tape, *later: float, step_s: float = 0.5) -> None:
    """A baseline with tokens 50 ms apart; then faults, and after each another distance."""
    tape.phase(0, "baseline")
    served(tape, 0, 60)
    tape.phase(60, "faults")
    for number, apart_s in enumerate(later):
        t = 60.0 + 100 * number
        tape.fault(number, "runner-kill", t + 5, t + 5)
        tape.error(t + 5.5, t + 6)
        served(tape, t + 10, t + 100, apart_s=apart_s, step_s=step_s)
    tape.phase(60.0 + 100 * len(later), "drain")


def rejoining(tape: Tape, *took_s: float) -> None:
    """Node 2 crashes again and again, and catches up after so long each time."""
    tape.view(1, "node-1", "event_index", 100)
    for number, one_s in enumerate(took_s):
        t = 100.0 * (number + 1)
        tape.fault(number, "node-crash", t, t + 5, hit=("node-2",))
        tape.view(t + 5.2, "node-2", "event_index", 3)
        tape.view(t + 5 + one_s, "node-2", "event_index", 100)
    tape.end(100.0 * (len(took_s) + 2))


CASES: list[tuple[str, Status, Build]] = [
    ("views-agree", "not-exercised", lambda t: t.steady(1, 5)),
    ("views-agree", "pass", agreeing),
    ("views-agree", "fail", lambda t: split(t, 150)),
    ("views-agree", "pass", lambda t: split(t, 100)),
    ("views-agree", "pass", split_by_a_fault),
    (
        "views-agree",
        "pass",
        lambda t: (split(t, 150), t.add(Reachability(t=52, node="node-2", since_t=51, reachable=False))),
    ),
    ("one-master", "not-exercised", lambda t: calm(t, 10, 200)),
    ("one-master", "pass", agreeing),
    ("one-master", "fail", lambda t: two_masters(t, 150)),
    ("one-master", "pass", lambda t: two_masters(t, 100)),
    ("one-master", "fail", no_master),
    ("no-ghost", "not-exercised", lambda t: t.steady(1, 5)),
    ("no-ghost", "pass", lambda t: ghost(t, 100)),
    ("no-ghost", "fail", lambda t: ghost(t, 150)),
    ("no-zombie", "not-exercised", lambda t: t.steady(1, 5)),
    ("no-zombie", "pass", lambda t: stranded(t, 100)),
    ("no-zombie", "fail", lambda t: stranded(t, 150)),
    ("no-zombie", "fail", dead),
    ("no-endless-election", "not-exercised", lambda t: calm(t, 10, 200)),
    ("no-endless-election", "pass", lambda t: elections(t, 150, 160, 170)),
    ("no-endless-election", "fail", lambda t: elections(t, 150, 153, 156, 159)),
    ("no-endless-election", "pass", lambda t: elections(t, 20, 23, 26, 29)),
    ("nobody-else-died", "not-exercised", lambda t: t.add(processes(10))),
    ("nobody-else-died", "pass", lambda t: t.add(processes(10), processes(60))),
    ("nobody-else-died", "fail", dies),
    ("nobody-else-died", "fail", lambda t: dies(t, main=None)),
    ("nobody-else-died", "pass", lambda t: dies(t, hit="node-1")),
    ("nobody-else-died", "fail", lambda t: dies(t, hit="node-1", fault="freeze")),
    (
        "nobody-else-died",
        "pass",
        lambda t: (t.add(processes(10), processes(60, main="9:9")), t.unwedged(0, "node-1", 20, 30)),
    ),
    (
        "nobody-else-died",
        "fail",
        lambda t: (
            t.add(processes(10), processes(20, main=None, look="before-unwedging", fault=0)),
            t.unwedged(0, "node-1", 20, 30),
        ),
    ),
    ("nothing-left-behind", "not-exercised", lambda t: t.steady(1, 5)),
    ("nothing-left-behind", "pass", lambda t: t.add(processes(10), processes(60))),
    ("nothing-left-behind", "fail", lambda t: t.add(processes(10), processes(60, orphans=2))),
    ("idle-is-idle", "not-exercised", lambda t: t.add(processes(10), processes(60, cpu_s=50.0))),
    ("idle-is-idle", "pass", lambda t: idle(t, 1.0)),
    ("idle-is-idle", "fail", lambda t: idle(t, 8.0)),
    ("idle-is-idle", "pass", lambda t: idle(t, 1.0, runner_s=1.0)),
    ("idle-is-idle", "fail", lambda t: idle(t, 1.0, runner_s=8.0)),
    ("nothing-left-behind", "pass", lambda t: hosting(t, "a", "b")),
    ("nothing-left-behind", "fail", lambda t: hosting(t, "a")),
    ("memory-given-back", "not-exercised", lambda t: memory(t, 40.0)),
    ("memory-given-back", "pass", lambda t: memory(t, 40.0, 39.0)),
    ("memory-given-back", "fail", lambda t: memory(t, 40.0, 30.0)),
    ("memory-given-back", "not-exercised", lambda t: memory(t, 40.0, 30.0, again="b")),
    ("memory-given-back", "not-exercised", lambda t: memory(t, 40.0, 30.0, models=(A, B))),
    ("memory-given-back", "pass", lambda t: own_memory(t, 40.0, 35.0)),
    ("memory-given-back", "fail", lambda t: own_memory(t, 40.0, 20.0)),
    ("speed-is-back", "not-exercised", speed),
    ("speed-is-back", "pass", lambda t: speed(t, 0.05, 0.06)),
    ("speed-is-back", "fail", lambda t: speed(t, 0.15, 0.15)),
    ("speed-is-back", "pass", lambda t: speed(t, 0.15, 0.05)),
    ("speed-is-back", "fail", lambda t: speed(t, 0.05, 0.05, step_s=1.5)),
    ("catches-up", "not-exercised", lambda t: t.steady(1, 5)),
    ("catches-up", "pass", lambda t: rejoining(t, 20, 21, 19, 20, 22, 20)),
    ("catches-up", "fail", lambda t: rejoining(t, 20, 70)),
    ("catches-up", "fail", lambda t: rejoining(t, 5, 6, 7, 15, 20, 30)),
    ("no-silent-hang", "not-exercised", lambda t: t.end(1)),
    ("no-silent-hang", "pass", lambda t: t.lost(1, 2, "empty")),
    ("no-silent-hang", "fail", lambda t: t.lost(1, 121, "hung")),
    ("no-cut-stream", "not-exercised", lambda t: t.end(1)),
    ("no-cut-stream", "pass", lambda t: t.lost(1, 121, "hung")),
    ("no-cut-stream", "fail", lambda t: t.lost(1, 2, "truncated")),
    ("no-empty-answer", "not-exercised", lambda t: t.end(1)),
    ("no-empty-answer", "pass", lambda t: t.lost(1, 2, "truncated")),
    ("no-empty-answer", "fail", lambda t: t.lost(1, 2, "empty")),
]


def status_of(name: str, tape: Tape) -> Status:
    check = next(check for check in (*symptoms.CHECKS, *requests.CHECKS) if check.name == name)
    result = run_check(check, tape.analyse())
    assert not result.summary.startswith("the check crashed"), result.summary
    return result.status


@pytest.mark.parametrize(("name", "expected", "build"), CASES, ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_check(name: str, expected: Status, build: Build) -> None:
    tape = Tape((A,), schedule=[], expected_faults=0)
    build(tape)
    assert status_of(name, tape) == expected


def test_an_emulated_node_is_not_asked_for_the_memory_of_its_machine() -> None:
    tape = Tape((A, B), schedule=[], expected_faults=0, embedded=True)
    own_memory(tape, 40.0, 20.0)
    assert status_of("memory-given-back", tape) == "not-exercised"


def test_a_busy_controller_says_nothing_of_the_speed() -> None:
    tape = Tape((A,), schedule=[], expected_faults=0)
    speed(tape, 0.15, 0.15)
    for second in range(1, 260):
        tape.own(float(second), lag_s=0.01 if second < 60 else 0.5)
    assert status_of("speed-is-back", tape) == "not-exercised"


def test_what_lasts_to_the_end_of_the_load_is_found() -> None:
    tape = Tape((A, B), schedule=[], expected_faults=0)
    agreeing(tape)
    nodes(tape, 100, {"node-2": ["b"]})
    tape.add(PhaseStarted(t=190, phase="drain"))
    assert status_of("views-agree", tape) == "fail"


def test_how_long_it_took_to_catch_up_is_told() -> None:
    tape = Tape((A,), schedule=[], expected_faults=0)
    rejoining(tape, 20, 31)
    check = next(check for check in symptoms.CHECKS if check.name == "catches-up")
    assert run_check(check, tape.analyse()).summary == "caught up after at most 31.0 s"


def differing(facet: Any, one: Any, other: Any) -> Status:
    """Nodes that tell another thing for more than a minute and a half of calm weather."""
    tape = Tape((A,), schedule=[], expected_faults=0)
    agreeing(tape)
    tape.add(view(50, "node-1", facet, one), view(50, "node-2", facet, other))
    tape.add(view(150, "node-2", facet, one))
    return status_of("views-agree", tape)


@pytest.mark.parametrize("facet", ["instances", "deployments"])
def test_nodes_agree_on_which_instances_and_deployments_there_are(facet: Any) -> None:
    one, more = {"i": {"model": A}}, {"i": {"model": A}, "j": {"model": A}}
    assert differing(facet, one, more) == "fail"
    assert differing(facet, more, dict(reversed(more.items()))) == "pass"
    assert differing(facet, one, {"i": {"model": A, "port": 7}}) == "pass"  # what each is like is told a little later


def test_nodes_need_not_agree_on_what_is_their_own() -> None:
    assert differing("memory", {"a": 1}, {"b": 2}) == "pass"
    assert differing("event_index", 5, 7) == "pass"


def test_a_node_that_does_not_answer_disagrees_with_nobody_until_it_answers_again() -> None:
    tape = Tape((A,), schedule=[], expected_faults=0)
    agreeing(tape)
    nodes(tape, 20, {"node-2": ["b"]})
    tape.reachable(21, "node-2", reachable=False)
    assert status_of("views-agree", tape) == "pass"
    tape.reachable(30, "node-2", reachable=True)
    assert status_of("views-agree", tape) == "fail"


def test_an_instance_is_stranded_only_where_nodes_are_told() -> None:
    tape = Tape((A,), schedule=[], expected_faults=0)
    agreeing(tape)
    tape.add(view(50, "node-1", "instances", {"i": {"model": A, "runners": {"b": "r"}}, "odd": 7}))
    tape.add(view(60, "node-1", "nodes", []))
    assert status_of("no-zombie", tape) == "pass"


def test_views_that_disagree_say_in_what() -> None:
    tape = Tape()
    agreeing(tape)
    nodes(tape, 50, {"node-1": ["a", "b", "c"], "node-2": ["a", "b", "d"]})
    (found,) = tape.analyse().watch.views.disagreeing.found
    assert found.text == (
        "views of nodes differ: c is listed by node-1, not by node-2; d is listed by node-2, not by node-1"
    )
    held: dict[str, Any] = {f"i{number}": {"model": A, "runners": {}, "port": 1} for number in range(6)}
    tape = Tape()
    agreeing(tape)
    tape.add(view(50, "node-1", "instances", held), view(50, "node-2", "instances", {"i0": held["i0"]}))
    (found,) = tape.analyse().watch.views.disagreeing.found
    assert found.text.startswith(f"views of instances differ: i1 ({A}) is listed by node-1, not by node-2; i2 ")
    assert found.text.endswith("; and 1 more")
