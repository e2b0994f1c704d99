"""Which unread event logs leave something unknown, and that no promise passes over one."""

from __future__ import annotations

import pytest

from rig.analysis.checks.check import Status
from rig.analysis.recovery.reigns import Reigns
from rig.analysis.verdict import run_check
from rig.journal.records import AnyRecord, EventLogRead, Finding, MasterSeen
from rig.targets.exo.checks import promises
from rig.targets.exo.keeper.unread import Unread
from tests.analysis.checks.sessions import Session
from tests.analysis.tape import A, B, Tape


def unread(t: float, node: str = "node-1") -> Finding:
    return Finding(t=t, code="event-log-unread", text="no answer in time", data={"node": node, "events": 0})


def read(t: float, node: str = "node-1") -> EventLogRead:
    return EventLogRead(t=t, node=node, session=f"{node}, {t}", count=9)


def claim(t: float, node: str = "node-1", *, is_master: bool = True) -> MasterSeen:
    return MasterSeen(t=t, node=node, is_master=is_master, source="log", at_t=t)


@pytest.mark.parametrize(
    ("records", "missing"),
    [
        ((claim(1), read(10)), 0),
        ((claim(1), unread(10)), 1),
        ((claim(1), unread(10), unread(20)), 2),
        ((claim(1), unread(10), unread(20), read(30)), 0),
        ((claim(1), read(10), unread(11)), 1),  # not to its end
        ((claim(1), unread(10), read(30, "node-2")), 1),
        ((claim(1), unread(10), claim(20, is_master=False), claim(25), read(30)), 1),  # of another reign
        ((unread(10), claim(20), read(30)), 0),  # whose log it follows was nobody's here
    ],
)
def test_a_later_reading_of_the_same_log_makes_good(records: tuple[AnyRecord, ...], missing: int) -> None:
    reigns = Reigns()
    watch = Unread(reigns)
    for record in records:
        reigns.feed(record)
        watch.feed(record)
    assert len(watch.lines()) == missing


def played(*instances: str, also: AnyRecord | None = None) -> Tape:
    tape = Tape((A, B), schedule=[], expected_faults=0)
    session = Session(tape)
    session.deploy(20)
    for number, instance in enumerate(instances):
        session.place(30 + number, instance)
    session.read(300)
    session.polled(299)
    if also is not None:
        tape.add(also)
    tape.own(300.5)
    return tape


@pytest.mark.parametrize(
    ("instances", "before", "after"),
    [(("i",), "pass", "unknown"), ((), "not-exercised", "unknown"), (("i", "j"), "fail", "fail")],
)
def test_no_promise_is_kept_by_a_log_that_was_not_read(
    instances: tuple[str, ...], before: Status, after: Status
) -> None:
    check = next(check for check in promises.CHECKS if check.name == "one-placement")
    assert run_check(check, played(*instances).analyse()).status == before
    assert run_check(check, played(*instances, also=unread(300.2)).analyse()).status == after
