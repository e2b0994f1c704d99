"""What happens to the disk that holds the leases, and to the zone in which processes are looked at."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeVar

from rig.faults.plan.registry import KINDS
from tests.faults.disk import fill, image_disk, memory_disk
from tests.sweep.case import Outcome, Struck, run
from tests.sweep.hostile import Condition, with_wrong
from tests.sweep.machine import Machine
from tests.sweep.nursery import Nursery
from tests.sweep.world import World

T = TypeVar("T")


@contextmanager
def booted_on(node: Machine, mounted: AbstractContextManager[T]) -> Generator[T]:
    """What runs on a node sees the mounts of its boot."""
    node.power_off()
    try:
        with mounted as disk:
            node.boot()
            try:
                yield disk
            finally:
                node.power_off()
    finally:
        node.boot()


def power_cut(kind: str) -> Condition:
    """The node loses power in a hold, and with it what its disk had not been given yet: the guard finds the lease."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        node = world.n1
        file = folder.with_name(f"{folder.name}-image")

        def harm(struck: Struck) -> None:
            struck.kill_controller()
            left = disk.cut(folder / "left")
            node.power_off()
            left.instead_of(disk)
            node.boot()
            if not KINDS[kind].restarts:
                node.exo.start()

        what = f"{kind:18} holding  power cut"
        with booted_on(node, image_disk(file, node.rig_dir)) as disk:
            outcome = run(world, nursery, what, folder, kind, "holding", harm, hold_s=30.0, plant=False)
        return with_wrong(outcome, [] if outcome.healed_by == "guard" else ["not healed by the guard"])

    return carry_out


def folder_full(kind: str) -> Condition:
    """Not a byte, not a file more where the leases are, when the guard heals."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            struck.kill_controller()
            struck.kill_script()
            fill(disk / "log")

        with booted_on(world.n1, memory_disk(world.n1.rig_dir)) as disk:
            return run(world, nursery, f"{kind:18} holding  folder full", folder, kind, "holding", harm)

    return carry_out


def folder_gone(kind: str) -> Condition:
    """Somebody removes all of `rig_dir` in a hold: the script heals all the same."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            struck.kill_controller()
            shutil.rmtree(world.n1.rig_dir)

        what = f"{kind:18} holding  folder gone"
        return run(world, nursery, what, folder, kind, "holding", harm, hold_s=4.0, plant=False)

    return carry_out


def zone_changed(kind: str) -> Condition:
    """The guard, in the zone of the machine, heals what a script in a session with another zone left."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            struck.kill_controller()
            struck.kill_script()

        with world.n1.as_darwin("EST5"):
            outcome = run(world, nursery, f"{kind:18} holding  another zone", folder, kind, "holding", harm)
        return with_wrong(outcome, [] if outcome.healed_by == "guard" else ["not healed by the guard"])

    return carry_out


DISKS: Final[dict[str, Condition]] = {
    **{f"{kind:18} holding  power cut": power_cut(kind) for kind in ("node-crash", "disk-fill", "graceful-stop")},
    **{f"{kind:18} holding  folder full": folder_full(kind) for kind in ("node-crash", "freeze")},
    **{f"{kind:18} holding  folder gone": folder_gone(kind) for kind in ("node-crash", "freeze")},
    **{f"{kind:18} holding  another zone": zone_changed(kind) for kind in ("freeze", "node-crash")},
}
