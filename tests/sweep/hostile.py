"""Conditions beyond a death in one transition: what is stopped, full, stepped, restarted, deaf, large or malicious."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from rig.config.inventory import Inventory, Node
from rig.config.target_fields import inventory_from
from rig.errors import CommandTimeout, LeaseError, NodeError, RigError, TransportError
from rig.faults.plan.registry import KINDS
from rig.journal.write import journal_name
from rig.nodes.doctor_full import examine_fully
from rig.nodes.lock import hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from tests.nodes.servers import SshServer
from tests.sweep.case import HOLD_S, MOMENTS, Moment, Outcome, Struck, end_of, left_over, run, settled
from tests.sweep.controller import Order
from tests.sweep.nursery import Nursery
from tests.sweep.world import World, wait_for

Condition: TypeAlias = Callable[[World, Nursery, Path], Outcome]

ASLEEP_S = HOLD_S + 2.5
LATE_S = 60.0
BLOCK = 4096
MANY = 200
LEAST_POISONS = 40


def controller_stopped(kind: str, moment: Moment) -> Condition:
    """SIGSTOP for longer than the hold; it then wakes to a node that has healed by itself, and says so."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            os.kill(struck.controller, signal.SIGSTOP)
            threading.Timer(ASLEEP_S, os.kill, (struck.controller, signal.SIGCONT)).start()

        what = f"{kind:18} {moment:8} controller stopped"
        outcome = run(world, nursery, what, folder, kind, moment, harm, plant=kind != "reboot")
        return _expecting(outcome, folder, {"healed"})

    return carry_out


def lock_stolen(kind: str) -> Condition:
    """The controller falls asleep right before it sends its script, its lock runs out, another rig takes the node; then
    it wakes. Nothing is struck, and it says why.
    """

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        folder.mkdir(parents=True)
        world.n1.fresh_exo()
        before = settled(world)
        inventory = folder / "inventory.json"
        inventory.write_text(world.inventory().model_dump_json())
        order = Order(
            inventory=str(inventory), kind=kind, hold_s=HOLD_S, out=str(folder), sleep_at="planned", lock_s=2.0
        )
        controller = nursery.start(order)
        wait_for(lambda: _is_stopped(controller), "the controller to fall asleep")
        begun, known = time.monotonic(), world.n1.logs()
        try:
            asyncio.run(_wake_under_another_lock(world.inventory(), controller))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(controller, signal.SIGKILL)
        struck = [
            name
            for name in world.n1.logs() - known
            if "struck" in (world.n1.rig_dir / "log" / f"{name}.log").read_text()
        ]
        wrong = [f"it was struck: {name}" for name in struck] + left_over(world, before, None)
        what = f"{kind:18} lock stolen while asleep"
        return _expecting(Outcome(what, "nothing", time.monotonic() - begun, None, wrong), folder, {"skipped"})

    return carry_out


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")
    return False


def _await_end(pid: int) -> None:
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the controller to end")


async def _wake_under_another_lock(inventory: Inventory, controller: int) -> None:
    """Takes both nodes as soon as the sleeper's lock has run out, wakes it, and keeps them until it has ended."""
    async with open_nodes(inventory) as nodes, asyncio.timeout(LATE_S):
        while True:
            try:
                async with hold_locks(nodes, "another run"):
                    os.kill(controller, signal.SIGCONT)
                    await asyncio.to_thread(_await_end, controller)
                    return
            except LeaseError:
                await asyncio.sleep(0.2)


def controller_disk_full(kind: str, moment: Moment) -> Condition:
    """The journal lies on a disk that is full from that moment on: the fault is not said to have gone well."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        disk = folder.with_name(f"{folder.name}-disk")
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "rig-sweep", str(disk)], check=True)
        what = f"{kind:18} {moment:8} disk full"
        try:
            outcome = run(
                world,
                nursery,
                what,
                folder,
                kind,
                moment,
                lambda _: _fill(disk),
                journal=disk,
                plant=kind != "reboot",
            )
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
        return _expecting(outcome, folder, {"error"})

    return carry_out


def _fill(disk: Path) -> None:
    """All of it, and then the rest of the block that the journal has begun."""
    with contextlib.suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * BLOCK)
    with (disk / journal_name(0)).open("ab", buffering=0) as file:
        file.write(b"\n" * (-file.tell() % BLOCK))


def clock_stepped(kind: str, moment: Moment, step_s: float) -> Condition:
    """The controller's wall clock jumps while a fault is on its way: nothing ends early, late or twice."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        what = f"{kind:18} {moment:8} clock {step_s / 3600:+.0f} h"
        plant = kind != "reboot"
        outcome = run(world, nursery, what, folder, kind, moment, lambda _: None, step_clock_s=step_s, plant=plant)
        on_time = outcome.late_s is None or abs(outcome.late_s) < LATE_S
        wrong = [] if on_time else [f"healed {outcome.late_s:+.1f} s after its time"]
        return with_wrong(_expecting(outcome, folder, {"healed"}), wrong)

    return carry_out


