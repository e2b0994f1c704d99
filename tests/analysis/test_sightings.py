"""What the views showed, when."""

from __future__ import annotations

from typing import Any

from rig.analysis.recovery.sightings import MAX_SERVED, Sightings
from rig.journal.records import AnyRecord, MasterSeen, ViewChanged
from rig.targets.exo.judged import runners_of


def seen(*records: AnyRecord) -> Sightings:
    found = Sightings()
    for record in records:
        found.feed(record)
    return found


def view(t: float, value: Any, facet: Any = "instances", node: str = "a") -> ViewChanged:
    return ViewChanged(t=t, node=node, facet=facet, since_t=None, value=value)


def one(name: str, model: str = "m") -> dict[str, Any]:
    return {name: {"model": model, "runners": {"x": "r"}}}


def test_what_a_node_listed_at_a_time() -> None:
    found = seen(view(10, one("i")), view(20, one("j")), view(30, None))
    assert found.instances_of("a", 9) is None
    assert found.instances_of("a", 10) == one("i")
    assert found.instances_of("a", 25) == one("j")
    assert found.instances_of("a", 35) is None
    assert found.instances_of("b", 25) is None


def test_instances_of_a_model_in_any_of_several_views() -> None:
    found = seen(view(10, one("i")), view(10, one("j") | one("k", "n") | {"odd": 7}, node="b"))
    assert sorted(found.instances("m", 20, ["a", "b", "c"]) or {}) == ["i", "j"]
    assert found.instances("m", 20, ["c"]) is None
    assert found.instances("other", 20, ["a"]) == {}
    assert found.nodes() == ["a", "b"]


def test_only_what_is_needed_from_a_time_on_is_kept() -> None:
    found = seen(*(view(t, one(f"i{t}")) for t in (10, 20, 30, 40)))
    found.forget(5)
    assert found.instances_of("a", 10) == one("i10")
    found.forget(35)
    assert found.instances_of("a", 29) is None
    assert found.instances_of("a", 35) == one("i30")
    assert found.instances_of("a", 45) == one("i40")


def test_the_id_of_a_node() -> None:
    found = seen(view(10, "x", "node_id"), view(20, None, "node_id"))
    assert [found.node_id("a", t) for t in (5, 15, 25)] == [None, "x", None]
    assert found.node_id("b", 15) is None
    assert found.nodes() == []


def test_the_master_is_who_alone_claims_to_be() -> None:
    def says(node: str, *, is_master: bool = True) -> MasterSeen:
        return MasterSeen(t=1, node=node, is_master=is_master, source="log", at_t=1)

    assert seen().master() is None
    assert seen(says("a"), says("b", is_master=False)).master() == says("a")
    assert seen(says("a"), says("b")).master() is None
    assert seen(says("a"), says("a", is_master=False)).master() is None


def test_which_instance_served_the_latest_requests() -> None:
    found = seen()
    found.serve([("i", [f"{n}"]) for n in range(MAX_SERVED + 1)])
    assert (len(found.served), "0" in found.served, "1" in found.served) == (MAX_SERVED, False, True)


def test_the_nodes_that_host_an_instance() -> None:
    assert runners_of({"runners": {"x": "r1", "y": "r2"}}).keys() == {"x", "y"}
    assert runners_of({"runners": None}) == {}
    assert runners_of({}) == {}
