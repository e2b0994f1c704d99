"""Each promise of the keeper: kept, broken, too close to tell, not called upon; with the event log and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from rig.analysis.checks.check import Status
from rig.analysis.verdict import run_check
from rig.journal.records import ApiCall, MasterSeen, ViewChanged
from rig.targets.exo.checks import promises
from tests.analysis.checks.sessions import Session
from tests.analysis.tape import A, B, Tape

Build: TypeAlias = Callable[[Session], object]

CASES: list[tuple[str, Status, Build]] = [
    ("one-placement", "not-exercised", lambda s: s.deploy(20)),
    ("one-placement", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.lose(40, "i"), s.place(41, "j"))),
    ("one-placement", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.place(31, "j"))),
    ("one-placement", "fail", lambda s: (s.deploy(20), s.by_hand(25, "mine"), s.place(31, "j"))),
    ("one-placement", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.by_hand(35, "mine"))),
    ("one-placement", "unknown", lambda s: (s.deploy(20), s.appear(30, "i"), s.appear(31, "j"))),
    (
        "one-placement",
        "pass",
        lambda s: (s.deploy(20), s.place(30, "i"), s.deploy(31, "e", B), s.place(32, "j", "e", B)),
    ),
    ("one-placement", "not-exercised", lambda s: (s.appear(30, "i"), s.appear(31, "j"))),
    ("one-in-flight", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.lose(40, "i"), s.place(41, "j"))),
    ("one-in-flight", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.place(32, "j"))),
    ("placement-rate", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"))),
    ("placement-rate", "pass", lambda s: two(s, 31.1)),
    ("placement-rate", "fail", lambda s: two(s, 30.01)),
    ("placement-rate", "fail", lambda s: two(s, 30.5)),  # in which nobody reported
    ("placement-rate", "unknown", lambda s: two(s, 30.75)),  # one of three did
    ("placement-rate", "pass", lambda s: two(s, 30.85)),  # two did
    ("new-master-grace", "not-exercised", lambda s: s.deploy(20)),
    ("new-master-grace", "pass", lambda s: (s.deploy(11), s.place(25.2, "i"))),
    ("new-master-grace", "fail", lambda s: (s.deploy(11), s.place(20, "i"))),
    (
        "backoff",
        "not-exercised",
        lambda s: (s.deploy(20), s.place(30, "i", ready_t=34), s.lose(40, "i"), s.place(41, "j")),
    ),
    ("backoff", "pass", lambda s: losses(s, 10, 20, 40, 60, 60)),
    ("backoff", "fail", lambda s: losses(s, 1)),
    ("backoff", "fail", lambda s: losses(s, 10, 10)),
    ("backoff", "fail", lambda s: losses(s, 10, 20, 40, 60, 120)),
    ("backoff", "fail", lambda s: losses(s, 10, 20, 40, 60, 40)),
    ("backoff", "pass", lambda s: reset(s, 10)),
    ("backoff", "fail", lambda s: losses(s, 10, 20, 40, 60, 80)),
    ("backoff", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"), s.place(31, "j"))),
    ("backoff", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"), s.place(31, "j"), s.lose(32, "i"))),
    ("backoff", "pass", lambda s: (s.deploy(12), s.place(26, "i"), s.lose(29, "i"), s.refuse(40), s.place(80, "j"))),
    ("backoff-reset", "not-exercised", lambda s: losses(s, 10, 20)),
    ("backoff-reset", "not-exercised", lambda s: lost_after_a_ready_one(s, 40)),
    ("backoff-reset", "pass", lambda s: (reset(s, 10), s.lose(86, "f"), s.place(126, "g"))),
    ("backoff-reset", "fail", lambda s: reset(s, 17)),
    ("backoff-reset", "fail", lambda s: reset(s, None)),
    ("backoff-reset", "not-exercised", lambda s: (reset(s, None), s.delete(80))),
    ("backoff-reset", "not-exercised", lambda s: (reset(s, None), s.refuse(80))),
    ("backoff-reset", "pass", lambda s: reset(s, 10)),
    ("backoff-reset", "fail", lambda s: reset(s, 40)),
    ("replaced-at-once", "not-exercised", lambda s: losses(s, 10)),
    ("replaced-at-once", "pass", lambda s: ready_and_lost(s, 41.0)),
    ("replaced-at-once", "fail", lambda s: ready_and_lost(s, 50.5)),
    ("replaced-at-once", "fail", lambda s: ready_and_lost(s, None)),
    ("replaced-at-once", "not-exercised", lambda s: (ready_and_lost(s, None), s.refuse(41))),
    ("replaced-at-once", "not-exercised", lambda s: (ready_and_lost(s, 60.0), frozen_master(s, 38, 58))),
    ("replaced-at-once", "not-exercised", lambda s: (ready_and_lost(s, None), s.delete(60))),
    ("replaced-at-once", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i", ready_t=34), s.lose(296, "i"))),
    ("replaced-at-once", "not-exercised", lambda s: lost_when(s, lambda: s.by_hand(36, "mine"), None)),
    ("replaced-at-once", "not-exercised", lambda s: lost_when(s, lambda: s.delete(38), None)),
    ("replaced-at-once", "not-exercised", lambda s: (ready_and_lost(s, None), s.by_hand(41, "m"), s.lose(60, "m"))),
    ("replaced-at-once", "pass", lambda s: lost_when(s, lambda: others(s, 41, 43), 46.0)),
    ("replaced-at-once", "fail", lambda s: lost_when(s, lambda: others(s, 36, 38), 46.0)),
    ("replaced-at-once", "not-exercised", lambda s: (s.deploy(11), s.place(12, "i", ready_t=14), s.lose(20, "i"))),
    ("says-why", "not-exercised", lambda s: (s.deploy(30), s.place(31, "i"))),
    ("says-why", "pass", lambda s: (s.deploy(30), s.refuse(31))),
    ("says-why", "fail", lambda s: (s.deploy(30), s.refuse(31, " "))),
    ("says-why", "fail", lambda s: s.deploy(30)),
    ("says-why", "not-exercised", lambda s: (s.by_hand(25, "mine"), s.deploy(30))),
    ("says-why", "not-exercised", lambda s: (s.deploy(30), s.by_hand(40, "mine"))),
    ("says-why", "fail", lambda s: (s.by_hand(12, "mine"), s.lose(20, "mine"), s.deploy(30))),
    ("says-why", "not-exercised", lambda s: (s.deploy(30), frozen_master(s, 40, 290))),
    ("says-why", "fail", lambda s: s.deploy(273)),
    ("says-why", "not-exercised", lambda s: s.deploy(277)),
    ("says-why", "not-exercised", lambda s: (s.deploy(30), s.place(70, "i"))),
    ("says-why", "fail", lambda s: (s.deploy(30), s.place(90, "i"))),
    ("says-why", "not-exercised", lambda s: (s.deploy(270), s.delete(280))),
    ("says-why", "pass", lambda s: (s.deploy(30), s.place(31, "i"), s.lose(40, "i"), s.refuse(41))),
    ("reason-once", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.refuse(40))),
    ("reason-once", "pass", lambda s: lost_between(s, 31)),
    ("reason-once", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.lose(35, "i"), s.refuse(40), s.refuse(61))),
    ("reason-once", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.lose(35, "i"), s.refuse(50))),
    ("reason-once", "not-exercised", lambda s: (s.deploy(30), s.refuse(31), s.place(50, "i"))),
    ("reason-once", "not-exercised", lambda s: (s.deploy(30), s.refuse(31), s.delete(50))),
    ("reason-once", "not-exercised", lambda s: (s.deploy(280), s.refuse(281))),
    ("reason-once", "pass", lambda s: (s.deploy(30), s.refuse(31))),
    ("reason-once", "pass", lambda s: (s.deploy(30), s.refuse(31), s.refuse(40, "no link"))),
    ("reason-once", "fail", lambda s: (s.deploy(30), s.refuse(31), s.refuse(61))),
    ("retried-on-change", "not-exercised", lambda s: (s.deploy(30), s.refuse(31))),
    ("retried-on-change", "pass", lambda s: back(s, 101.0)),
    ("retried-on-change", "fail", lambda s: back(s, 110.0)),
    ("retried-on-change", "not-exercised", lambda s: (s.by_hand(25, "big", B), back(s, 110.0), s.lose(105, "big"))),
    ("retried-on-change", "not-exercised", lambda s: (back(s, 110.0), frozen_master(s, 101, 109))),
    ("retried-on-change", "fail", lambda s: back(s, 106.0)),
    ("retried-on-change", "unknown", lambda s: (others(s, 102, 104), back(s, 106.0))),
    ("retried-on-change", "fail", lambda s: (others(s, 90, 95), back(s, 106.0))),
    ("retried-on-change", "fail", lambda s: (others(s, 110, 112), back(s, 106.0))),
    ("retried-on-change", "not-exercised", lambda s: (s.deploy(30), waited_for_its_loss(s))),
    ("retried-on-change", "fail", lambda s: (s.by_hand(25, "big", B), s.lose(60, "big"), back(s, 110.0))),
    ("retried-on-change", "fail", lambda s: (s.by_hand(25, "big", B), s.lose(90, "big"), back(s, 110.0))),
    ("retried-on-change", "not-exercised", lambda s: (s.by_hand(25, "big", B), s.lose(94, "big"), back(s, 110.0))),
    ("retried-on-change", "fail", lambda s: (s.by_hand(25, "big", B), back(s, 110.0), s.lose(120, "big"))),
    ("retried-by-time", "pass", lambda s: freed(s, 137.0)),
    ("retried-by-time", "fail", lambda s: freed(s, 141.0)),
    ("retried-by-time", "not-exercised", lambda s: (freed(s, 150.0), frozen_master(s, 110, 140))),
    ("retried-by-time", "not-exercised", lambda s: (s.event(110, "NodeReported", node="id-3"), freed(s, 112.0))),
    ("retried-by-time", "not-exercised", lambda s: back(s, 101.0)),
    ("retried-by-time", "pass", lambda s: freed(s, 125.0)),
    ("retried-by-time", "fail", lambda s: freed(s, 150.0)),
    ("delete-takes-own", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"))),
    ("delete-takes-own", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"), s.lose(40, "i"), s.delete(50))),
    ("delete-takes-own", "not-exercised", lambda s: (adopted(s), s.delete(50))),
    ("delete-takes-own", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(50), s.lose(60, "i"))),
    ("delete-takes-own", "not-exercised", lambda s: s.deploy(20)),
    ("delete-takes-own", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(50), s.lose(50.1, "i"))),
    ("delete-takes-own", "fail", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(50))),
    ("delete-takes-own", "unknown", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(299))),
    (
        "delete-leaves-others",
        "not-exercised",
        lambda s: (s.deploy(20), s.place(30, "i"), s.delete(50), s.lose(50.1, "i")),
    ),
    ("delete-leaves-others", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"), s.by_hand(35, "mine"))),
    ("delete-leaves-others", "not-exercised", lambda s: beside(s, 45.0)),
    ("delete-leaves-others", "fail", lambda s: (adopted(s), s.delete(50), s.lose(50.1, "mine"))),
    ("delete-leaves-others", "fail", lambda s: (of_two(s), s.lose(50.2, "j"))),
    ("delete-leaves-others", "not-exercised", lambda s: (of_two(s), s.delete(50.1, "e"), s.lose(50.2, "j"))),
    ("delete-leaves-others", "not-exercised", lambda s: (timed_out(s, 49), beside(s, 50.1))),
    ("delete-leaves-others", "fail", lambda s: (s.event(49, "NodeReported", node="id-3"), beside(s, 50.1))),
    ("delete-leaves-others", "fail", lambda s: (timed_out(s, 60), beside(s, 50.1))),
    ("delete-leaves-others", "pass", lambda s: beside(s, None)),
    ("delete-leaves-others", "pass", lambda s: beside(s, 90.0)),
    ("delete-leaves-others", "fail", lambda s: beside(s, 50.1)),
    ("nothing-comes-back", "not-exercised", lambda s: s.deploy(20)),
    ("nothing-comes-back", "pass", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(50), s.lose(50.1, "i"))),
    ("nothing-comes-back", "not-exercised", lambda s: (s.deploy(20), s.delete(299))),
    ("nothing-comes-back", "fail", lambda s: (s.deploy(20), s.delete(50), s.place(50.2, "i"))),
    ("rate-after-grace", "pass", lambda s: after_grace(s, 25.2, 26.4)),
    ("rate-after-grace", "fail", lambda s: after_grace(s, 25.2, 25.21)),
    ("rate-after-grace", "not-exercised", lambda s: after_grace(s, 40.0, 40.01)),
    ("grace-ends", "pass", lambda s: (s.deploy(11), s.place(26, "i"))),
    ("grace-ends", "pass", lambda s: (s.deploy(11), s.refuse(26), s.polled(26.5))),
    ("grace-ends", "fail", lambda s: (s.deploy(11), s.place(40, "i"))),
    ("grace-ends", "fail", lambda s: s.deploy(11)),
    ("grace-ends", "not-exercised", lambda s: (s.deploy(40), s.place(41, "i"))),
    ("grace-ends", "not-exercised", lambda s: (s.deploy(11), s.delete(20))),
    ("grace-ends", "not-exercised", lambda s: (frozen_master(s, 20, 35), s.deploy(11), s.place(40, "i"))),
    ("made-again", "not-exercised", lambda s: (s.deploy(40), s.place(43, "i"))),
    ("made-again", "pass", lambda s: (s.polled(39.5), s.deploy(40), s.place(72, "i"))),
    ("made-again", "fail", lambda s: (s.deploy(40), s.place(85, "i"))),
    ("made-again", "fail", lambda s: s.deploy(40)),
    ("made-again", "fail", lambda s: (s.deploy(40), s.delete(200))),
    ("made-again", "pass", lambda s: (timed_out(s, 45), s.polled(39.5), s.deploy(40), s.place(90, "i"))),
    ("others-kept", "not-exercised", lambda s: (s.deploy(40), s.place(41, "i"))),
    ("others-kept", "pass", lambda s: (s.deploy(40), s.refuse(41), s.deploy(50, "e", B), s.place(51, "j", "e", B))),
    ("others-kept", "fail", lambda s: (s.deploy(40), s.deploy(50, "e", B))),
    ("others-kept", "fail", lambda s: (s.deploy(40), s.refuse(41), s.deploy(50, "e", B), s.place(75, "j", "e", B))),
    ("starts-afresh", "pass", lambda s: again(s, 41)),
    ("starts-afresh", "fail", lambda s: again(s, 55)),
    ("starts-afresh", "not-exercised", lambda s: (s.deploy(40), s.place(41, "i"))),
    ("starts-afresh", "pass", lambda s: taken_over(s, 41)),
    ("starts-afresh", "fail", lambda s: taken_over(s, 51)),
    ("only-creates", "pass", lambda s: (s.deploy(20), s.place(30, "i", ready_t=34))),
    ("only-creates", "fail", lambda s: went(s, 34, 100, None)),
    ("only-creates", "not-exercised", lambda s: (s.deploy(20), s.place(280, "i"))),
    ("only-creates", "not-exercised", lambda s: failed_and_lost(s, 99)),
    (
        "only-creates",
        "not-exercised",
        lambda s: (s.event(99, "NodeTimedOut", node="id-1"), went(s, 34, 100, None)),
    ),
    ("only-creates", "fail", lambda s: (s.event(99, "NodeTimedOut", node="id-2"), went(s, 34, 100, None))),
    ("only-creates", "not-exercised", lambda s: (s.deploy(20), s.place(30, "i"), s.delete(99), s.lose(99.1, "i"))),
    ("only-creates", "not-exercised", lambda s: (frozen_master(s, 50, 60), went(s, 34, 100, None))),
    ("only-creates", "not-exercised", lambda s: (asked_for(s, 99.5, "i"), went(s, 34, 100, None))),
    ("only-creates", "fail", lambda s: (asked_for(s, 110, "i"), went(s, 34, 100, None))),
    # The keeper looks once a second: what was ready for less may not have been for it.
    ("replaced-at-once", "not-exercised", lambda s: went(s, 34.0, 34.5, 45.5)),
    ("replaced-at-once", "fail", lambda s: went(s, 34.0, 37.5, 48.5)),
    ("backoff", "pass", lambda s: unseen(s, 40)),
    ("backoff", "pass", lambda s: unseen(s, 10)),
    ("backoff", "pass", lambda s: unseen(s, 60)),
    ("backoff", "fail", lambda s: unseen(s, 80)),
    ("backoff-reset", "not-exercised", lambda s: unseen(s, 40)),
    ("retried-by-time", "fail", lambda s: fitted(s, 20.0)),
    ("retried-by-time", "not-exercised", lambda s: fitted(s, None)),
    ("retried-by-time", "not-exercised", lambda s: (timed_out(s, 60), fitted(s, 20.0))),
    ("retried-on-change", "pass", lambda s: written_late(s, 101.2)),
    ("retried-on-change", "not-exercised", lambda s: written_late(s, 131.0)),
]


def after_grace(s: Session, *placed_t: float) -> None:
    s.deploy(11)
    s.deploy(12, "e", B)
    s.place(placed_t[0], "i")
    s.place(placed_t[1], "j", "e", B)


def again(s: Session, placed_t: float) -> None:
    """Lost before it was ready at 33, deleted, and its model deployed again at 40."""
    s.deploy(20)
    s.place(30, "i")
    s.lose(33, "i")
    s.delete(35)
    s.deploy(40, "e")
    s.place(placed_t, "j", "e")


def taken_over(s: Session, placed_t: float) -> None:
    """Carried over while it was loading, and lost at 40."""
    held = {"model": A, "runners": {"id-1": "r-1"}, "port": 1}
    s.event(10.1, "StateCarried", instances={"i": held}, deployments={"d": {"model": A, "instance": "i"}}, runners={})
    s.event(40, "InstanceDeleted", instance="i")
    s.place(placed_t, "j")


def went(s: Session, ready_t: float, lost_t: float, again_t: float | None) -> None:
    s.deploy(20)
    s.place(30, "i", ready_t=ready_t)
    s.lose(lost_t, "i")
    if again_t is not None:
        s.place(again_t, "j")


def failed_and_lost(s: Session, failed_t: float) -> None:
    s.deploy(20)
    s.place(30, "i", ready_t=34)
    s.runner(failed_t, "r-i", "RunnerFailed")
    s.lose(100, "i")


def asked_for(s: Session, t: float, instance: str) -> None:
    s.tape.add(ApiCall(t=t, what="delete-instance", node=s.node, asked_t=t, status=200, subject=instance))


def unseen(s: Session, wait_s: float) -> None:
    """Two lost before ready, one ready for half a second only, and another: its wait is the first or the fourth."""
    s.deploy(12)
    s.place(26, "a")
    s.lose(28, "a")
    s.place(38.7, "b")
    s.lose(40, "b")
    s.place(60.7, "c", ready_t=64)
    s.lose(64.5, "c")
    s.place(105.2, "e")
    s.lose(107, "e")
    s.place(107.7 + wait_s, "f")


def fitted(s: Session, proof_t: float | None) -> None:
    """An instance of the model was there before, beside nothing or never; another goes at 100."""
    s.by_hand(25, "big", B)
    if proof_t is not None:
        s.by_hand(proof_t, "proof")
        s.lose(29, "proof")
    s.deploy(30)
    s.refuse(31)
    s.lose(100, "big")


def written_late(s: Session, placed_t: float) -> None:
    """The refusal was on its way when the last link came."""
    s.deploy(30)
    s.refuse(31)
    s.event(98, "NodeReported", node="id-3")
    s.event(100, "TopologyEdgeCreated", source="id-3", sink="id-1")
    s.refuse(100.2, "no ring")
    s.place(placed_t, "j")


def two(s: Session, second_t: float) -> None:
    s.deploy(20)
    s.deploy(21, "e", B)
    s.place(30.0, "i")
    s.place(second_t, "j", "e", B)


def losses(s: Session, *waits_s: float) -> None:
    """Placed at 26, lost 3 s later each time, before it was ever ready."""
    s.deploy(12)
    at_t = 26.0
    for number, wait_s in enumerate((*waits_s, None)):
        s.place(at_t, f"i{number}")
        if wait_s is not None:
            s.lose(at_t + 3, f"i{number}")
            at_t += 3 + wait_s + 0.7  # a step of the keeper, and the way


def lost_after_a_ready_one(s: Session, wait_s: float) -> None:
    """The first that was lost before it was ready: nothing is reset."""
    s.deploy(12)
    s.place(26, "c", ready_t=30)
    s.lose(40, "c")
    s.place(40.8, "e")
    s.lose(42, "e")
    s.place(42.7 + wait_s, "f")


def reset(s: Session, wait_s: float | None) -> None:
    """Two lost before ready, one ready and lost, the next lost before ready."""
    s.deploy(12)
    s.place(26, "a")
    s.lose(28, "a")
    s.place(38.7, "b")
    s.lose(40, "b")
    s.place(60.7, "c", ready_t=64)
    s.lose(70, "c")
    s.place(70.8, "e")
    s.lose(72, "e")
    if wait_s is not None:
        s.place(72.7 + wait_s, "f")


def lost_between(s: Session, refused_t: float) -> None:
    """Refused, placed and lost, and refused again."""
    s.deploy(30)
    s.refuse(refused_t)
    s.place(60, "i")
    s.lose(70, "i")
    s.refuse(80)


def others(s: Session, *placed_t: float) -> None:
    """Other deployments, placed then."""
    for number, t in enumerate(placed_t):
        s.deploy(26 + number, f"o{number}", f"m{number}")
        s.place(t, f"oi{number}", f"o{number}", f"m{number}")


def waited_for_its_loss(s: Session) -> None:
    """What it was refused for was over when it was placed; then it was lost, and nodes changed."""
    s.refuse(31)
    s.place(40, "i")
    s.lose(45, "i")
    s.event(50, "NodeReported", node="id-3")
    s.place(75, "j")


def timed_out(s: Session, t: float) -> None:
    s.view(15, "nodes", ["id-1", "id-3"])
    s.event(t, "NodeTimedOut", node="id-3")
    s.view(t, "nodes", ["id-1"])


def adopted(s: Session) -> None:
    """One that was placed by hand is the deployment's; it stays somebody's own."""
    s.deploy(20)
    s.by_hand(25, "mine")
    s.event(26, "DeploymentPlaced", deployment="d", instance="mine")


def of_two(s: Session) -> None:
    """Two deployments; the first is deleted, and its instance with it."""
    s.deploy(20)
    s.deploy(21, "e", B)
    s.place(30, "i")
    s.place(32, "j", "e", B)
    s.delete(50)
    s.lose(50.1, "i")


def ready_and_lost(s: Session, again_t: float | None) -> None:
    s.deploy(20)
    s.place(30, "i", ready_t=34)
    s.lose(40, "i")
    if again_t is not None:
        s.place(again_t, "j")


def lost_when(s: Session, happens: Callable[[], object], again_t: float | None) -> None:
    """Ready at 34 and lost at 40, with something else besides."""
    s.deploy(20)
    s.place(30, "i", ready_t=34)
    happens()
    s.lose(40, "i")
    if again_t is not None:
        s.place(again_t, "j")


def frozen_master(s: Session, from_t: float, to_t: float) -> None:
    s.tape.fault(0, "freeze", from_t, to_t, hit=(s.node,))


def back(s: Session, placed_t: float) -> None:
    """Refused for want of a node; it is back, whole, at 100."""
    s.deploy(30)
    s.refuse(31)
    s.event(98, "NodeReported", node="id-3")
    s.event(100, "TopologyEdgeCreated", source="id-3", sink="id-1")
    s.place(placed_t, "j")


def freed(s: Session, placed_t: float) -> None:
    """Refused for want of memory; another instance goes at 100, and nothing else changes."""
    s.by_hand(25, "big", B)
    s.deploy(30)
    s.refuse(31)
    s.lose(100, "big")
    s.place(placed_t, "j")


def beside(s: Session, other_gone_t: float | None) -> None:
    """A deployment is deleted at 50, and its instance with it; one placed by hand goes when said."""
    s.deploy(20)
    s.place(30, "i")
    s.by_hand(35, "mine")
    s.delete(50)
    s.lose(50.05, "i")
    if other_gone_t is not None:
        s.lose(other_gone_t, "mine")


def status_of(name: str, tape: Tape) -> Status:
    check = next(check for check in promises.CHECKS if check.name == name)
    result = run_check(check, tape.analyse())
    assert not result.summary.startswith("the check crashed"), result.summary
    return result.status


def played(build: Build, *, read: bool) -> Tape:
    tape = Tape((A, B), schedule=[], expected_faults=0)
    session = Session(tape)
    build(session)
    if read:
        session.read(300)
    session.polled(299)
    tape.own(300.5)
    return tape


IDS = [f"{name}-{status}-{number}" for number, (name, status, _) in enumerate(CASES)]


@pytest.mark.parametrize(("name", "expected", "build"), CASES, ids=IDS)
def test_with_the_event_log(name: str, expected: Status, build: Build) -> None:
    assert status_of(name, played(build, read=True)) == expected


@pytest.mark.parametrize(("name", "expected", "build"), CASES, ids=IDS)
def test_views_alone_never_prove_a_promise_kept(name: str, expected: Status, build: Build) -> None:
    """What views show to be broken is broken; of a promise that is broken they do not say that it was kept."""
    found = status_of(name, played(build, read=False))
    assert found in ("unknown", "not-exercised", "fail")
    if expected != "fail":
        assert found != "fail"


@pytest.mark.parametrize(
    "name", ["one-placement", "one-in-flight", "backoff", "replaced-at-once", "new-master-grace", "delete-takes-own"]
)
def test_views_alone_show_what_is_plainly_broken(name: str) -> None:
    broken = [build for other, status, build in CASES if other == name and status == "fail"]
    assert any(status_of(name, played(build, read=False)) == "fail" for build in broken)


def test_the_evidence_names_instances_and_times() -> None:
    tape = played(lambda s: (s.deploy(20), s.place(30, "i"), s.place(31, "j")), read=True)
    check = next(check for check in promises.CHECKS if check.name == "one-placement")
    result = run_check(check, tape.analyse())
    assert "j was placed beside i" in result.evidence[0]
    assert "at 30.8 to 31.2 s" in result.evidence[0]


def told(tape: Tape, name: str) -> tuple[Status, str, int]:
    result = run_check(next(check for check in promises.CHECKS if check.name == name), tape.analyse())
    return result.status, result.summary, len(result.evidence)


def test_what_is_kept_is_told_with_its_count_and_a_few_examples() -> None:
    def build(s: Session) -> None:
        for number in range(5):
            s.deploy(20 + number, f"d{number}", f"m{number}")
            s.place(30 + 2 * number, f"i{number}", f"d{number}", f"m{number}")

    assert told(played(build, read=True), "one-placement") == ("pass", "kept 5 times in 1 sessions", 3)
    tape = played(lambda s: (two(s, 30.75), s.deploy(50, "f", "c"), s.place(60, "k", "f", "c")), read=True)
    assert told(tape, "placement-rate")[:2] == ("pass", "kept 1 times in 1 sessions, 1 too close to tell")


AFTER_ITS_DELETION: list[tuple[Build, str]] = [
    (lambda s: s.appear(60, "x"), ", 1 too close to tell"),
    (lambda s: s.by_hand(60, "x"), ""),
    (lambda s: s.appear(40, "x"), ""),
    (lambda s: (s.deploy(55, "e"), s.appear(60, "x")), ""),
    (lambda s: s.appear(60, "x", B), ""),
]


@pytest.mark.parametrize(("build", "open_"), AFTER_ITS_DELETION)
def test_what_comes_after_a_deletion_and_is_nobodys_leaves_it_open(build: Build, open_: str) -> None:
    tape = played(lambda s: (s.deploy(20), s.delete(50), build(s)), read=True)
    assert told(tape, "nothing-comes-back")[1] == f"kept 1 times in 1 sessions{open_}"


def test_only_the_first_placement_of_a_master_is_bound_by_the_grace() -> None:
    tape = played(lambda s: (s.deploy(11), s.place(30, "i"), s.deploy(31, "e", B), s.place(33, "j", "e", B)), read=True)
    assert told(tape, "new-master-grace")[1] == "kept 1 times in 1 sessions"


def test_what_is_placed_by_hand_beside_the_keepers_leaves_nothing_open() -> None:
    tape = played(lambda s: (s.deploy(20), s.place(30, "i"), s.by_hand(35, "mine")), read=True)
    assert told(tape, "one-placement")[1] == "kept 1 times in 1 sessions"


def test_what_nothing_called_upon_is_told_from_what_nobody_saw() -> None:
    assert told(played(lambda s: s.deploy(20), read=True), "backoff")[1] == "nothing called upon it"
    assert told(Tape(), "backoff")[1] == "no master was seen"


def test_views_alone_leave_it_open() -> None:
    tape = played(lambda s: (s.deploy(20), s.place(30, "i")), read=False)
    assert told(tape, "one-placement")[:2] == ("unknown", "no event log was read, and views cannot prove it")


def test_where_a_log_was_read_views_of_another_session_leave_nothing_open() -> None:
    tape = Tape((A, B), schedule=[], expected_faults=0)
    session = Session(tape)
    session.deploy(20)
    session.read(300)
    other = Session(tape, node="node-2", name="s2")
    other.deploy(20)
    other.place(30, "i")
    assert told(tape, "one-placement")[0] == "not-exercised"


def test_what_came_before_the_run_is_not_judged() -> None:
    """A master that is found at the start: its log tells of days before."""
    tape = Tape((A, B), schedule=[], expected_faults=0)
    session = Session(tape, begun_t=10)
    session.also_views = False
    session.deploy(20)
    session.place(30, "i")
    session.place(31, "j")
    session.read(300)
    records = [r for r in tape.records() if type(r).__name__ != "MasterSeen"]
    early = Tape((A, B), schedule=[], expected_faults=0)
    early.add(*records)
    early.add(MasterSeen(t=40, node="node-1", is_master=True, source="log", at_t=40, at_error_s=0.2, past=True))
    early.add(ViewChanged(t=41, node="node-1", facet="event_index", since_t=None, value=400_000))
    assert status_of("one-placement", early) == "not-exercised"
    early = Tape((A, B), schedule=[], expected_faults=0)
    early.add(*records)
    early.add(MasterSeen(t=40, node="node-1", is_master=True, source="log", at_t=40, at_error_s=0.2, past=True))
    early.add(ViewChanged(t=41, node="node-1", facet="event_index", since_t=None, value=5))
    assert status_of("one-placement", early) == "fail"


def test_two_sessions_are_judged_apart() -> None:
    """A split node that was its own master had an instance of the model as well: no second one in either session."""
    tape = Tape((A, B), schedule=[], expected_faults=0)
    for node, name, instance in (("node-1", "s1", "i"), ("node-2", "s2", "j")):
        session = Session(tape, node=node, name=name)
        session.deploy(20)
        session.place(30, instance)
        session.read(300)
    assert status_of("one-placement", tape) == "pass"


def test_a_faster_pace_divides_every_time() -> None:
    tape = Tape((A, B), schedule=[], expected_faults=0, pace=2.0)
    session = Session(tape)
    session.deploy(11)
    session.place(18, "i")  # 8 s after the master's beginning: at pace 2 the grace is 7.5 s
    session.read(100)
    assert status_of("new-master-grace", tape) == "pass"
