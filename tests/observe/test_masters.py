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
