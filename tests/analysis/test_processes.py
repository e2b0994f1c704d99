"""Who died, and what explains it."""

from __future__ import annotations

import pytest

from rig.analysis.recovery.faults import Fault, FaultLog
from rig.analysis.symptoms.processes import ProcessWatch
from rig.journal.records import AnyRecord, Look, NodeProcesses, Unwedged, ViewChanged
from rig.targets.exo.judged import JUDGED
from tests.analysis.checks.sessions import processes
from tests.analysis.tape import Tape


def faults(tape: Tape) -> list[Fault]:
    log = FaultLog()
    for record in tape.records():
        if record.__class__.__name__ == "FaultChanged":
            log.feed(record)  # pyright: ignore[reportArgumentType]  # its class was just looked at
    return log.all()


def watch(*records: AnyRecord) -> ProcessWatch:
    found = ProcessWatch(1.0, JUDGED)
    for record in records:
        found.feed(record)
    return found


def restarted(fault: int, from_t: float, to_t: float, node: str = "node-1") -> Unwedged:
    return Unwedged(t=to_t, fault=fault, node=node, started_t=from_t, ended_t=to_t, ok=True)


LOOKS = (processes(100), processes(200, main="9:9"))


@pytest.mark.parametrize(
    ("struck_t", "healed_t", "explained"),
    [
        (110.0, 120.0, True),
        (90.0, 110.0, True),  # still going on at the first look
        (90.0, None, True),  # whose story is not over
        (80.0, 90.0, False),  # over before the first look
        (210.0, 220.0, False),  # after the second
        (190.0, 300.0, True),
    ],
)
def test_a_fault_between_two_looks_explains_a_death(struck_t: float, healed_t: float | None, explained: bool) -> None:  # noqa: FBT001
    tape = Tape()
    tape.fault(0, "node-crash", struck_t, healed_t, hit=("node-1",))
    assert (watch(*LOOKS).died(faults(tape)) == []) is explained


def test_only_a_fault_that_ends_a_process_of_this_node_does() -> None:
    tape = Tape()
    tape.fault(0, "freeze", 110, 120, hit=("node-1",))
    tape.fault(1, "node-crash", 130, 140, hit=("node-2",))
    assert watch(*LOOKS).died(faults(tape)) == [
        "node-1: the main process of 100.0 s (7:1) was another at 200.0 s, before fault 1"
    ]
    assert "was gone" in watch(LOOKS[0], processes(200, main=None)).died([])[0]
    assert watch(processes(100, main=None), LOOKS[1]).died([]) == []


@pytest.mark.parametrize(
    ("from_t", "to_t", "node", "explained"),
    [
        (110, 120, "node-1", True),
        (90, 110, "node-1", True),
        (190, 210, "node-1", True),
        (80, 90, "node-1", False),
        (210, 220, "node-1", False),
        (110, 120, "node-2", False),
    ],
)
def test_a_restart_by_the_rig_explains_a_death(from_t: float, to_t: float, node: str, explained: bool) -> None:  # noqa: FBT001
    assert (watch(*LOOKS, restarted(0, from_t, to_t, node)).died([]) == []) is explained


def test_what_is_found_before_the_restart_is_none_of_its_doing() -> None:
    look = processes(200, main="9:9", look="before-unwedging", fault=0)
    assert len(watch(LOOKS[0], look, restarted(0, 199, 210)).died([])) == 1
    assert watch(LOOKS[0], look, restarted(1, 150, 160)).died([]) == []


def test_what_is_left_behind_counts_but_right_after_a_fault() -> None:
    assert len(watch(processes(100, orphans=1)).left_behind()) == 1
    assert watch(processes(100, orphans=1, look="after")).left_behind() == []


def idle(node_t: float, cpu_s: float | None, main: str = "7:1", look: Look = "idle") -> NodeProcesses:
    return NodeProcesses(t=50, node="n", look=look, main=main, orphans=0, cpu_s=cpu_s, node_t=node_t)