def healer_killed(kind: str) -> Condition:
    """Script and controller are dead, and so is what heals, once, while it does: the next look of the guard ends it."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            struck.kill_controller()
            struck.kill_script()
            struck.reach("healing")
            world.n1.kill_healers()

        outcome = run(world, nursery, f"{kind:18} healing  guard's heal killed", folder, kind, "holding", harm)
        return with_wrong(outcome, [] if outcome.healed_by == "guard" else ["not healed by the guard"])

    return carry_out


def node_killed(kind: str) -> Condition:
    """Power failure in a hold, then a boot: the guard finds the lease of the earlier boot. What starts exo is the lease
    of a crash; with other faults the machine itself does, as launchd or systemd.
    """

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            struck.kill_controller()
            world.n1.power_off()
            world.n1.boot()
            if not KINDS[kind].restarts:
                world.n1.exo.start()

        what = f"{kind:18} holding  node lost power"
        outcome = run(world, nursery, what, folder, kind, "holding", harm, hold_s=30.0, plant=False)
        return with_wrong(outcome, [] if outcome.healed_by == "guard" else ["not healed by the guard"])

    return carry_out


def rules_flushed(kind: str) -> Condition:
    """Somebody flushes the rules in mid-hold and leaves their table: what is said is not that it lasted."""

    def carry_out(world: World, nursery: Nursery, folder: Path) -> Outcome:
        def harm(struck: Struck) -> None:
            del struck
            tables = [line.split() for line in world.n1.command("nft", "list", "tables").splitlines()]
            for words in tables:
                if words[2].startswith("rig_"):
                    world.n1.command("nft", "flush", *words)

        what = f"{kind:18} holding  rules flushed"
        outcome = run(world, nursery, what, folder, kind, "holding", harm, hold_s=4.0)
        return _expecting(outcome, folder, {"ineffective"})

    return carry_out


def sshd_restarted(world: World, nursery: Nursery, folder: Path) -> Outcome:
    outcome = run(
        world, nursery, "sshd restarted", folder, "partition", "holding", lambda _: world.n1.restart_sshd(), hold_s=3.0
    )
    return _expecting(outcome, folder, {"healed"})


def script_stopped(world: World, nursery: Nursery, folder: Path) -> Outcome:
    """A script that is stopped, with its controller dead, is undone like one that is dead."""

    def harm(struck: Struck) -> None:
        pid = struck.script_pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        struck.kill_controller()

    return run(world, nursery, "script stopped, controller killed", folder, "freeze", "holding", harm)


def supervised(world: World, nursery: Nursery, folder: Path) -> Outcome:
    """A supervisor that restarts exo at once: named as an early restart, and not taken for the rig's own start."""
    stop = threading.Event()

    def supervise() -> None:
        while not stop.wait(0.05):
            pid = 0
            with contextlib.suppress(OSError, ValueError):
                pid = int((world.n1.exo.home / "exo.pid").read_text())
            if not Path(f"/proc/{pid}").exists() and not stop.is_set():
                with contextlib.suppress(AssertionError):
                    world.n1.exo.start()

    watching = threading.Thread(target=supervise, daemon=True)

    def harm(struck: Struck) -> None:
        del struck
        watching.start()

    try:
        outcome = run(
            world, nursery, "a supervisor restarts exo at once", folder, "node-crash", "leased", harm, hold_s=4.0
        )
    finally:
        stop.set()
        watching.join(20)
    journal = (folder / "journal.jsonl").read_text()
    missing = [] if "restarted_early" in journal else ["the early restart is not in the journal"]
    return with_wrong(outcome, missing)


