"""The smaller parts by themselves: messages on the wire, the log, runners, placement."""

from __future__ import annotations

import random

import msgspec
import pytest

from rig.lab.exo.behaviour import Timers, sound
from rig.lab.exo.events import BLOCK, ChunkGenerated, Entry, Event, EventLog, NodeInfo, TopologyEdgeCreated
from rig.lab.exo.messages import Command, Events, Hello, LocalEvents, Session, decode, encode
from rig.lab.exo.models import STOCK_MODELS, Model
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.placement import CannotPlace, place, placement_inputs
from rig.lab.exo.runner import RunnerLogic, RunnerTimes
from rig.lab.exo.state import ClusterState

TIMES = RunnerTimes(spawn_s=1.0, connect_s=0.5, load_s=2.0, warmup_s=0.5, prefill_s=0.2, token_s=0.1, layers=4)
GB = 1024**3


def token(i: int) -> Entry:
    return Entry("a", i, ChunkGenerated("c", "token", str(i)))


def test_messages_survive_the_wire_and_garbage_does_not() -> None:
    session = Session(3, "a" * 32)
    for message in (
        Hello("a", "n1", "10.77.0.1"),
        Events(session, 7, [token(0), token(1)], caught_up=False),
        LocalEvents(session, "a", 0, 4, [ChunkGenerated("c", "error", "why")]),
        Command(session, "id", "TextGeneration", model_id="m", max_tokens=5),
    ):
        assert decode(encode(message)) == message
    with pytest.raises(msgspec.DecodeError):
        decode(b"\x00garbage")


def test_the_log_reads_across_compressed_blocks() -> None:
    log, entries = EventLog(), [token(i) for i in range(3 * BLOCK + 10)]
    for entry in entries:
        log.append(entry)
    assert len(log.blocks) == 3
    assert log.next_index == len(entries)
    assert list(log) == entries
    for start, limit in ((0, 5), (BLOCK - 2, 5), (2 * BLOCK, BLOCK + 20), (3 * BLOCK + 8, 5), (len(entries), 5)):
        assert log.read(start, limit) == entries[start : start + limit]
    moved = EventLog(log.first, list(log.blocks), list(log.tail))
    assert moved.read(BLOCK, 3) == entries[BLOCK : BLOCK + 3]


def test_the_master_takes_a_nodes_events_once_each_and_in_order() -> None:
    node = NodeLogic("n1", "10.0.0.1", ["n2"], behaviour=sound(), timers=Timers(), rng=random.Random(1))
    node.start(0.0)
    node.link_up(0.1, "n2")
    node.receive(0.1, "n2", Hello("b", "n2", "10.0.0.2"))

    def say(first: int, *texts: str, base: int = 0) -> list[str]:
        events: list[Event] = [ChunkGenerated("c", "token", t) for t in texts]
        node.receive(0.2, "n2", LocalEvents(node.session, "b", base, first, events))
        return [e.event.text for e in node.replica.log if isinstance(e.event, ChunkGenerated)]

    assert say(0, "0", "1") == ["0", "1"]
    assert say(1, "1", "2") == ["0", "1", "2"]
    assert say(4, "4") == ["0", "1", "2"]  # 3 is missing: it comes again from there
    assert say(3, "3", "4") == ["0", "1", "2", "3", "4"]
    assert say(9, "9", base=9) == ["0", "1", "2", "3", "4", "9"]  # back after an absence


def run(runner: RunnerLogic, until: float, now: float = 0.0) -> list[tuple[float, str]]:
    """Reports by time, as a host that wakes at each deadline sees them."""
    seen: list[tuple[float, str]] = []
    while (due := runner.next_deadline()) is not None and due <= until:
        now = max(now, due)
        seen += [(round(now, 3), r.kind) for r in runner.tick(now)]
    return seen


