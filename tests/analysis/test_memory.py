"""Which looks at a node's memory are compared, and what is too little."""

from __future__ import annotations

from typing import Any

import pytest

from rig.analysis.symptoms.memory import MAX_GROUPS, MemoryWatch
from rig.journal.records import AnyRecord, Look, NodeMemory, PhaseStarted, ViewChanged
from rig.targets.exo.judged import runners_of
from tests.analysis.checks.sessions import processes
from tests.analysis.tape import A, Tape

GIB = 1 << 30


def view(t: float, facet: Any, value: Any, node: str = "n") -> ViewChanged:
    return ViewChanged(t=t, node=node, facet=facet, since_t=None, value=value)


def hosting(t: float, *on: str, node: str = "n") -> ViewChanged:
    """Instances of one model, each with a runner on such a node."""
    return view(t, "instances", {f"i{n}": {"model": A, "runners": {one: "r"}} for n, one in enumerate(on)}, node)


def told(t: float, gib: float) -> list[AnyRecord]:
    """By the target, looked at before a strike."""
    return [view(t, "memory", {"x": int(gib * GIB)}), Tape().change(0, "freeze", "planned", t)]


def own(t: float, gib: float | None, look: Look = "before") -> NodeMemory:
    free = None if gib is None else int(gib * GIB)
    return NodeMemory(t=t, node="n", look=look, fault=0, available_bytes=free, wired_bytes=None)


def watch(*records: AnyRecord, own_word: bool = True, pace: float = 1.0) -> MemoryWatch:
    found = MemoryWatch(own_word, runners_of, pace)
    for record in records:
        found.feed(record)
    return found


NAMED = view(0.0, "node_id", "x")


@pytest.mark.parametrize(("later", "kept"), [(38.0, False), (37.9, True), (45.0, False)])
def test_by_the_target_a_twentieth_of_what_was_free_is_too_much(later: float, kept: bool) -> None:  # noqa: FBT001
    found = watch(NAMED, hosting(1.0, "x"), *told(50.0, 40.0), *told(60.0, 1.0), *told(99.0, later))
    assert found.kept_back() == (
        [f"n x with {A}: 40.0 GiB free at 50.0 s, {later:.1f} GiB at 99.0 s (by target)"] if kept else []
    )
    assert found.compared() == 1


@pytest.mark.parametrize(
    ("before", "later", "kept"), [(40.0, 32.0, False), (40.0, 31.9, True), (8.0, 4.0, False), (8.0, 3.9, True)]
)
def test_by_the_nodes_own_word_a_fifth_and_four_gib(before: float, later: float, kept: bool) -> None:  # noqa: FBT001
    found = watch(processes(49.0, "n"), own(50.0, before), own(99.0, later))
    assert found.kept_back() == (
        [f"n 7:1 with nothing: {before:.1f} GiB free at 50.0 s, {later:.1f} GiB at 99.0 s (by itself)"] if kept else []
    )


def test_the_nodes_own_word_counts_before_a_fault_and_with_a_known_process() -> None:
    assert watch(processes(49.0, "n"), own(50.0, 40.0), own(99.0, 1.0, "after")).kept_back() == []
    assert watch(processes(49.0, "n"), own(50.0, 40.0), own(99.0, None)).compared() == 0
    assert watch(own(50.0, 40.0), own(99.0, 1.0)).compared() == 0
    assert watch(processes(49.0, "n"), own(50.0, 40.0), own(99.0, 1.0), own_word=False).compared() == 0


def test_another_process_and_other_models_are_not_compared() -> None:
    assert watch(NAMED, hosting(1.0, "x"), *told(50.0, 40.0), hosting(51.0, "x", "x"), *told(99.0, 9.0)).compared() == 0
    assert watch(NAMED, *told(50.0, 40.0), view(51.0, "node_id", "y"), *told(99.0, 9.0)).compared() == 0
    elsewhere = [hosting(1.0, "x", "other"), *told(50.0, 40.0), hosting(51.0, "x"), *told(99.0, 9.0)]
    assert watch(NAMED, *elsewhere).compared() == 1


@pytest.mark.parametrize(("pace", "settled_s"), [(1.0, 30.0), (3.0, 10.0), (100.0, 4.0)])
def test_memory_is_looked_at_when_the_instances_have_been_there_for_a_while(pace: float, settled_s: float) -> None:
    early, late = told(99.9 + settled_s, 1.0), told(100.0 + settled_s, 40.0)
    records = [NAMED, hosting(1.0, "x"), *told(60.0, 40.0), hosting(100.0, "x")]
    assert watch(*records, *early, pace=pace).compared() == 0
    assert watch(*records, *late, pace=pace).compared() == 1
    assert watch(*records, hosting(129.0, "x", node="m"), *late, pace=pace).compared() == 1


def test_a_node_that_never_listed_anything_has_had_nothing_since_ever() -> None:
    assert watch(NAMED, *told(0.1, 40.0), *told(2.0, 1.0)).compared() == 1


def test_it_is_looked_at_when_the_load_ends() -> None:
    end = [view(98.0, "memory", {"x": GIB}), PhaseStarted(t=99.0, phase="drain")]
    assert len(watch(NAMED, *told(50.0, 40.0), *end).kept_back()) == 1


def test_a_node_of_which_the_target_tells_no_memory_is_not_looked_at() -> None:
    assert watch(NAMED, view(1.0, "memory", {"y": 7}), Tape().change(0, "freeze", "planned", 50.0)).samples == {}


def test_no_more_processes_are_compared_than_fit() -> None:
    restarts = [record for n in range(MAX_GROUPS) for record in (processes(50, "n", main=f"{n}:1"), own(51.0, 40.0))]
    more = [processes(60, "n", main="late:1"), own(61.0, 40.0), own(62.0, 40.0)]
    found = watch(*restarts, *more, processes(70, "n", main="0:1"), own(71.0, 40.0))
    assert (len(found.samples), found.compared()) == (MAX_GROUPS, 1)
