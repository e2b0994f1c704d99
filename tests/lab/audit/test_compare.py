"""Accounts that agree, and what may be missing from one of them for a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rig.journal.records import RunEnded
from rig.lab import ledger
from rig.lab.audit.compare import compare
from rig.lab.audit.falsify import closed, sample, seen, without, without_end
from rig.lab.audit.story import agreeing
from rig.lab.audit.world import WALL, ZERO, World, request


def test_three_accounts_that_agree() -> None:
    findings = compare(agreeing().rig(), agreeing().cluster())
    assert findings.differences == []
    compared = {row.title: row.compared for row in findings.rows}
    assert compared["requests completed"] == 2
    assert compared["requests lost: hung"] == 2
    assert compared["requests of the ledger"] == 15
    assert compared["faults: from plan to end"] == 4
    assert compared["cluster: processes in state T"] == 7
    assert compared["cluster: processes that ended"] == 13
    assert compared["cluster: packet-filter rules"] == 4
    assert {row.title: dict(row.explained) for row in findings.rows if row.title == "requests error"} == {
        "requests error": {"the connection broke: the main died": 1, "refused: the main was not there": 1}
    }


def test_the_end_of_a_run_that_was_interrupted_may_be_missing() -> None:
    world = agreeing()
    without_end("r1")(world)
    without(lambda record: isinstance(record, RunEnded))(world)
    assert compare(world.rig(), world.cluster()).differences == []
    rows = {row.title: row for row in compare(world.rig(), world.cluster()).rows}
    assert rows["requests unfinished"].explained == {"the run was interrupted": 1}


def test_an_end_after_the_client_had_left_at_its_deadline() -> None:
    world = agreeing()
    closed("r5", end="finished", finish_reason="stop", t=ZERO + 8.01)(world)
    rows = {row.title: row for row in compare(world.rig(), world.cluster()).rows}
    assert rows["requests lost: hung"].explained == {"the end was sent after the client had left": 1}


def test_a_clock_is_mapped_by_what_was_told_nearest_to_the_start() -> None:
    world = agreeing()
    late = ledger.Opened(t=ZERO + 40.0, node="node-1", process="exo", pid=9, wall_offset_s=WALL - ZERO + 3.0)
    world.files["node-1", "exo", 9] = [late]
    assert world.cluster().zero == pytest.approx(ZERO)


def left_frozen(world: World, *, at_t: float, closed_t: float | None = None, reached: bool = True) -> None:
    """Hung for 5 s, and given up at `at_t`, through the node that is frozen from 20 to 23."""
    request(
        world,
        "late",
        at_t - 5.0,
        at_t,
        "lost",
        how="hung",
        ledger_end=None if closed_t is None else "left",
        closed_t=closed_t,
        status=200 if reached else None,
        main=200,
        node="node-2",
        reached=reached,
    )


def at_the_crash(world: World, **how: Any) -> None:
    """Through node-1, whose main is stopped at 30.04 and killed at 30.105."""
    request(world, "late", how.pop("start_t", 29.8), how.pop("end_t", 30.106), **how)


def died_unseen(world: World) -> None:
    """The sampler had no look at the short time between stop and kill."""
    sample(seen(100, "T"))(world)
    at_the_crash(world, start_t=25.08, end_t=30.08, outcome="lost", how="hung")


def stopped_by_its_main(world: World) -> None:
    world.runner("node-1", 350, 44.0, main=300)
    world.file("node-1", "exo", 300, 44.0).append(
        ledger.ProcessSignalled(t=ZERO + 45.99, node="node-1", role="runner", pid=350, signal=9)
    )
    world.end(350, 46.0, -9)


def ended_alone(world: World) -> None:
    world.runner("node-1", 350, 44.0, main=300)
    world.end(350, 46.0, 0)


def exo_ended(world: World) -> None:
    """Begun by the unwedging, and gone again."""
    world.begin("node-2", "main", 450, 60.3)
    world.file("node-2", "exo", 450, 60.3).append(ledger.Stopping(t=ZERO + 60.9, node="node-2", process="exo", pid=450))
    world.end(450, 61.0, 1)


UNCLEAN = "the connection broke after the finish reason"
EXPLAINED: list[tuple[str, Callable[[World], None], str]] = [
    (
        "never read: the main was in state T",
        lambda world: left_frozen(world, at_t=22.0, reached=False),
        "requests lost: hung",
    ),
    (
        "left while the main was in state T",
        lambda world: left_frozen(world, at_t=21.0, closed_t=23.1),
        "requests lost: hung",
    ),
    (
        "left a main in state T, which was then killed",
        lambda world: at_the_crash(world, start_t=25.08, end_t=30.08, outcome="lost", how="hung"),
        "requests lost: hung",
    ),
    ("the main died as the client left", died_unseen, "requests lost: hung"),
    ("signalled by the cluster itself", stopped_by_its_main, "cluster: processes that ended"),
    ("ended by itself, with its main or its ring", ended_alone, "cluster: processes that ended"),
    ("exo ended by itself", exo_ended, "cluster: processes that ended"),
    (
        "the main was stopped and killed while it sent the end",
        lambda world: at_the_crash(world, outcome="error", ledger_end="finished", closed_t=30.04, cause="broken"),
        "requests error",
    ),
    (
        "the main died between finish reason and end",
        lambda world: at_the_crash(world, outcome="completed", tokens=3, unclean_end=UNCLEAN),
        "requests completed",
    ),
    (
        "unclean end: the main died or stood still",
        lambda world: at_the_crash(
            world, outcome="completed", tokens=3, ledger_end="finished", closed_t=30.04, unclean_end=UNCLEAN
        ),
        "requests completed",
    ),
]


@pytest.mark.parametrize(("evidence", "happens", "title"), EXPLAINED, ids=[case[0] for case in EXPLAINED])
def test_what_cannot_be_told_alike_is_explained(evidence: str, happens: Callable[[World], None], title: str) -> None:
    world = agreeing()
    happens(world)
    findings = compare(world.rig(), world.cluster())
    assert findings.differences == []
    assert findings.row(title).explained[evidence] == 1


UNEXPLAINED: list[tuple[str, Callable[[World], None]]] = [
    ("never read by a main that ran", lambda world: left_frozen(world, at_t=15.0, reached=False)),
    ("never read, before it stood still", lambda world: left_frozen(world, at_t=19.0, reached=False)),
    ("left while the main ran", lambda world: left_frozen(world, at_t=15.0, closed_t=17.0)),
    ("left a main that woke again", lambda world: left_frozen(world, at_t=22.0)),
    (
        "sent before the main stood still",
        lambda world: at_the_crash(world, outcome="error", ledger_end="finished", closed_t=29.9, cause="broken"),
    ),
    (
        "unclean long before the main died",
        lambda world: at_the_crash(
            world, end_t=29.95, outcome="completed", tokens=3, ledger_end="finished", unclean_end=UNCLEAN
        ),
    ),
    ("completed cleanly by a main that died", lambda world: at_the_crash(world, outcome="completed", tokens=3)),
]


@pytest.mark.parametrize("happens", [case[1] for case in UNEXPLAINED], ids=[case[0] for case in UNEXPLAINED])
def test_the_same_at_another_time_is_not(happens: Callable[[World], None]) -> None:
    world = agreeing()
    happens(world)
    found = compare(world.rig(), world.cluster()).differences
    assert [each.about for each in found if "request late" in each.about]
