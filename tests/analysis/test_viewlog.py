"""Reigns told from views alone, in the cases in which a view says more than happened under the reign."""

from __future__ import annotations

from typing import Any

import pytest

from rig.analysis.moments import Span
from rig.journal.records import AnyRecord, MasterSeen, ViewChanged
from rig.targets.exo.keeper import placing, refusing
from rig.targets.exo.keeper.chronicle import Chronicle, Entry
from rig.targets.exo.keeper.rules import Rules
from rig.targets.exo.keeper.story import Story, tell
from tests.analysis.tape import keeper

INSTANCE: dict[str, Any] = {"model": "lab/tiny-a", "runners": {"id-1": "r-1"}, "port": 50000}


def entries_of(node: str, records: list[AnyRecord]) -> list[tuple[str, str]]:
    """Names of what happened under the last reign of a node, with the instances each is about."""
    last = [one for one in keeper(*records).views.chronicles([], 1.0, 100.0) if one.node == node][-1]
    return [(entry.name, str(entry.data.get("instance", ""))) for entry in last.entries if entry.order > 0]


def master(t: float, node: str) -> MasterSeen:
    return MasterSeen(t=t, node=node, is_master=True, source="log", at_t=t, at_error_s=0.2)


def instances(t: float, node: str, since_t: float | None, *names: str) -> ViewChanged:
    value = dict.fromkeys(names, INSTANCE)
    return ViewChanged(t=t, node=node, facet="instances", since_t=since_t, value=value)


def test_a_node_started_anew_that_learns_of_an_old_instance_did_not_place_it() -> None:
    told = entries_of("b", [
        instances(10.0, "a", None, "old"),
        instances(20.0, "b", None),
        master(30.0, "b"),
        instances(31.0, "b", 30.8, "old"),
        instances(35.0, "b", 34.8, "old", "new"),
    ])  # fmt: skip
    assert told == [("StateCarried", ""), ("InstanceCreated", "new")]


def test_what_another_view_shows_first_is_still_made_under_this_reign() -> None:
    told = entries_of("b", [
        instances(20.0, "b", None),
        master(30.0, "b"),
        instances(31.0, "a", 30.8, "new"),
        instances(31.2, "b", 31.0, "new"),
    ])  # fmt: skip
    assert told == [("InstanceCreated", "new")]


def test_a_deployment_may_name_an_instance_before_the_list_shows_it() -> None:
    """The list is asked for before the deployments: what is placed in between is named first."""

    def entry(order: int, name: str, **data: Any) -> Entry:
        return Entry(order, name, data, Span(order - 0.5, float(order)))

    entries = [
        entry(1, "DeploymentCreated", deployment="d", model="lab/tiny-a"),
        entry(2, "DeploymentPlaced", deployment="d", instance="i"),
        entry(3, "InstanceCreated", instance="i", model="lab/tiny-a", runners={"id-1": "r-1"}),
    ]
    chronicle = Chronicle("a", "id-1", "s", False, Span(0.0, 0.0), entries, entry(9, "end"), 1.0)  # noqa: FBT003
    told = tell(chronicle, [], 30.0)
    assert [(life.id, life.whose) for life in told.deployments["d"].placements] == [("i", "keeper")]


def test_an_instance_that_went_and_comes_back_was_not_there_in_between() -> None:
    """A cut-off node loses it, places another, and sees it again when the split is over, while it still reigns."""
    views = keeper(
        instances(10.0, "b", None, "old"),
        master(30.0, "b"),
        instances(32.0, "b", 31.8),
        instances(33.0, "b", 32.8, "new"),
        instances(34.0, "b", 33.8, "old"),
    ).views
    story = tell(views.chronicles([], 1.0, 100.0)[-1], [], 5.0)
    made = story.lives["new"].made
    assert made is not None
    assert not any(life.alive_at(made.order) for life in story.lives.values() if life.id == "old")
    assert story.lives["old"].alive_at(made.order + 2)


def _story_of_b(*before: str) -> Story:
    """Two are listed 0.1 s after b became master, give or take 0.2 s; `before` were in the view before that."""
    views = keeper(
        instances(10.0, "b", None, *before),
        master(30.0, "b"),
        instances(30.1, "b", 29.9, "one", "two"),
        instances(31.0, "b", 30.8),
    ).views
    return tell(views.chronicles([], 1.0, 100.0)[-1], [], 5.0)


def test_what_appears_as_a_master_begins_leaves_the_rate_and_its_grace_open() -> None:
    story = _story_of_b()
    assert story.placements() == []
    assert [life.id for life in story.doubtful()] == ["one", "two"]
    assert [judged.held for judged in placing.rate(story, Rules())] == ["undecided"]


