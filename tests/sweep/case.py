"""One case of the sweep: a fault, a moment in it, and who dies or is cut off at that moment; then what is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import psutil

from rig.faults.plan.registry import KINDS
from rig.nodes.scripts import ScriptEvent, parse_event
from tests.sweep.controller import Order
from tests.sweep.nursery import Nursery
from tests.sweep.snapshot import Snapshot, take
from tests.sweep.world import World, wait_for

Moment = Literal["leased", "struck", "holding", "healing"]
Harm = Literal["controller killed", "SSH cut", "script killed", "both killed"]

LIKE: Final[dict[str, str]] = {
    "master-crash": "node-crash",
    "fast-master-restart": "node-crash",
    "rolling-restart": "graceful-stop",
    "one-way-partition": "partition",
    "bridge-partition": "partition",
    "net-bandwidth": "net-loss",
}
"""Kinds that do on the node what another does, with other arguments: they are not crossed with every harm."""
MOMENTS: tuple[Moment, ...] = ("leased", "struck", "holding", "healing")
HARMS: tuple[Harm, ...] = ("controller killed", "SSH cut", "script killed", "both killed")
LIKE_HARMS: tuple[Harm, ...] = ("controller killed", "both killed")
HOLD_S = 1.5
CUT_S = 2.5
LATEST_S = 180.0  # for a machine that has other things to do, and for a restart that was asked for and never came


@dataclass(frozen=True)
class Case:
    kind: str
    moment: Moment
    harm: Harm

    def __str__(self) -> str:
        return f"{self.kind:18} {self.moment:8} {self.harm:18}"


@dataclass(frozen=True)
class Outcome:
    """`after_s`: from the harm to the lease being gone. `late_s`: from the end of the hold to the heal, by the node."""

    what: str
    healed_by: str
    after_s: float
    late_s: float | None
    residue: list[str]

    def line(self) -> str:
        late = "" if self.late_s is None else f"{self.late_s:+6.1f} s"
        left = "residue 0" if not self.residue else f"RESIDUE {' | '.join(self.residue)}"
        return f"{self.what:46} {self.healed_by:11} {self.after_s:6.1f} s {late:9} {left}"


def all_cases() -> list[Case]:
    """Every transition of every kind, for each harm; for the two of them that nobody outlives where it is LIKE another.

    What happens at once has no hold.
    """
    return [
        Case(kind, moment, harm)
        for kind in KINDS
        for moment in MOMENTS
        if not (KINDS[kind].hold == "none" and moment == "holding")
        for harm in (LIKE_HARMS if kind in LIKE else HARMS)
    ]


class Struck:
    """A fault under way: its controller's pid, its lease and its log on the node."""

    def __init__(self, world: World, nursery: Nursery, order: Order) -> None:
        self.world, self.order = world, order
        before = world.n1.logs()
        self.controller = nursery.start(order)
        wait_for(lambda: world.n1.logs() > before or not self.controller_lives(), "a lease", timeout_s=LATEST_S)
        if not world.n1.logs() > before:
            raise AssertionError(f"no lease: {self.end()}")
        self.id = (world.n1.logs() - before).pop()

    def events(self) -> list[ScriptEvent]:
        with contextlib.suppress(OSError):
            text = (self.world.n1.rig_dir / "log" / f"{self.id}.log").read_text()
            return [event for event in map(parse_event, text.splitlines()) if event is not None]
        return []

    def reach(self, moment: Moment) -> None:
        """Waits until it has come so far. A reboot is struck when the machine has been asked for it."""

        def there() -> bool:
            names = [event.event for event in self.events()]
            if "skipped" in names or ("ineffective" in names and moment != "healing"):
                raise AssertionError(f"the fault did not strike: {self.events()[-1]}")
            if self.order.kind == "reboot" and moment == "struck":
                return self.world.n1.going_down.is_set() or "healing" in names
            return moment in names

        wait_for(there, f"{moment} of {self.order.kind}", timeout_s=LATEST_S)

    def kill_healer(self) -> None:
        """Whatever undoes it: the script, or what reads its lease after a boot."""
        self.kill_script()
        self.world.n1.kill_healers()

    def script_pid(self) -> int | None:
        with contextlib.suppress(OSError, StopIteration, ValueError):
            lines = (self.world.n1.leases / self.id).read_text().splitlines()
            return int(next(line.partition("=")[2] for line in lines if line.startswith("script_pid=")))
        return None

    def controller_lives(self) -> bool:
        return Path(f"/proc/{self.controller}").exists()

    def end(self) -> str:
        with contextlib.suppress(OSError):
            return (Path(self.order.out) / "end.json").read_text()
        return ""

    def kill_controller(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.controller, signal.SIGKILL)

    def kill_script(self) -> None:
        pid = self.script_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def healed_by(self) -> str:
        events = self.events()
        healing = [event for event in events if event.event == "healing"]
        if not any(event.event == "healed" for event in events):
            return "script" if any(event.event == "skipped" for event in events) else "nobody"
        if not healing or healing[-1].fields.get("by") != "heal":
            return "script"
        return "guard" if healing[-1].fields.get("why") == "expired" else "controller"

    def late_s(self) -> float | None:
        events = self.events()
        struck = next((event for event in events if event.event == "struck"), None)
        healed = next((event for event in reversed(events) if event.event == "healed"), None)
        if struck is None or healed is None:
            return None
        return healed.node_t - struck.node_t - self.order.hold_s