def hanging_commands(world: World, nursery: Nursery, folder: Path) -> Outcome:
    """A node that accepts SSH but whose commands never end: bounded, and nothing is struck."""
    folder.mkdir(parents=True)
    deaf = folder / "bin"
    deaf.mkdir()
    (deaf / "sh").write_text("#!/bin/sh\nexec sleep 600\n")
    (deaf / "sh").chmod(0o755)
    world.n1.fresh_exo()
    before = settled(world)
    begun = time.monotonic()
    inventory = world.inventory()
    node = inventory.nodes["n1"].model_copy(update={"path": f"{deaf}:{os.environ['PATH']}"})
    del nursery

    async def ask() -> str:
        async with open_nodes(Inventory(name="deaf", nodes={"n1": node})) as nodes:
            await upload(nodes["n1"])
            try:
                await nodes["n1"].inspect("all", timeout_s=3.0)
            except CommandTimeout:
                return ""
            except NodeError as error:
                return f"not a timeout: {error}"
        return "it was not noticed"

    wrong = asyncio.run(ask())
    took_s = time.monotonic() - begun
    for process in world.n1.mine():
        with contextlib.suppress(Exception):
            if process.cmdline()[:2] == ["sleep", "600"]:
                process.kill()
    residue = left_over(world, before, None)
    return Outcome("a node that hangs on commands", "refused", took_s, None, [*filter(None, [wrong]), *residue])


def many_nodes(world: World, nursery: Nursery, folder: Path) -> Outcome:
    """200 nodes in one inventory, each answering: read, connected, asked."""
    del nursery
    world.n1.fresh_exo()
    before = settled(world)
    server = SshServer(folder, host="0.0.0.0")
    server.start()
    begun = time.monotonic()
    try:
        found = asyncio.run(_ask_all(_many(server)))
    finally:
        server.kill()
    wrong = [] if found == MANY else [f"{found} of {MANY} answered"]
    return Outcome(
        f"{MANY} nodes", "nothing", time.monotonic() - begun, None, [*wrong, *left_over(world, before, None)]
    )


def _many(server: SshServer) -> Inventory:
    def node(number: int) -> Node:
        return server.node(
            ssh=server.ssh(host=f"127.0.0.{number}"),
            api=f"http://127.0.0.{number}:1",
            addresses=[f"10.77.1.{number}"],
            rig_dir=str(server.folder / f"rig-{number}"),
        )

    return Inventory(name="many", nodes={f"n{number}": node(number) for number in range(1, MANY + 1)})


async def _ask_all(inventory: Inventory) -> int:
    async with open_nodes(inventory) as nodes:
        said = await asyncio.gather(*(conn.run("echo here", timeout_s=120.0) for conn in nodes.values()))
    return sum(one.stdout == "here\n" for one in said)


def metacharacters(world: World, nursery: Nursery, folder: Path) -> Outcome:
    """Shell metacharacters in every value of an inventory that is not a command: none is executed."""
    del nursery
    folder.mkdir(parents=True)
    world.n1.fresh_exo()
    before = settled(world)
    begun = time.monotonic()
    trap = folder / "executed"
    tried, wrong = 0, list[str]()
    for what, inventory in _poisoned(world, trap):
        tried += 1
        asyncio.run(_look(inventory))
        if trap.exists():
            wrong.append(what)
            trap.unlink()
    if tried < LEAST_POISONS:
        wrong.append(f"only {tried} inventories were read: the rest was refused")
    return Outcome(
        "metacharacters in every inventory value",
        "nothing",
        time.monotonic() - begun,
        None,
        [*wrong, *left_over(world, before, None)],
    )