def test_what_was_listed_before_a_master_began_is_no_matter_of_its_own() -> None:
    story = _story_of_b("one", "two")
    assert story.doubtful() == []
    assert list(placing.rate(story, Rules())) == []


def test_one_that_may_have_been_carried_over_says_nothing_of_a_rate() -> None:
    assert list(placing.rate(_story_of_b("one"), Rules())) == []


@pytest.mark.parametrize(("seen_without_t", "told"), [(32.3, []), (32.6, ["broken"])])
def test_a_reason_seen_just_before_its_instance_is_seen_to_be_gone_breaks_nothing(
    seen_without_t: float, told: list[str]
) -> None:
    """The list of deployments was asked for at 32.2 s and answered by 32.4 s, that of instances before or after it."""

    def deployments(t: float, instance: str | None, error: str | None) -> ViewChanged:
        item = {"model": "lab/tiny-a", "instance": instance, "error": error}
        return ViewChanged(t=t, node="b", facet="deployments", since_t=t - 0.2, value={"d": item})

    views = keeper(
        instances(10.0, "b", None),
        master(30.0, "b"),
        instances(31.0, "b", 30.8, "i"),
        deployments(31.1, "i", None),
        deployments(32.4, None, "does not fit"),
        instances(seen_without_t + 0.2, "b", seen_without_t),
    ).views
    story = tell(views.chronicles([], 1.0, 100.0)[-1], [], 5.0)
    assert [judged.held for judged in refusing.reason_once(story, Rules()) if "is there" in judged.line] == told


def view(t: float, node: str, facet: Any, value: Any, since_t: float | None = 0.0) -> ViewChanged:
    """Told by two polls a fifth of a second apart, unless it was the first."""
    return ViewChanged(t=t, node=node, facet=facet, since_t=None if since_t is None else t - 0.2, value=value)


def chronicles(*records: AnyRecord, without: bool = False, end_t: float = 100.0) -> list[Chronicle]:
    tape = keeper(*records)
    return tape.views.chronicles(tape.reigns.all if without else [], 1.0, end_t)


def told(*records: AnyRecord) -> list[tuple[str, dict[str, Any]]]:
    """What happened under the only reign, after what it began with."""
    (chronicle,) = chronicles(master(10.0, "a"), *records)
    assert chronicle.entries[0].name == "StateCarried"
    return [(entry.name, entry.data) for entry in chronicle.entries[1:]]


def test_nodes_and_links_that_come_and_go() -> None:
    nodes = [view(20.0, "a", "nodes", ["x", "y"]), view(30.0, "a", "nodes", ["y", "z"])]
    assert told(*nodes) == [
        ("NodeReported", {"node": "x"}),
        ("NodeReported", {"node": "y"}),
        ("NodeTimedOut", {"node": "x"}),
        ("NodeReported", {"node": "z"}),
    ]
    links = [view(20.0, "a", "links", [["x", "y"]]), view(30.0, "a", "links", [["y", "x"]])]
    assert told(*links)[1:] == [
        ("TopologyEdgeDeleted", {"link": "('x', 'y')"}),
        ("TopologyEdgeCreated", {"link": "('y', 'x')"}),
    ]
    assert told(view(20.0, "a", "nodes", ["x"]), view(30.0, "a", "nodes", None))[1:] == [
        ("NodeTimedOut", {"node": "x"})
    ]


def test_runners_between_ready_and_running_are_ready() -> None:
    assert told(
        view(20.0, "a", "runners", {"r": "RunnerLoading", "q": "RunnerReady"}),
        view(30.0, "a", "runners", {"r": "RunnerReady", "q": "RunnerRunning"}),
        view(40.0, "a", "runners", {"r": "RunnerRunning", "q": "RunnerReady"}),
    ) == [
        ("RunnerStatusUpdated", {"runner": "r", "status": "RunnerLoading"}),
        ("RunnerStatusUpdated", {"runner": "q", "status": "RunnerReady"}),
        ("RunnerStatusUpdated", {"runner": "r", "status": "RunnerReady"}),
    ]


