"""What is known of faults, from their records in any order."""

from __future__ import annotations

from typing import Any

import pytest

from rig.analysis.recovery.faults import FaultLog, in_force, strike_of
from rig.journal.records import FaultChanged, FaultState
from tests.analysis.tape import Tape


def log(*records: FaultChanged) -> FaultLog:
    found = FaultLog()
    for record in records:
        found.feed(record)
    return found


def said(
    number: int, state: FaultState, at_t: float, *, hit: tuple[str, ...] = (), error_s: float = 0.0
) -> FaultChanged:
    return Tape().change(number, "freeze", state, at_t, hit=hit, error_s=error_s, late_s=0.2)


def spell(number: int, from_t: float, to_t: float) -> list[FaultChanged]:
    return [said(number, "leased", from_t - 1), said(number, "struck", from_t), said(number, "healed", to_t)]


def around(found: FaultLog, from_t: float, to_t: float) -> list[int]:
    return [fault.number for fault in found.around(from_t, to_t)]


def test_what_a_later_record_leaves_out_is_still_known() -> None:
    given: dict[str, Any] = {"fault": 0, "fault_kind": "freeze", "aim": "x"}
    found = log(
        FaultChanged(
            t=1, state="planned", at_t=1, nodes=["a"], processes_hit=["a"], clients_cut=["b"], model="m", hold_s=5.0,
            reason="why", evidence={"pid": {"a": 7}}, **given,
        ),
        FaultChanged(t=2, state="struck", at_t=2, **given),
    ).by_number[0]  # fmt: skip
    assert (found.nodes, found.processes_hit, found.clients_cut) == (["a"], ["a"], ["b"])
    assert (found.model, found.hold_s, found.reason, found.evidence) == (
        "m",
        5.0,
        "why",
        {"planned": {"pid": {"a": 7}}},
    )


def test_what_was_healed_in_the_end_is_healed() -> None:
    found = log(said(0, "struck", 10), said(0, "unhealed", 50), said(0, "healed", 90)).by_number[0]
    assert (found.unhealed, found.healed_t, found.closed_t) == (False, 90, 50.2)
    assert log(said(0, "struck", 10), said(0, "unhealed", 50)).by_number[0].unhealed


def test_since_when_more_is_to_come_of_a_fault() -> None:
    open_ = [said(0, "leased", 10), said(1, "planned", 20)]
    assert log().oldest_open_t() is None
    assert log(*open_).oldest_open_t() == 10.2
    assert log(*open_, said(0, "skipped", 30)).oldest_open_t() == 20.2
    assert log(*open_, said(0, "skipped", 30), said(1, "skipped", 40)).oldest_open_t() is None


def test_faults_come_in_the_order_of_their_strikes_whenever_they_were_written() -> None:
    found = log(said(0, "struck", 100), said(1, "struck", 90), said(1, "struck", 90))
    assert ([fault.number for fault in found.struck], found.strikes) == ([1, 0], [90, 100])
    assert found.next_strike_t(found.by_number[1]) == 100
    assert found.next_strike_t(found.by_number[0]) is None


def test_which_faults_were_in_force() -> None:
    short = [record for number in (1, 2, 3) for record in spell(number, 100 + 20 * number, 101 + 20 * number)]
    long = log(*spell(0, 100, 300), *short)
    assert around(long, 250, 260) == [0]
    assert around(long, 120.5, 140.5) == [2, 1, 0]
    assert around(long, 301, 400) == []
    assert around(long, 90, 99) == []
    endless = log(said(0, "struck", 100), *short)
    assert around(endless, 5000, 5001) == [0]
    assert around(log(said(0, "struck", 100), said(0, "healed", 110), *short), 250, 260) == []


def test_a_fault_without_a_heal_is_in_force_to_the_end_of_its_story() -> None:
    assert around(log(said(0, "struck", 100), said(0, "invalid", 112)), 105, 106) == [0]
    assert around(log(said(0, "struck", 100), said(0, "invalid", 112)), 113, 114) == []
    assert around(log(said(0, "struck", 100), said(0, "unhealed", 112)), 113, 114) == [0]
    assert around(log(said(0, "struck", 100), said(0, "ineffective", 112)), 105, 106) == []


def test_the_clocks_make_it_wider() -> None:
    found = log(said(0, "struck", 100, error_s=2.0), said(0, "healed", 110, error_s=1.0), *spell(1, 300, 301))
    assert [around(found, t, t) for t in (97.9, 98.1, 110.9, 111.1)] == [[], [0], [0], []]


def test_what_never_struck_was_never_in_force() -> None:
    fault = log(said(0, "leased", 10)).by_number[0]
    assert not in_force(fault).meets(0, 1e9)
    with pytest.raises(ValueError, match="fault 0 did not strike"):
        strike_of(fault)


def test_a_fault_that_never_struck_is_forgotten_like_others() -> None:
    tape, log = Tape(), FaultLog()
    log.feed(tape.change(0, "freeze", "skipped", 10.0, reason="no node"))
    assert log.forget(9.0) == []
    assert log.forget(11.0) == [0]
    assert log.all() == []
