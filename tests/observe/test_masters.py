from __future__ import annotations

from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, ViewChanged
from rig.observe.masters import MasterTracker, masters_at


def _claim(t: float, node: str, *, is_master: bool = True) -> MasterSeen:
    return MasterSeen(t=t, node=node, is_master=is_master, source="log", at_t=t)


def _tracker(*records: AnyRecord) -> MasterTracker:
    tracker = MasterTracker()
    for record in records:
        tracker.apply(record)
    return tracker


def test_the_last_thing_a_node_said_counts() -> None:
    records = [_claim(1, "a"), _claim(2, "b"), _claim(3, "b", is_master=False), _claim(4, "c", is_master=False)]
    assert masters_at(records, 0.5) == frozenset()
    assert masters_at(records, 2.5) == {"a", "b"}
    assert masters_at(records, 9) == {"a"}


def test_an_older_word_that_comes_later_does_not_count() -> None:
    late = MasterSeen(t=5, node="a", is_master=False, source="files", at_t=1)
    assert _tracker(_claim(2, "a"), late).masters == {"a"}


def test_a_killed_master_is_none_and_one_that_is_frozen_still_is() -> None:
    strike = FaultChanged(
        t=5, fault=0, fault_kind="master-crash", state="struck", aim="master", processes_hit=["a"], at_t=4.9
    )
    frozen = FaultChanged(t=5, fault=0, fault_kind="freeze", state="struck", aim="a", processes_hit=["a"], at_t=4.9)
    assert _tracker(_claim(1, "a"), strike).masters == frozenset()
    assert _tracker(_claim(1, "a"), frozen).masters == {"a"}
    assert _tracker(_claim(1, "a"), strike, _claim(7, "a")).masters == {"a"}


def test_a_new_process_has_claimed_nothing_but_what_it_said_since() -> None:
    restarted = ViewChanged(t=9, node="a", facet="node_id", since_t=5.0, value="new")
    first = ViewChanged(t=0, node="a", facet="node_id", since_t=None, value="old")
    assert _tracker(first, _claim(1, "a"), restarted).masters == frozenset()
    tracker = _tracker(_claim(1, "a"), _claim(7, "a"), restarted)
    assert tracker.masters == {"a"}
    assert tracker.claimed_t("a") == 7


def test_since_when_a_master_has_been_one() -> None:
    tracker = _tracker(_claim(1, "a"), _claim(4, "a"), _claim(5, "b", is_master=False))
    assert tracker.claimed_t("a") == 1
    assert tracker.claimed_t("b") is None


def _id(t: float, node: str, value: str) -> ViewChanged:
    return ViewChanged(t=t, node=node, facet="node_id", since_t=None if t == 0 else t, value=value)


def _follows(t: float, node: str, elected: str) -> MasterSeen:
    return MasterSeen(t=t, node=node, is_master=False, source="log", at_t=t, elected=elected)


def test_the_master_is_not_the_node_that_has_just_started() -> None:
    elected = [_id(0, "a", "A"), _id(0, "b", "B"), _claim(1, "a"), _follows(1, "b", "A"), _follows(1, "c", "A")]
    assert _tracker(*elected).master(2) == "a"
    started = [*elected, _id(60, "b", "B2"), _claim(61, "b")]
    assert _tracker(*started).masters == {"a", "b"}
    assert _tracker(*started).master(61) == "a"
    assert _tracker(_claim(1, "a"), _claim(61, "b")).master(62) == "a"  # nobody else says anything: the older
    assert _tracker(_claim(60, "a"), _claim(61, "b")).master(62) is None


def test_a_killed_master_that_runs_again_is_not_the_one_that_was_elected() -> None:
    elected = [_id(0, "a", "A"), _claim(1, "a"), _follows(1, "b", "A"), _follows(1, "c", "A")]
    strike = FaultChanged(
        t=50, fault=0, fault_kind="master-crash", state="struck", aim="master", processes_hit=["a"], at_t=50
    )
    again = [*elected, strike, _claim(52, "a")]
    assert _tracker(*again).masters == {"a"}
    assert _tracker(*again).master(53) is None
    assert _tracker(*again, _claim(55, "b"), _follows(55, "c", "B"), _id(54, "b", "B")).master(55) == "b"