def test_deployments_with_their_placements_and_reasons() -> None:
    new = {"model": "m", "instance": None, "error": None}
    made = ("DeploymentCreated", {"deployment": "d", **new})
    assert told(
        view(20.0, "a", "deployments", {"d": new}),
        view(30.0, "a", "deployments", {"d": new | {"error": "no memory"}}),
        view(35.0, "a", "deployments", {"d": new | {"error": "no memory", "status": "x"}}),
        view(40.0, "a", "deployments", {"d": new | {"instance": "i"}}),
        view(45.0, "a", "deployments", {"d": new | {"instance": "i", "status": "x"}}),
        view(50.0, "a", "deployments", {"d": new}),
        view(60.0, "a", "deployments", {}),
    ) == [
        made,
        ("DeploymentPlacementFailed", {"deployment": "d", "error": "no memory"}),
        ("DeploymentPlaced", {"deployment": "d", "instance": "i"}),
        ("DeploymentDeleted", {"deployment": "d"}),
    ]
    assert [
        name for name, _ in told(view(20.0, "a", "deployments", {"d": new | {"instance": "i", "error": "why"}}))
    ] == [
        "DeploymentCreated",
        "DeploymentPlaced",
        "DeploymentPlacementFailed",
    ]


def test_what_went_went_first() -> None:
    first, then = instances(20.0, "a", 19.8, "old"), instances(30.0, "a", 29.8, "new")
    assert told(first, then)[1:] == [
        ("InstanceDeleted", {"instance": "old"}),
        ("InstanceCreated", {"instance": "new", **INSTANCE}),
    ]


def test_other_facets_and_other_nodes_say_nothing() -> None:
    assert chronicles(master(10.0, "a"), view(20.0, "a", "memory", {"x": 7}), view(20.0, "b", "nodes", ["x"])) == []


def test_a_reign_begins_with_what_was_seen_last() -> None:
    (chronicle,) = chronicles(
        instances(5.0, "a", None, "old"),
        view(6.0, "a", "runners", {"r-1": "RunnerRunning"}, None),
        view(7.0, "b", "deployments", {"d": {}}, None),
        master(10.0, "a"),
        view(30.0, "a", "runners", {"r-1": "RunnerFailed"}),
    )
    first, second = chronicle.entries
    assert first.data == {
        "instances": {"old": INSTANCE},
        "deployments": {},
        "runners": {"r-1": "RunnerReady"},
        "doubtful": [],
    }
    assert (first.span, second.span) == (Span(9.8, 10.2), Span(29.8, 30.0))
    assert (first.order, second.order, chronicle.end.order) == (0, 1, 2)


def test_each_reign_has_its_own_account_unless_its_log_was_read() -> None:
    denied = MasterSeen(t=40.0, node="a", is_master=False, source="log", at_t=40.0)
    records = [
        master(10.0, "a"),
        master(11.0, "b"),
        view(20.0, "a", "nodes", ["x"]),
        view(21.0, "b", "nodes", ["x"]),
        view(22.0, "a", "nodes", ["x", "y"]),
        denied,
        view(45.0, "a", "nodes", ["x"]),
        master(50.0, "a"),
        view(60.0, "a", "nodes", []),
    ]
    found = chronicles(*records)
    assert [(one.session, len(one.entries)) for one in found] == [
        ("a at 10.0 s", 3),
        ("b at 11.0 s", 2),
        ("a at 50.0 s", 2),
    ]
    assert [entry.name for entry in found[2].entries] == ["StateCarried", "NodeTimedOut"]
    assert chronicles(*records, without=True) == []


def test_nothing_changed_up_to_the_last_poll_that_was_answered() -> None:
    change, poll = view(20.0, "a", "nodes", ["x"]), view(70.0, "a", "event_index", 7)
    assert chronicles(master(10.0, "a"), change)[0].end.span == Span(20.0, 100.0)
    assert chronicles(master(10.0, "a"), change, poll)[0].end.span == Span(69.8, 100.0)
    denied = MasterSeen(t=40.0, node="a", is_master=False, source="log", at_t=40.0)
    assert chronicles(master(10.0, "a"), change, denied, poll)[0].end.span == Span(40.0, 40.0)
    assert chronicles(master(10.0, "a"), change, view(30.0, "a", "event_index", 7, None))[0].end.span.after_t == 20.0
    early = MasterSeen(t=21.0, node="a", is_master=False, source="log", at_t=19.9)
    assert chronicles(master(10.0, "a"), change, early)[0].end.span == Span(20.0, 20.0)


def test_of_an_instance_seen_while_the_claim_was_not_sure_it_is_doubtful_under_whom_it_was_made() -> None:
    """A node that is started again right after a placement claims to be master, and then learns of it."""
    seen = [instances(10.1, "b", 9.9, "i"), instances(20.0, "a", 19.8, "i")]
    assert [name for name, _ in told(*seen)] == ["StateCarried"]
    assert [life.whose for life in tell(chronicles(master(10.0, "a"), *seen)[-1], [], 30.0).lives.values()] == [
        "unknown"
    ]
    assert [name for name, _ in told(instances(10.3, "b", 10.1, "i"), seen[1])] == ["InstanceCreated"]
