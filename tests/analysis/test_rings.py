"""Rings whose ranks never come together, as the evidence of a model that did not recover."""

from __future__ import annotations

from typing import Any

import pytest

from rig.analysis.verdict import verdict_of
from rig.journal.records import AnyRecord, Reachability, ViewChanged
from rig.targets.exo.rings import Apart, RingWatch
from tests.analysis.tape import A, Tape

RING = {"i": {"model": A, "runners": {"a": "r1", "b": "r2", "c": "r3"}, "port": 1}}


def view(t: float, facet: Any, value: Any, node: str = "node-1") -> ViewChanged:
    return ViewChanged(t=t, node=node, facet=facet, since_t=t - 1, value=value)


def ranks(t: float, *statuses: str, node: str = "node-1") -> ViewChanged:
    return view(t, "runners", {f"r{n}": f"Runner{status}" for n, status in enumerate(statuses, 1)}, node)


def found(*records: AnyRecord, pace: float = 1.0, end_t: float = 1000) -> list[Apart]:
    watch = RingWatch(pace)
    for record in records:
        watch.feed(record)
    return watch.found(end_t)


def test_a_ring_is_told_whose_ranks_stay_apart_for_long() -> None:
    waiting = (view(10, "instances", RING), ranks(20, "Idle", "Connecting", "Connected"))
    assert found(*waiting, ranks(120, "Ready", "Ready", "Ready")) == [
        Apart("i", A, 20, 120, "i had of 3 ranks 1 idle and 1 connecting")
    ]
    assert found(*waiting, ranks(119.9, "Ready", "Ready", "Ready")) == []
    assert [one.to_t for one in found(*waiting, view(130, "instances", {}))] == [130]
    assert [one.to_t for one in found(*waiting, end_t=125)] == [125]
    assert [one.to_t for one in found(*waiting, ranks(30, "Ready", "Ready", "Ready"), pace=10)] == [30]


def test_time_goes_on_while_its_ranks_only_take_turns_to_wait() -> None:
    waiting = (view(10, "instances", RING), ranks(20, "Idle", "Idle", "Idle"), ranks(90, "Connecting", "Idle", "Idle"))
    assert [(one.from_t, one.to_t) for one in found(*waiting, ranks(140, "Loading", "Loaded", "Connected"))] == [
        (20, 140)
    ]


@pytest.mark.parametrize(("down_t", "told"), [(119, []), (121, [120])])
def test_what_a_node_showed_before_it_fell_silent_is_known_up_to_then(down_t: float, told: list[float]) -> None:
    waiting = (view(10, "instances", RING), ranks(20, "Idle", "Idle", "Idle"))
    silent = Reachability(t=down_t, node="node-1", since_t=down_t - 1, reachable=False)
    assert [one.to_t for one in found(*waiting, silent)] == told


def test_of_several_nodes_the_one_that_saw_it_for_longest_tells() -> None:
    by_two: list[AnyRecord] = []
    for node, from_t, to_t in (("node-1", 20, 150), ("node-2", 30, 170)):
        by_two += [view(10, "instances", RING, node), ranks(from_t, "Idle", "Idle", "Idle", node=node)]
        by_two += [ranks(to_t, "Ready", "Ready", "Ready", node=node)]
    assert [(one.from_t, one.to_t) for one in found(*by_two)] == [(30, 170)]


def test_what_did_not_recover_is_told_with_the_ring_that_did_not_come_together() -> None:
    tape = Tape()
    tape.add(view(90, "instances", RING), ranks(95, "Ready", "Ready", "Ready"))
    tape.fault(0, "freeze", 100, 110, hit=("node-3",))
    tape.add(ranks(120, "Idle", "Connecting", "Idle"))
    tape.error(101, 102)
    tape.end(360)
    check = next(check for check in verdict_of(tape.analyse()).checks if check.name == "recovered")
    assert check.evidence == (
        f"fault 0 (freeze), {A}: not within 4 min 10 s after the heal; "
        "i had of 3 ranks 2 idle and 1 connecting from 120.0 to 360.0 s",
    )
