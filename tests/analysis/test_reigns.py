"""When which node reigned."""

from __future__ import annotations

import math

from rig.analysis.moments import Span
from rig.analysis.recovery.reigns import MAX_REIGNS, Reigns
from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, ViewChanged
from tests.analysis.tape import Tape


def says(t: float, node: str, *, is_master: bool = True, error_s: float = 0.2, past: bool = False) -> MasterSeen:
    return MasterSeen(t=t + 0.5, node=node, is_master=is_master, source="log", at_t=t, at_error_s=error_s, past=past)


def named(t: float, node: str, name: str, since_t: float | None = None) -> ViewChanged:
    return ViewChanged(t=t, node=node, facet="node_id", since_t=since_t, value=name)


def struck(t: float, kind: str, node: str) -> FaultChanged:
    return Tape().change(0, "node-crash" if kind == "node-crash" else "freeze", "struck", t, hit=(node,))


def reigns(*records: AnyRecord) -> Reigns:
    found = Reigns()
    for record in records:
        found.feed(record)
    return found


def times(*records: AnyRecord) -> list[tuple[str, float, float]]:
    return [(reign.node, reign.from_t, reign.to_t) for reign in reigns(*records).all]


def test_from_claim_to_denial() -> None:
    assert times(says(10, "a"), says(20, "a"), says(30, "a", is_master=False), says(40, "a")) == [
        ("a", 10, 30),
        ("a", 40, math.inf),
    ]
    assert times(says(10, "a", is_master=False)) == []


def test_no_more_are_kept_than_fit() -> None:
    claims = [says(float(t), "a", is_master=t % 2 == 0) for t in range(2 * MAX_REIGNS)]
    found = reigns(*claims, says(1e6, "a"), says(2e6, "b"))
    assert (len(found.all), found.all[-1].to_t) == (MAX_REIGNS, 2 * MAX_REIGNS - 1)
    assert (found.current("a"), found.of("a", 1e6)) == (None, None)


def test_two_may_reign_at_once() -> None:
    assert times(says(10, "a"), says(20, "b"), says(30, "a", is_master=False)) == [("a", 10, 30), ("b", 20, math.inf)]


def test_a_reign_ends_with_its_process() -> None:
    assert times(says(10, "a"), struck(50, "node-crash", "a")) == [("a", 10, 50)]
    assert times(says(10, "a"), struck(50, "node-crash", "b")) == [("a", 10, math.inf)]
    assert times(says(10, "a"), struck(50, "freeze", "a")) == [("a", 10, math.inf)]
    assert times(named(1, "a", "x"), says(10, "a"), named(60, "a", "y", since_t=58.0)) == [("a", 10, 58)]


def test_a_reign_knows_the_id_of_its_node() -> None:
    assert [reign.node_id for reign in reigns(named(1, "a", "x"), named(2, "b", "y"), says(10, "a")).all] == ["x"]
    assert [reign.node_id for reign in reigns(says(10, "a"), named(12, "a", "x")).all] == ["x"]
    assert [reign.node_id for reign in reigns(says(10, "a"), named(12, "b", "y")).all] == [None]


def test_its_beginning_is_as_sure_as_the_clocks() -> None:
    (reign,) = reigns(says(10, "a")).all
    assert reign.begun == Span(9.8, 10.2)
    assert not reign.surely(10.1)
    assert reign.surely(10.3)
    (found,) = reigns(says(10, "a", past=True)).all
    assert found.begun == Span(by_t=10.2)


def test_which_reign_a_moment_is_of() -> None:
    found = reigns(says(10, "a"), says(30, "a", is_master=False), says(30, "a"), says(15, "b"))
    assert found.of("a", 9.7) is None
    assert found.of("a", 9.9) is found.all[0]
    assert found.of("a", 29) is found.all[0]
    assert found.of("a", 30) is found.all[1]  # where two meet, the latest
    assert found.of("b", 20) is found.all[2]
    assert found.current("a") is found.all[1]


def test_what_changed_between_two_polls_changed_under_it_only_if_both_are_in_it() -> None:
    (reign,) = reigns(says(10, "a"), says(30, "a", is_master=False)).all
    assert reign.change(20, 21) == Span(20, 21)
    assert reign.change(10.1, 21) is None
    assert reign.change(None, 21) is None
    assert reign.change(31, 32) is None