def cut_for(world: World, seconds: float) -> None:
    """No SSH to any node for so long, from now on."""
    for gate in world.gates.values():
        gate.cut()
        threading.Timer(seconds, gate.open).start()


def run_case(world: World, nursery: Nursery, case: Case, folder: Path) -> Outcome:
    """Strike, harm, wait, compare."""

    def harm(struck: Struck) -> None:
        if case.harm in ("controller killed", "both killed"):
            struck.kill_controller()
        if case.harm in ("script killed", "both killed"):
            if case.kind == "reboot":
                struck.kill_healer()
            else:
                struck.kill_script()
        if case.harm == "SSH cut":
            cut_for(world, CUT_S)

    return run(world, nursery, str(case), folder, case.kind, case.moment, harm, plant=case.kind != "reboot")


def run(  # noqa: PLR0913 (all of a case)
    world: World,
    nursery: Nursery,
    what: str,
    folder: Path,
    kind: str,
    moment: Moment,
    harm: Callable[[Struck], None],
    *,
    hold_s: float = HOLD_S,
    step_clock_s: float = 0.0,
    journal: Path | None = None,
    plant: bool = True,
) -> Outcome:
    """`plant`: not where the node boots, which makes every lease one of an earlier boot."""
    folder.mkdir(parents=True)
    world.n1.fresh_exo()
    if kind == "double":
        world.n2.fresh_exo()
    runners = kind != "runner-kill"
    before = settled(world, runners=runners)
    inventory = folder / "inventory.json"
    inventory.write_text(world.inventory().model_dump_json())
    order = Order(
        inventory=str(inventory),
        kind=kind,
        hold_s=0.0 if KINDS[kind].hold == "none" or kind == "fast-master-restart" else hold_s,
        out=str(folder),
        journal=str(journal or ""),
        step_clock_s=step_clock_s,
        step_at=moment,
    )
    struck = Struck(world, nursery, order)
    struck.reach(moment)
    planted = world.plant() if plant else None
    harmed_s = time.monotonic()
    harm(struck)
    try:
        wait_for(lambda: not world.ours(), "the lease to be gone", timeout_s=LATEST_S)
        after_s = time.monotonic() - harmed_s
        wait_for(lambda: not world.going_down(), "the node to be up again", timeout_s=LATEST_S)
        wait_for(lambda: not struck.controller_lives(), "the controller to end", timeout_s=LATEST_S)
        residue = left_over(world, before, planted, runners=runners)
    except AssertionError as never:
        after_s, residue = (
            time.monotonic() - harmed_s,
            [str(never), *left_over(world, before, planted, runners=runners)],
        )
    finally:
        struck.kill_controller()
        world.unplant()
        if not runners:
            world.n1.exo.kill()
        if kind == "double":
            world.n2.exo.kill()
    return Outcome(what, struck.healed_by(), after_s, struck.late_s(), residue)


def left_over(world: World, before: Snapshot, planted: str | None, *, runners: bool = True) -> list[str]:
    """What differs when the node has had the time to settle: children to be reaped, addresses to be confirmed."""
    expected = before if planted is None else replace(before, foreign=f"T {planted}")
    differences: list[str] = []

    def same() -> bool:
        differences[:] = taken(world, runners=runners).differs(expected)
        return not differences

    try:
        wait_for(same, "the node is as before", timeout_s=25)
    except AssertionError as never:
        return differences or [str(never)]
    return []


def taken(world: World, *, runners: bool) -> Snapshot:
    """Once nothing that is looked at goes away just then."""
    found: list[Snapshot] = []
    missing: list[str] = [""]

    def stood_still() -> bool:
        try:
            found.append(take(world, runners=runners))
        except (psutil.Error, OSError, ValueError) as error:
            missing[:] = [repr(error)]
        return bool(found)

    try:
        wait_for(stood_still, "a look at the node", timeout_s=20)
    except AssertionError as never:
        raise AssertionError(f"{never}: {missing[0]}") from never
    return found[0]


def settled(world: World, *, runners: bool = True) -> Snapshot:
    """A snapshot that is the same twice: nothing of the last case is still on its way."""
    last: list[Snapshot] = [taken(world, runners=runners)]

    def same() -> bool:
        last.append(taken(world, runners=runners))
        return last[-1] == last[-2]

    wait_for(same, "the node is at rest")
    return last[-1]


def end_of(folder: Path) -> dict[str, str]:
    """What the controller made of it."""
    found: dict[str, str] = json.loads((folder / "end.json").read_text())
    return found
