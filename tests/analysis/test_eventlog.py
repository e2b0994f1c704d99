"""When what an event log tells happened, as far as polled indices, lists and the log's own order say."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from rig.journal.records import AnyRecord, EventLogRead, EventSeen, MasterSeen, ViewChanged
from rig.targets.exo.keeper.chronicle import Chronicle
from rig.targets.exo.keeper.eventlog import MAX_LIVES, MAX_SESSIONS
from tests.analysis.tape import keeper

MASTER = MasterSeen(t=10.2, node="a", is_master=True, source="log", at_t=10.0, at_error_s=0.2)


def seen(index: int, name: str = "NodeReported", *, t: float = 90.0, node: str = "a", **data: Any) -> EventSeen:
    return EventSeen(t=t, node=node, session="s", index=index, name=name, data=data)


def read(count: int = 100, *, t: float = 90.0, node: str = "a") -> EventLogRead:
    return EventLogRead(t=t, node=node, session="s", count=count, reports={"id-a": count})


def index(since_t: float | None, t: float, value: int, node: str = "a") -> ViewChanged:
    return ViewChanged(t=t, node=node, facet="event_index", since_t=since_t, value=value)


def listed(since_t: float | None, t: float, *names: str, node: str = "a") -> ViewChanged:
    return ViewChanged(t=t, node=node, facet="instances", since_t=since_t, value={name: {} for name in names})


def told(*records: AnyRecord, most: int = 1000) -> list[Chronicle]:
    return keeper(*records, most=most).events.chronicles(1.0)


def spans(*records: AnyRecord) -> dict[int, tuple[float, float]]:
    """By index: after when and by when."""
    (chronicle,) = told(*records)
    return {entry.order: (entry.span.after_t, entry.span.by_t) for entry in (*chronicle.entries, chronicle.end)}


def test_a_polled_index_says_what_was_there_by_then_and_what_was_not() -> None:
    polls = [index(20.0, 21.0, 5), index(30.0, 31.0, 8), index(40.0, 41.0, 12)]
    assert spans(MASTER, *polls, *(seen(n) for n in (4, 5, 6, 8, 9, 12, 13)), read()) == {
        4: (9.8, 21.0),
        5: (20.0, 21.0),
        6: (20.0, 31.0),
        8: (30.0, 31.0),
        9: (30.0, 41.0),
        12: (40.0, 41.0),
        13: (40.0, 90.0),
        99: (40.0, 90.0),
    }


def test_without_a_poll_there_is_the_reign_before_and_the_reading_after() -> None:
    assert spans(MASTER, seen(3), read()) == {3: (9.8, 90.0), 99: (9.8, 90.0)}


def test_polls_of_before_the_reign_are_of_another_log() -> None:
    polls = [index(None, 5.0, 900), index(9.0, 9.5, 950), index(10.1, 10.9, 960), index(20.0, 21.0, 5)]
    assert spans(MASTER, *polls, seen(5), seen(6), read())[6] == (20.0, 90.0)
    assert spans(MASTER, index(10.1, 10.9, 5), seen(5), read())[5] == (9.8, 90.0)


def test_an_index_that_falls_is_of_a_log_that_began_anew() -> None:
    polls = [index(20.0, 21.0, 3), index(22.0, 23.0, 50), index(30.0, 31.0, 2), index(40.0, 41.0, 6)]
    assert spans(MASTER, *polls, seen(1), seen(3), read()) == {1: (9.8, 31.0), 3: (30.0, 41.0), 99: (30.0, 90.0)}


def test_polls_of_another_node_say_nothing() -> None:
    assert spans(MASTER, index(20.0, 21.0, 5, node="b"), seen(5), read())[5] == (9.8, 90.0)


def test_what_came_before_came_no_later_and_what_came_after_no_earlier() -> None:
    lists = [listed(None, 5.0), listed(29.0, 30.0, "i"), listed(49.0, 50.0)]
    events = [
        seen(1),
        seen(2, "InstanceCreated", instance="i"),
        seen(3),
        seen(4, "InstanceDeleted", instance="i"),
        seen(5),
    ]
    assert spans(MASTER, *lists, *events, read()) == {
        1: (9.8, 30.0),
        2: (29.0, 30.0),
        3: (29.0, 50.0),
        4: (49.0, 50.0),
        5: (49.0, 90.0),
        99: (49.0, 90.0),
    }


def test_an_instance_was_made_before_anybody_listed_it() -> None:
    lists = [listed(None, 5.0), listed(27.0, 28.0, "i", node="b"), listed(29.0, 30.0, "i")]
    assert spans(MASTER, *lists, seen(1, "InstanceCreated", instance="i"), read())[1] == (9.8, 28.0)
    lists = [listed(None, 5.0), listed(24.0, 30.0, "i"), listed(27.0, 28.0, "i", node="b")]
    assert spans(MASTER, *lists, seen(1, "InstanceCreated", instance="i"), read())[1] == (24.0, 28.0)


def test_other_views_do_not_say_when_it_was_not_there_yet() -> None:
    """They lag behind the master: what they do not list may be there, and what they list may be gone."""
    lists = [listed(None, 5.0, node="b"), listed(27.0, 28.0, "i", node="b"), listed(37.0, 38.0, node="b")]
    events = [seen(1, "InstanceCreated", instance="i"), seen(2, "InstanceDeleted", instance="i")]
    assert spans(MASTER, *lists, *events, read()) == {1: (9.8, 28.0), 2: (9.8, 90.0), 99: (9.8, 90.0)}


def test_lists_of_before_the_reign_do_not_say_when_it_was_not_there_yet() -> None:
    lists = [listed(None, 5.0, "j"), listed(10.1, 11.0, "i")]
    events = [seen(1, "InstanceCreated", instance="i"), seen(2, "InstanceDeleted", instance="j")]
    assert spans(MASTER, *lists, *events, read()) == {1: (9.8, 11.0), 2: (9.8, 90.0), 99: (9.8, 90.0)}


def test_only_its_making_and_its_end_are_seen_in_a_list() -> None:
    lists = [listed(None, 5.0), listed(29.0, 30.0, "i"), listed(49.0, 50.0)]
    events = [seen(1, "InstanceCreated", instance="i"), seen(2, "DeploymentPlaced", instance="i")]
    assert spans(MASTER, *lists, *events, read())[2] == (29.0, 90.0)
    assert spans(MASTER, *lists, seen(1, "InstanceDeleted", instance="i"), read())[1] == (49.0, 50.0)


def test_a_log_that_was_not_read_to_its_end_is_no_session() -> None:
    assert told(MASTER, seen(1)) == []


def test_the_end_is_that_of_the_latest_reading() -> None:
    (chronicle,) = told(MASTER, seen(1, t=40.0), read(5, t=40.0), seen(7, t=60.0), read(9, t=60.0), seen(12, t=70.0))
    assert [entry.order for entry in chronicle.entries] == [1, 7, 12]
    assert (chronicle.end.order, chronicle.end.span.by_t, chronicle.end.reports) == (8, 60.0, {"id-a": 9})
    (chronicle,) = told(MASTER, read(0), read(1))
    assert chronicle.end.order == 0


def test_what_is_read_twice_happened_once() -> None:
    (chronicle,) = told(MASTER, seen(1, t=40.0), seen(1, t=60.0), read())
    assert [(entry.order, entry.span.by_t) for entry in chronicle.entries] == [(1, 40.0)]


def test_of_a_session_with_too_many_entries_only_what_was_read_in_full_is_told() -> None:
    whole = [MASTER, seen(1, t=40.0), seen(2, t=40.0), read(3, t=40.0)]
    (chronicle,) = told(*whole, seen(2, t=60.0), read(4, t=60.0), most=2)
    assert chronicle.end.order == 3
    (chronicle,) = told(*whole, seen(3, t=60.0), seen(2, t=60.0), read(5, t=60.0), most=2)
    assert (len(chronicle.entries), chronicle.end.order, chronicle.end.span.by_t) == (2, 2, 40.0)
    assert told(MASTER, seen(1), seen(2), seen(3), read(), most=2) == []


def test_of_several_nodes_that_tell_a_log_the_master_is_believed() -> None:
    named = [ViewChanged(t=5.0, node=node, facet="node_id", since_t=None, value=f"id-{node}") for node in ("a", "b")]
    polls = [index(20.0, 21.0, 5), index(50.0, 51.0, 5, node="b")]
    for first, second in (("a", "b"), ("b", "a")):
        (chronicle,) = told(
            *named, MASTER, *polls, seen(5, node=first), read(t=90.0, node=first), read(t=91.0, node=second)
        )
        assert (chronicle.node, chronicle.node_id) == ("a", "id-a")
        assert (chronicle.begun.after_t, chronicle.begun.by_t) == (9.8, 10.2)
        assert chronicle.entries[0].span.after_t == 20.0


def test_a_log_of_nobody_who_was_master_has_no_beginning() -> None:
    (chronicle,) = told(index(20.0, 21.0, 5), seen(5), read())
    assert (chronicle.node, chronicle.node_id, chronicle.history) == ("a", None, 0)
    assert chronicle.begun.after_t == -math.inf
    assert (chronicle.entries[0].span.after_t, chronicle.entries[0].span.by_t) == (-math.inf, 90.0)


def test_what_a_master_found_at_the_start_had_done_before_is_history() -> None:
    found = MasterSeen(t=10.2, node="a", is_master=True, source="log", at_t=10.0, at_error_s=0.2, past=True)
    polls = [index(None, 1.0, 400), index(19.0, 20.0, 500)]
    (chronicle,) = told(found, *polls, seen(450), read())
    assert chronicle.history == 401
    (chronicle,) = told(MASTER, *polls, seen(450), read())
    assert chronicle.history == 0
    (chronicle,) = told(found, seen(450), read())
    assert chronicle.history == 0


def test_the_reigns_whose_log_was_read_are_not_told_from_views() -> None:
    other = MasterSeen(t=20.0, node="b", is_master=True, source="log", at_t=20.0)
    not_read = EventSeen(t=91.0, node="b", session="s2", index=1, name="NodeReported", data={})
    nobody = EventLogRead(t=92.0, node="c", session="s3", count=5)
    events = keeper(MASTER, other, read(), not_read, nobody).events
    assert [reign.node for reign in events.reigns_read()] == ["a"]


def test_no_more_instances_are_known_from_lists_than_fit() -> None:
    names = [f"i{number}" for number in range(MAX_LIVES)]
    lists = [listed(None, 15.0), listed(20.0, 21.0, *names), listed(30.0, 31.0, *names, "late")]
    lists += [listed(40.0, 41.0, "late"), listed(50.0, 51.0)]
    made = [seen(n, "InstanceCreated", instance=instance) for n, instance in enumerate(("i0", "late"))]
    gone = [seen(n, "InstanceDeleted", instance=instance) for n, instance in enumerate(("i0", "late"), 2)]
    assert spans(MASTER, *lists, *made, *gone, read(4)) == {
        0: (20.0, 21.0),
        1: (20.0, 41.0),
        2: (40.0, 41.0),
        3: (40.0, 90.0),
    }


def test_what_is_known_of_an_instance_gets_better_when_no_more_fit() -> None:
    names = [f"i{number}" for number in range(MAX_LIVES)]
    lists = [listed(None, 15.0), listed(27.0, 28.0, *names, node="b"), listed(24.0, 30.0, "i0", "late")]
    assert spans(MASTER, *lists, seen(0, "InstanceCreated", instance="i0"), read(2))[0] == (24.0, 28.0)


def test_no_more_sessions_are_kept_than_fit() -> None:
    logs = [EventLogRead(t=20.0 + number, node="a", session=f"s{number}", count=1) for number in range(MAX_SESSIONS)]
    late = [replace(seen(0, t=1e5), session="late"), replace(read(1, t=1e5), session="late")]
    told_of = told(MASTER, *logs, *late, replace(read(9, t=1e5), session="s0"))
    assert len(told_of) == MAX_SESSIONS
    assert (told_of[0].end.order, told_of[-1].session) == (8, f"s{MAX_SESSIONS - 1}")


def test_each_side_of_a_split_is_told_by_its_own_masters_lists() -> None:
    """Both had the instance; the other side deleted it at 29, this one not before it was last listed here, at 48."""
    other = MasterSeen(t=12.0, node="b", is_master=True, source="log", at_t=12.0)
    lists = [listed(None, 5.0, "i", node="b"), listed(29.0, 30.0, node="b"), listed(None, 5.0, "i")]
    gone = [seen(1, "InstanceDeleted", instance="i")]
    assert spans(MASTER, other, *lists, *gone, read())[1] == (9.8, 90.0)
    assert spans(MASTER, other, *lists, listed(48.0, 49.0), *gone, read())[1] == (48.0, 49.0)


def test_what_the_other_sides_master_saw_late_was_made_when_this_sides_says() -> None:
    other = MasterSeen(t=12.0, node="b", is_master=True, source="log", at_t=12.0)
    lists = [listed(None, 5.0), listed(None, 5.0, node="b"), listed(59.0, 60.0, "i", node="b")]
    made = [seen(1, "InstanceCreated", instance="i")]
    assert spans(MASTER, other, *lists, *made, read())[1] == (9.8, 60.0)
    assert spans(MASTER, other, *lists, listed(69.0, 70.0, "i"), *made, read())[1] == (9.8, 60.0)


def test_the_same_nodes_later_reign_is_another_log() -> None:
    """Its list of a reign that is over does not say when the log of the next one deletes what came back."""
    over = MasterSeen(t=32.0, node="a", is_master=False, source="log", at_t=32.0)
    again = MasterSeen(t=40.0, node="a", is_master=True, source="log", at_t=40.0)
    lists = [listed(None, 5.0, "i"), listed(29.0, 30.0), listed(34.0, 35.0, "i")]
    assert spans(MASTER, *lists, over, again, seen(1, "InstanceDeleted", instance="i"), read())[1] == (40.0, 90.0)