def test_a_runner_goes_through_its_life() -> None:
    runner = RunnerLogic(TIMES, 0.0)
    assert run(runner, 5.0) == [(1.0, "idle")]
    runner.command(5.0, "connect")
    assert run(runner, 6.0, 5.0) == [(5.0, "connecting"), (5.5, "connected")]
    runner.command(6.0, "load")
    assert run(runner, 9.0, 6.0) == [
        (6.0, "loading"),
        (6.5, "loading"),
        (7.0, "loading"),
        (7.5, "loading"),
        (8.0, "loaded"),
    ]
    runner.command(9.0, "warmup")
    assert run(runner, 10.0, 9.0) == [(9.0, "warming_up"), (9.5, "ready")]
    runner.command(10.0, "generate", "t", 20, 3)
    kinds = [kind for _, kind in run(runner, 20.0, 10.0)]
    assert kinds == ["prefill", "prefill", "prefill", "token", "token", "finish"]
    assert runner.next_deadline() is None
    with pytest.raises(ValueError, match="unknown runner command"):
        runner.command(20.0, "dance")


def test_a_runner_that_was_stopped_catches_nothing_up() -> None:
    runner = RunnerLogic(TIMES, 0.0)
    runner.tick(1.0)
    runner.command(1.0, "generate", "t", 1, 100)
    for t in (1.0, 1.1, 1.2, 1.3):
        runner.tick(t)
    reports = runner.tick(31.3)
    assert [r.kind for r in reports] == ["token"]
    assert runner.next_deadline() == pytest.approx(31.4)


def test_pause_resume_cancel_and_hang() -> None:
    runner = RunnerLogic(TIMES, 0.0)
    runner.tick(1.0)
    runner.command(1.0, "generate", "t", 1, 100)
    runner.command(1.0, "pause")
    assert runner.next_deadline() is None
    assert runner.tick(9.0) == []
    runner.command(9.0, "resume")
    assert [r.kind for r in runner.tick(9.0)] == ["prefill"]
    runner.command(9.0, "generate", "u", 1, 100)
    runner.command(9.0, "cancel", "t")
    assert {r.task_id for r in runner.tick(50.0)} == {"u"}
    runner.command(50.0, "hang")
    assert (runner.next_deadline(), runner.tick(99.0)) == (None, [])


def a_state(memory: dict[str, int], links: list[tuple[str, str]]) -> ClusterState:
    state = ClusterState()
    for node_id, available in memory.items():
        state.nodes[node_id] = NodeInfo(node_id, f"10.0.0.{len(state.nodes)}", 16 * GB, available)
    for a, b in links:
        state.edges[a, b] = TopologyEdgeCreated(a, b, "x")
    return state


BOTH = [("a", "b"), ("b", "a")]
BIG = Model("big", 10 * GB)


def test_placement_takes_the_fewest_nodes_that_hold_the_model_and_are_connected_both_ways() -> None:
    def where(state: ClusterState, model: Model, min_nodes: int = 1) -> tuple[str, ...]:
        return place(state, model, sharding="Pipeline", instance_meta="MlxRing", min_nodes=min_nodes).nodes

    assert where(a_state({"a": 8 * GB, "b": 12 * GB}, []), BIG) == ("b",)
    assert set(where(a_state({"a": 8 * GB, "b": 8 * GB}, BOTH), BIG)) == {"a", "b"}
    assert set(where(a_state({"a": 12 * GB, "b": 8 * GB}, BOTH), BIG, min_nodes=2)) == {"a", "b"}
    for links in ([], BOTH[:1]):
        with pytest.raises(CannotPlace, match="No cycles found with sufficient memory"):
            where(a_state({"a": 8 * GB, "b": 8 * GB}, links), BIG)
    with pytest.raises(CannotPlace, match="sufficient memory"):
        where(a_state({"a": 8 * GB, "b": 8 * GB}, BOTH), STOCK_MODELS["lab/too-big"])
    with pytest.raises(CannotPlace, match="MlxMetal"):
        place(a_state({"a": 12 * GB}, []), BIG, sharding="Pipeline", instance_meta="MlxJaccl", min_nodes=1)