def _poisoned(world: World, trap: Path) -> Iterator[tuple[str, Inventory]]:
    """The node with one value at a time replaced by what would create `trap` if a shell read it. Commands are left out:
    they are meant for a shell. What is refused when an inventory is read is as good as what is never executed.
    """
    given = world.inventory().nodes["n1"].model_dump()
    for poison in (
        f"$(touch {trap})",
        f"`touch {trap}`",
        f"'; touch {trap}; '",
        f'"; touch {trap}; "',
        f"| touch {trap}",
        f"& touch {trap} &",
        f"> {trap}",
    ):
        flat = poison.replace("/", "_")
        values: dict[str, dict[str, object]] = {
            "exo.home": {"exo": {**given["exo"], "home": f"/x/{poison}"}},
            "exo.pidfile": {"exo": {**given["exo"], "pidfile": f"/x/{poison}"}},
            "exo.log": {"exo": {**given["exo"], "log": f"/x/{poison}"}},
            "exo.match": {"exo": {**given["exo"], "match": f"/exo {_escaped(poison)}"}},
            "ssh.host": {"ssh": {**given["ssh"], "host": poison}},
            "ssh.user": {"ssh": {**given["ssh"], "user": poison}},
            "ssh.key": {"ssh": {**given["ssh"], "key": f"/x/{poison}"}},
            "ssh.known_hosts": {"ssh": {**given["ssh"], "host_key": None, "known_hosts": f"/x/{poison}"}},
            "ssh.host_key": {"ssh": {**given["ssh"], "host_key": poison}},
            "api": {"api": f"http://{poison}:1"},
            "addresses": {"addresses": [poison]},
            "a zone": {"addresses": [f"fe80::1%{poison}"]},
            "rig_dir": {"rig_dir": f"{trap.parent}/{poison}"},
            "path": {"path": f"{os.environ['PATH']}:/{poison}"},
        }
        for key, changed in values.items():
            with contextlib.suppress(ValueError):
                others = {"n2": given} if key in ("api", "addresses", "a zone") else {}  # asks what the first one tells
                nodes = {"n1": given | changed, **others}
                yield f"{key} {poison}", inventory_from({"name": "poisoned", "nodes": nodes})
        for names in ({"name": poison, "nodes": {"n1": given}}, {"name": "poisoned", "nodes": {flat: given}}):
            with contextlib.suppress(ValueError):
                yield f"a name {poison}", inventory_from(names)
        with contextlib.suppress(ValueError):
            groups = {flat: ["n1"]}
            yield f"a group {poison}", Inventory(name="poisoned", nodes=world.inventory().nodes, groups=groups)


def _escaped(poison: str) -> str:
    return "".join(f"\\{letter}" if letter in "$()|'\"`;&>" else letter for letter in poison)


async def _look(inventory: Inventory) -> None:
    """By the whole doctor."""
    lost: dict[str, TransportError] = {}
    with contextlib.suppress(RigError):
        async with open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes:
            await examine_fully(inventory, nodes, lost, kinds=KINDS)


def _expecting(outcome: Outcome, folder: Path, states: set[str]) -> Outcome:
    """The controller lived: what it makes of it must be the truth."""
    end = end_of(folder)
    return with_wrong(outcome, [] if end["state"] in states else [f"the controller says {end}"])


def with_wrong(outcome: Outcome, wrong: list[str]) -> Outcome:
    return Outcome(outcome.what, outcome.healed_by, outcome.after_s, outcome.late_s, [*outcome.residue, *wrong])


STRUCK_BY: tuple[str, ...] = ("freeze", "partition", "graceful-stop", "reboot")
"""Kinds of different nature: a signal to processes, a packet filter, a stop of exo, a restart of the machine."""


def _crossed() -> Iterator[tuple[str, Condition]]:
    """What happens to the controller, by kind and moment."""
    for kind in STRUCK_BY:
        for number, moment in enumerate(MOMENTS):
            if KINDS[kind].hold == "none" and moment in ("holding", "healing"):
                continue  # no hold; and it heals on a node that the controller is only about to find again
            yield f"{kind:18} {moment:8} controller stopped", controller_stopped(kind, moment)
            if moment == "struck":
                yield f"{kind:18} lock stolen while asleep", lock_stolen(kind)
            if moment != "healing":
                yield f"{kind:18} {moment:8} disk full", controller_disk_full(kind, moment)
                step_s = 3600.0 if number % 2 else -3600.0
                yield f"{kind:18} {moment:8} clock {step_s / 3600:+.0f} h", clock_stepped(kind, moment, step_s)


CONDITIONS: Final[dict[str, Condition]] = {
    **dict(_crossed()),
    **{
        f"{kind:18} healing  guard's heal killed": healer_killed(kind) for kind in ("freeze", "partition", "node-crash")
    },
    **{f"{kind:18} holding  node lost power": node_killed(kind) for kind in ("node-crash", "disk-fill", "net-loss")},
    **{f"{kind:18} holding  rules flushed": rules_flushed(kind) for kind in ("partition", "net-loss")},
    "sshd restarted": sshd_restarted,
    "script stopped, controller killed": script_stopped,
    "a supervisor restarts exo at once": supervised,
    "a node that hangs on commands": hanging_commands,
    f"{MANY} nodes": many_nodes,
    "metacharacters in every inventory value": metacharacters,
}
