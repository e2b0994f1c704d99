"""Everything that a fault could leave behind on the nodes, as values that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.sweep.machine import Machine
from tests.sweep.world import World

# The rig's own: kept between faults, and said to be in docs/node-scripts.md.
_KEPT = re.compile(r"(scripts-[0-9a-f]+(/.*)?|log(/.*)?|leases|tree|guard|lock|exo\.pid|exo\.lock|event_log(/.*)?)$")


@dataclass(frozen=True)
class Snapshot:
    filters: tuple[str, ...]
    links: tuple[str, ...]
    shapes: tuple[str, ...]
    processes: tuple[str, ...]
    files: tuple[str, ...]
    foreign: str

    def differs(self, before: Snapshot) -> list[str]:
        """What is not as it was, in words."""
        found: list[str] = []
        for name in ("filters", "links", "shapes", "processes", "files", "foreign"):
            was, now = getattr(before, name), getattr(self, name)
            if was != now:
                found.append(f"{name}: {_changes(was, now)}")
        return found


def take(world: World, *, runners: bool = True) -> Snapshot:
    """`runners`: whether exo's runners are looked at; whoever kills one leaves it to exo to make another."""

    def each(look: Callable[[Machine], Iterable[str]]) -> tuple[str, ...]:
        return tuple(f"{machine.name} {item}" for machine in world.machines for item in look(machine))

    return Snapshot(
        filters=each(lambda machine: machine.command("nft", "list", "ruleset").splitlines()),
        links=each(_links),
        shapes=each(lambda machine: machine.command("tc", "qdisc", "show").splitlines()),
        processes=each(lambda machine: _processes(machine, runners=runners)),
        files=each(_files),
        foreign=_foreign(world),
    )


def _links(machine: Machine) -> list[str]:
    """Addresses, routes and interfaces; not what settles by itself in the kernel's own time."""
    addresses = re.sub(r" tentative|valid_lft.*", "", machine.command("ip", "-o", "addr")).splitlines()
    routes = [line for family in ("-4", "-6") for line in machine.command("ip", family, "route").splitlines()]
    flags = re.findall(r"<[^>]*>", re.sub(r"LOWER_UP|NO-CARRIER", "", machine.command("ip", "-o", "link")))
    return sorted([*addresses, *routes, *flags])


def _processes(machine: Machine, *, runners: bool) -> list[str]:
    """exo's tree by command and whether it is stopped; every other process of the node that is not always there."""
    tree = machine.exo_tree()
    seen = [one for one in tree if runners or _kind(one) != "spawn_main"]
    found = [f"exo {'stopped' if one.status() == psutil.STATUS_STOPPED else 'up'} {_kind(one)}" for one in seen]
    always = {one.pid for one in tree} | {one.pid for one in machine.processes}
    for one in machine.mine():
        try:
            words = one.cmdline()
            if (
                one.pid in always
                or not words
                or words[0] in ("sleep", "ip")
                or any("guard.sh" in word for word in words)
            ):
                continue
            if any(word.endswith(("sshserver.py", "heal.sh")) for word in words):
                continue
            found.append(f"{one.status()} {' '.join(words)[:120]}")
        except psutil.Error:
            continue
    return sorted(found)


def _kind(process: psutil.Process) -> str:
    words = process.cmdline()
    return next((word for word in ("resource_tracker", "spawn_main") if word in words), "main")


def _files(machine: Machine) -> list[str]:
    found: list[str] = []
    for root in (machine.rig_dir, machine.exo.home):
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if not _KEPT.match(name) and not name.startswith(("lock.", "exo_log", "leases/foreign")):
                found.append(f"{root.name}/{name} {path.lstat().st_mode:o}")
    return found


def _foreign(world: World) -> str:
    """The planted process, lease and rule. (The rule is part of `filters` as well.)"""
    assert world.foreign is not None
    state = Path(f"/proc/{world.foreign.pid}/stat").read_text().rpartition(") ")[2][0]
    lease = world.n1.leases / "foreign"
    return f"{state} {lease.read_text() if lease.exists() else 'no lease'}"


def _changes(was: str | tuple[str, ...], now: str | tuple[str, ...]) -> str:
    old, new = _items(was), _items(now)
    return "; ".join([f"gone {item}" for item in sorted(old - new)] + [f"new {item}" for item in sorted(new - old)])[
        :400
    ]


def _items(value: str | tuple[str, ...]) -> set[str]:
    return set(value.splitlines()) if isinstance(value, str) else set(value)