def test_placement_is_the_same_in_whatever_order_nodes_are_known() -> None:
    names, rng = ["a", "b", "c", "d"], random.Random(1)
    links = [(x, y) for x in names for y in names if x != y]
    found: set[tuple[str, ...]] = set()
    for _ in range(10):
        rng.shuffle(names)
        state = a_state(dict.fromkeys(names, 8 * GB), links)
        found.add(place(state, BIG, sharding="Pipeline", instance_meta="MlxRing", min_nodes=2).nodes)
    assert len(found) == 1


def test_memory_alone_is_no_change_of_what_placement_works_from() -> None:
    assert placement_inputs(a_state({"a": 1}, [])) == placement_inputs(a_state({"a": 2}, []))
    assert placement_inputs(a_state({"a": 1}, [])) != placement_inputs(a_state({"a": 1, "b": 1}, []))
    assert placement_inputs(a_state({"a": 1, "b": 1}, BOTH)) != placement_inputs(a_state({"a": 1, "b": 1}, BOTH[:1]))


def test_layers_go_by_free_memory_and_each_node_has_room_for_its_own() -> None:
    """6 GB and 2 GB free: a model of 7 GB in 4 layers is split 3 to 1; with 2 layers, 1 to 1, the second lacks room."""
    state = a_state({"a": 6 * GB, "b": 2 * GB}, BOTH)

    def layers(count: int, sharding: str = "Pipeline") -> tuple[int, ...]:
        model = Model("m", 7 * GB, layers=count)
        return place(state, model, sharding=sharding, instance_meta="MlxRing", min_nodes=2).layers

    assert layers(4) == (3, 1)
    assert layers(2, "Tensor") == (2, 2)
    with pytest.raises(CannotPlace) as caught:
        layers(2)
    assert caught.value.reason == (
        "Node 1 (b) has insufficient memory: requires 3.50 GB for 1 layers, but only has 2.00 GB available"
    )
    with pytest.raises(CannotPlace, match="Cannot distribute 1 layers across 2 nodes"):
        layers(1)


def test_a_ring_needs_both_ways_between_neighbours() -> None:
    """Three nodes whose links go round one way form a cycle, and no ring."""
    around = [("a", "b"), ("b", "c"), ("c", "a")]
    state = a_state(dict.fromkeys("abc", 8 * GB), around)
    with pytest.raises(CannotPlace, match="MLX ring backend requires connectivity between neighbouring nodes"):
        place(state, BIG, sharding="Pipeline", instance_meta="MlxRing", min_nodes=3)
    square = [(x, y) for a, b in zip("abcd", "bcda", strict=True) for x, y in ((a, b), (b, a))]
    ring = place(
        a_state(dict.fromkeys("abcd", 8 * GB), square), BIG, sharding="Pipeline", instance_meta="MlxRing", min_nodes=4
    )
    assert all(pair in square for pair in zip(ring.nodes, ring.nodes[1:] + ring.nodes[:1], strict=True))


def test_one_node_alone_is_always_a_ring() -> None:
    state = a_state({"a": 12 * GB}, [])
    state.nodes["a"] = NodeInfo("a", "x", 12 * GB, 12 * GB, ("MlxMetal",), rdma=True)
    alone = place(state, BIG, sharding="Tensor", instance_meta="MlxJaccl", min_nodes=1)
    assert (alone.nodes, alone.sharding, alone.instance_meta) == (("a",), "Pipeline", "MlxRing")
    state.nodes["a"] = NodeInfo("a", "x", 12 * GB, 12 * GB, ("MlxMetal",))
    with pytest.raises(CannotPlace, match="no RDMA-connected cycles"):
        place(state, BIG, sharding="Pipeline", instance_meta="MlxJaccl", min_nodes=1)


def test_a_link_to_a_node_that_has_not_reported_is_no_change() -> None:
    state = a_state({"a": 1}, [])
    before = placement_inputs(state)
    state.edges["a", "z"] = TopologyEdgeCreated("a", "z", "x")
    state.nodes["b"] = NodeInfo("b", "x", 0, 0, ())
    assert placement_inputs(state) == before