def runners(
    t: float, *running: str, main: str = "7:1", cpu_s: float = 0.0, look: Look = "idle", fault: int | None = None
) -> NodeProcesses:
    used = dict.fromkeys(running, cpu_s)
    return NodeProcesses(
        t=t,
        node="n",
        look=look,
        fault=fault,
        main=main,
        orphans=0,
        cpu_s=0.0,
        node_t=t,
        worker_cpu_s=used,
    )


def listing(t: float, **on: str) -> AnyRecord:
    """The view of node n: instances, each with one runner on a node id."""
    value = {name: {"model": "m", "runners": {node_id: "r"}, "port": None} for name, node_id in on.items()}
    return ViewChanged(t=t, node="n", facet="instances", since_t=t - 1, value=value)


NAMED = (
    ViewChanged(t=1, node="n", facet="node_id", since_t=None, value="own"),
    ViewChanged(t=1, node="m", facet="node_id", since_t=None, value="theirs"),
)


def test_a_runner_that_spins_is_named() -> None:
    seen = watch(runners(10, "8:1", "9:1"), runners(20, "8:1", cpu_s=9.0))
    assert seen.idle_shares() == {"n, main process 7:1": 0.0, "n, runner 8:1": 0.9}


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        ((listing(5, a="own"), runners(100, "8:1", "9:1"), runners(140, "8:1", "9:1")), True),
        ((listing(5, a="own", b="own"), runners(100, "8:1", "9:1"), runners(140, "8:1", "9:1")), False),
        ((listing(5, a="own", b="theirs"), runners(100, "8:1", "9:1"), runners(140, "8:1", "9:1")), True),
        # its id after a start, which nobody has told yet
        ((listing(5, a="own", b="new"), runners(100, "8:1", "9:1"), runners(140, "8:1", "9:1")), False),
        # it ended, and another one came
        ((listing(5, a="own"), runners(100, "8:1", "9:1"), runners(140, "8:1", "5:1")), False),
        # listed until just before, or from then on
        ((listing(5, a="own"), listing(80), runners(100, "8:1"), runners(140, "8:1")), False),
        ((listing(5, a="own"), listing(60), runners(100, "8:1"), runners(140, "8:1")), True),
        ((listing(5), runners(100, "8:1"), listing(120, a="own"), runners(140, "8:1")), False),
        # too close to each other, of another main process, without a view
        ((listing(5), runners(100, "8:1"), runners(120, "8:1")), False),
        ((listing(5), runners(100, "8:1"), runners(140, "8:1", main="9:9")), False),
        ((runners(100, "8:1"), runners(140, "8:1")), False),
    ],
)
def test_runners_of_no_instance(records: tuple[AnyRecord, ...], kept: bool) -> None:  # noqa: FBT001
    assert bool(watch(*NAMED, *records).kept) is kept


def test_the_share_of_a_core_is_told_from_the_first_to_the_last_look_at_an_idle_target() -> None:
    assert watch(idle(10, 2), idle(12, 9), idle(20, 7)).idle_shares() == {"n, main process 7:1": 0.5}
    assert watch(idle(10, 2), idle(20, 7), idle(30, 99, look="before")).idle_shares() == {"n, main process 7:1": 0.5}
    assert watch(idle(10, 0), idle(20, 0)).idle_shares() == {"n, main process 7:1": 0.0}
    assert watch(idle(10, 2)).idle_shares() == {}
    assert watch(idle(10, 2), idle(20, 7, main="9:9")).idle_shares() == {}
    assert watch(idle(10, 2), idle(20, None)).idle_shares() == {}
    assert watch(idle(10, 2, look="before")).idle_shares() == {}


def test_looks_are_counted_by_the_pairs_of_each_node() -> None:
    assert watch(processes(1), processes(2), processes(3), processes(1, "node-2")).pairs() == 2
