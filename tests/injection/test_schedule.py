"""The schedule: the same for the same input everywhere, fair among kinds, and about as long as it says."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from subprocess import run

import pytest

from rig.cli.plan import plan as plan_command
from rig.clock import Pace
from rig.config.inventory import Embedded, Inventory, Node, Ssh
from rig.config.read import load_inventory
from rig.faults.plan.paced import paced_plan
from rig.faults.plan.plan import KindPlan, Plan
from rig.faults.plan.read import load_plan
from rig.faults.plan.registry import KINDS
from rig.injection.schedule import ACT_S, TAIL_S, Planned, draw, expected, expected_count, strike_until_s
from rig.targets.exo.fields import ExoProcess

THREE = Inventory(name="e", embedded=Embedded(nodes=3))
MODELS = ["lab/tiny-a", "lab/tiny-b"]
KEEPER = load_plan("keeper")
FIRST: list[str] = ["node-crash", "master-crash", "freeze", "runner-kill", "partition"]


def node(name: str, *, faults: bool = True) -> Node:
    return Node(ssh=Ssh(host=name), api=f"http://{name}:52415", process=ExoProcess(home="/exo"), faults=faults)


def take(count: int, plan: Plan = KEEPER, inventory: Inventory = THREE, seed: int = 7) -> list[Planned]:
    return list(islice(draw(plan, inventory, MODELS, seed), count))


def only(kind: str, kind_plan: KindPlan | None = None) -> Plan:
    return KEEPER.model_copy(update={"kinds": {kind: kind_plan or KEEPER.kinds[kind]}})


def test_the_first_faults_of_seed_7_are_these_on_every_machine() -> None:
    """Literals: a change of Python, hash seed or code that moves the sequence shows here."""
    found = [(item.kind.name, item.aim, item.hold_s, item.gap_s) for item in take(6)]
    assert found == [
        ("freeze", "node node-1", 19.628, 108.229),
        ("runner-kill", "a runner of lab/tiny-a", 0.0, 105.669),
        ("partition", "node-2 | node-1, node-3", 17.721, 66.287),
        ("node-crash", "node node-3", 11.274, 80.092),
        ("master-crash", "master", 8.967, 111.939),
        ("master-crash", "master", 8.085, 70.601),
    ]


def test_two_processes_with_other_hash_seeds_print_the_same_plan() -> None:
    command = [sys.executable, "-m", "rig", "plan", "--hours", "3", "--seed", "7", "--json"]
    texts = [
        run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=60).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    plan = json.loads(texts[0])
    assert 60 <= plan["expected"] <= 80
    assert len(plan["faults"]) == plan["expected"]
    assert set(plan["faults"][0]) == {"kind", "aim", "hold_s", "gap_s"}


def test_another_seed_gives_another_sequence() -> None:
    assert [item.kind.name for item in take(30, seed=1)] != [item.kind.name for item in take(30, seed=2)]


def test_the_global_generator_is_neither_used_nor_moved() -> None:
    random.seed(5)
    before, first = random.getstate(), take(20)
    assert random.getstate() == before
    random.seed(6)
    assert take(20) == first


def test_the_order_in_the_files_does_not_matter() -> None:
    kinds = dict(reversed(KEEPER.kinds.items()))
    other = list(islice(draw(KEEPER.model_copy(update={"kinds": kinds}), THREE, MODELS[::-1], 7), 40))
    assert other == take(40)


def test_pace_shrinks_the_sequence_and_keeps_it() -> None:
    paced = take(50, paced_plan(KEEPER, Pace(10)))
    for fast, slow in zip(paced, take(50), strict=True):
        assert (fast.kind, fast.aim, fast.sides) == (slow.kind, slow.aim, slow.sides)
        assert fast.hold_s == pytest.approx(slow.hold_s / 10, abs=0.001)
        assert fast.gap_s == pytest.approx(slow.gap_s / 10, abs=0.001)


def test_holds_and_gaps_fill_their_ranges() -> None:
    found = take(1000)
    gaps = [item.gap_s for item in found]
    assert 60 <= min(gaps) < 62
    assert 148 < max(gaps) <= 150
    holds = [item.hold_s for item in found if item.kind.name == "freeze"]
    assert 5 <= min(holds) < 6
    assert 44 < max(holds) <= 45
    assert {item.hold_s for item in found if item.kind.name == "runner-kill"} == {0.0}
    assert [item.index for item in found] == list(range(1000))


@pytest.mark.parametrize("seed", range(20))
def test_shuffled_rounds_bring_every_kind_early_and_often(seed: int) -> None:
    kinds = [item.kind.name for item in take(50, seed=seed)]
    for start in range(0, 50, 5):
        assert sorted(kinds[start : start + 5]) == sorted(FIRST)


def test_rounds_follow_the_weights() -> None:
    kinds: dict[str, KindPlan] = {
        "node-crash": KindPlan(weight=0.5),
        "freeze": KindPlan(weight=1.5, hold=(5.0, 5.0)),
        "runner-kill": KindPlan(weight=0),
    }
    found = [item.kind.name for item in take(40, KEEPER.model_copy(update={"kinds": kinds}))]
    for start in range(0, 40, 4):
        assert Counter(found[start : start + 4]) == {"node-crash": 1, "freeze": 3}


def test_a_round_is_bounded_whatever_the_weights() -> None:
    kinds: dict[str, KindPlan] = {"node-crash": KindPlan(weight=0.001), "master-crash": KindPlan(weight=1000)}
    found = Counter(item.kind.name for item in take(600, KEEPER.model_copy(update={"kinds": kinds})))
    assert found["node-crash"] >= 9


def test_without_shuffle_each_kind_is_drawn_by_itself_by_weight() -> None:
    kinds: dict[str, KindPlan] = {
        "node-crash": KindPlan(weight=1),
        "freeze": KindPlan(weight=3, hold=(5.0, 5.0)),
        "partition": KindPlan(weight=0, hold=(5.0, 5.0)),
    }
    found = [item.kind.name for item in take(4000, KEEPER.model_copy(update={"kinds": kinds, "shuffle": False}))]
    assert set(found) == {"node-crash", "freeze"}
    assert found.count("freeze") / 4000 == pytest.approx(0.75, abs=0.03)
    assert any(found[start : start + 4].count("freeze") != 3 for start in range(0, 400, 4))


def test_nodes_and_models_get_their_share() -> None:
    found = take(1500)
    crashed = Counter(item.node for item in found if item.kind.name == "node-crash")
    assert set(crashed) == {"node-1", "node-2", "node-3"}
    assert min(crashed.values()) > 70  # of 300
    killed = Counter(item.model for item in found if item.kind.name == "runner-kill")
    assert set(killed) == set(MODELS)
    assert min(killed.values()) > 110


def test_a_kind_hits_only_what_plan_and_inventory_allow() -> None:
    nodes = {"a": node("a"), "b": node("b", faults=False), "c": node("c"), "d": node("d")}
    inventory = Inventory(name="i", nodes=nodes, groups={"some": ["a", "b"]})
    frozen = take(200, only("freeze"), inventory)
    assert {item.node for item in frozen} == {"a", "c", "d"}
    grouped = take(50, only("freeze", KindPlan(hold=(5.0, 5.0), nodes=["some", "d"])), inventory)
    assert {item.node for item in grouped} == {"a", "d"}
    assert take(1, only("master-crash"), inventory)[0].nodes == ("a", "c", "d")


def sides_of(inventory: Inventory, count: int = 400) -> list[tuple[Sequence[str], Sequence[str]]]:
    found = take(count, only("partition"), inventory)
    for item in found:
        assert item.sides is not None
        assert item.aim == f"{', '.join(item.sides[0])} | {', '.join(item.sides[1])}"
        assert sorted([*item.sides[0], *item.sides[1]]) == sorted(inventory.names())
        assert all(item.sides)
    return [item.sides for item in found if item.sides is not None]


def test_partitions_cut_one_node_off_or_split_the_cluster() -> None:
    sizes = Counter(tuple(map(len, sides)) for sides in sides_of(Inventory(name="e", embedded=Embedded(nodes=5))))
    assert set(sizes) == {(1, 4), (2, 3)}
    assert sizes[1, 4] > 200
    assert sizes[2, 3] > 40


def test_two_nodes_are_parted_from_each_other() -> None:
    cuts = {sides[0][0] for sides in sides_of(Inventory(name="e", embedded=Embedded(nodes=2)), 50)}
    assert cuts == {"node-1", "node-2"}


def test_packet_filters_are_set_on_allowed_nodes_only() -> None:
    nodes = {"a": node("a"), "b": node("b", faults=False), "c": node("c")}
    for left, right in sides_of(Inventory(name="i", nodes=nodes)):
        assert "b" not in left
        assert "b" in right


@pytest.mark.parametrize(
    ("plan", "inventory", "models", "message"),
    [
        (only("freeze"), Inventory(name="i", nodes={"a": node("a", faults=False)}), MODELS, "no node may be hit"),
        (only("partition"), Inventory(name="i", nodes={"a": node("a")}), MODELS, "it takes two nodes"),
        (only("runner-kill"), THREE, [], "no model is deployed"),
        (only("freeze", KindPlan(weight=0, hold=(5.0, 5.0))), THREE, MODELS, "no kind has a weight"),
    ],
)
def test_a_plan_that_can_hit_nothing_is_refused(
    plan: Plan, inventory: Inventory, models: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        next(draw(plan, inventory, models, 1))


def test_the_expected_times_add_up() -> None:
    freeze = KindPlan(hold=(20.0, 20.0))
    plan = Plan(name="p", gap=(100.0, 100.0), baseline=300.0, sustained=15.0, kinds={"freeze": freeze})
    each_s = 100 + 20 + ACT_S + KINDS["freeze"].recovery_s + 15
    third_s = 400 + 2 * each_s
    found = expected(draw(plan, THREE, MODELS, 1), plan, duration_s=third_s + 20 + TAIL_S)
    assert [item.strike_s for item in found] == pytest.approx([400, 400 + each_s, third_s])
    assert expected_count(draw(plan, THREE, MODELS, 1), plan, duration_s=third_s + 19 + TAIL_S) == 2
    assert expected_count(draw(plan, THREE, MODELS, 1), plan, duration_s=300) == 0


def test_the_quiet_end_of_a_run_is_paced_and_no_longer_than_settle() -> None:
    assert strike_until_s(KEEPER, 1000.0) == 1000 - TAIL_S
    assert strike_until_s(KEEPER, 1000.0, pace=10) == 1000 - TAIL_S / 10
    assert strike_until_s(KEEPER.model_copy(update={"settle": 20.0}), 1000.0) == 980


@pytest.mark.parametrize("seed", range(30))
def test_three_hours_of_the_keeper_plan_see_60_to_80_faults(seed: int) -> None:
    sequence = draw(KEEPER, load_inventory("embedded"), MODELS, seed)
    assert 60 <= expected_count(sequence, KEEPER, duration_s=3 * 3600) <= 80


@pytest.mark.parametrize("recovery_s", [24.0, 35.0, 46.0])
@pytest.mark.parametrize("seed", range(30))
def test_four_quick_minutes_see_12_to_20_faults_two_of_each_kind(seed: int, recovery_s: float) -> None:
    """At pace 10, with recoveries (sustained included) of 24 to 46 s at pace 1."""
    quick = paced_plan(load_plan("quick"), Pace(10))
    drawn = (
        replace(planned, kind=replace(planned.kind, recovery_s=recovery_s - 15))
        for planned in draw(quick, THREE, MODELS, seed)
    )
    found = expected(drawn, quick, duration_s=240, pace=10)
    assert 12 <= len(found) <= 20
    assert min(Counter(item.planned.kind.name for item in found)[kind] for kind in FIRST) >= 2


def test_the_table_says_what_it_assumes(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command(hours=3, seed=7) == 0
    text = capsys.readouterr().out
    assert "No inventory given: planned for the three nodes of the embedded cluster, at pace 1." in text
    assert "Expected: 70 faults, after 5m without any." in text
    assert text.count("a runner of ") >= 13


def test_the_plan_of_an_emulated_inventory_is_at_its_pace(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command(minutes=4, inventory="embedded", faults="quick", as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert 12 <= found["expected"] <= 20
    assert max(fault["gap_s"] for fault in found["faults"]) <= 8.5


def test_a_run_too_short_for_a_fault_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command(minutes=5) == 0
    assert "No fault fits" in capsys.readouterr().out
