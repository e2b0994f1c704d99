"""A representative part of the sweep, in each of its ways; all of it is `make sweep`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig.faults.plan.registry import KINDS
from tests.sweep.case import Case, all_cases, run_case
from tests.sweep.disks import folder_full, folder_gone, power_cut, zone_changed
from tests.sweep.hostile import Condition, controller_stopped, lock_stolen, node_killed, rules_flushed
from tests.sweep.nursery import Nursery
from tests.sweep.world import World

CASES = [
    Case("freeze", "struck", "both killed"),
    Case("node-crash", "holding", "controller killed"),
    Case("partition", "leased", "script killed"),
    Case("partition", "holding", "SSH cut"),
    Case("link-down", "struck", "script killed"),
    Case("disk-fill", "healing", "both killed"),
    Case("reboot", "struck", "script killed"),
    Case("double", "holding", "controller killed"),
    Case("net-delay", "holding", "both killed"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("sweep"), f"{os.getpid() % 10000}t")
    try:
        world.up()
        yield world
    finally:
        world.down()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_left_behind(world: World, nursery: Nursery, tmp_path: Path, case: Case) -> None:
    outcome = run_case(world, nursery, case, tmp_path / "case")
    assert outcome.residue == []
    if case.harm == "both killed":
        assert outcome.healed_by in ("guard", "script")
    elif case.kind == "reboot":  # its script ended with the boot
        assert outcome.healed_by in ("guard", "controller")
    else:
        assert outcome.healed_by in ("script", "controller")


def test_a_controller_that_sleeps_through_the_heal(world: World, nursery: Nursery, tmp_path: Path) -> None:
    assert controller_stopped("freeze", "holding")(world, nursery, tmp_path / "case").residue == []


def test_a_controller_that_wakes_to_a_node_of_another(world: World, nursery: Nursery, tmp_path: Path) -> None:
    assert lock_stolen("freeze")(world, nursery, tmp_path / "case").residue == []


def test_a_power_failure_without_a_controller(world: World, nursery: Nursery, tmp_path: Path) -> None:
    outcome = node_killed("node-crash")(world, nursery, tmp_path / "case")
    assert (outcome.healed_by, outcome.residue) == ("guard", [])


@pytest.mark.parametrize("condition", [power_cut, folder_full, folder_gone])
def test_what_happens_to_the_disk_of_the_leases(
    world: World, nursery: Nursery, tmp_path: Path, condition: Callable[[str], Condition]
) -> None:
    assert condition("node-crash")(world, nursery, tmp_path / "case").residue == []


def test_a_session_in_another_zone_than_the_guard(world: World, nursery: Nursery, tmp_path: Path) -> None:
    assert zone_changed("freeze")(world, nursery, tmp_path / "case").residue == []


def test_rules_that_are_flushed_in_the_hold(world: World, nursery: Nursery, tmp_path: Path) -> None:
    outcome = rules_flushed("partition")(world, nursery, tmp_path / "case")
    assert (outcome.healed_by, outcome.residue) == ("script", [])


def test_residue_is_found(world: World, nursery: Nursery, tmp_path: Path) -> None:
    """The comparison itself: a rule, a file and a stopped process that stay behind are named."""
    from tests.sweep.snapshot import take  # noqa: PLC0415

    world.n1.fresh_exo()
    before = take(world)
    world.network.nft("add table inet rig_left")
    (world.n1.exo.home / ".rig-fill-x").write_text("left")
    victim = world.n1.exo_tree()[-1]
    victim.suspend()
    try:
        differs = " ".join(take(world).differs(before))
    finally:
        victim.resume()
        (world.n1.exo.home / ".rig-fill-x").unlink()
        world.network.nft("delete table inet rig_left")
    assert "rig_left" in differs
    assert ".rig-fill-x" in differs
    assert "exo stopped" in differs
    assert nursery is not None


def test_the_sweep_covers_every_transition_of_every_kind() -> None:
    assert len(all_cases()) >= 60
    without_hold = sum(kind.hold == "none" for kind in KINDS.values())
    assert len({(case.kind, case.moment) for case in all_cases()}) == 4 * len(KINDS) - without_hold
    killed = {(case.kind, case.moment) for case in all_cases() if case.harm == "controller killed"}
    assert len(killed) == 4 * len(KINDS) - without_hold
