"""Everything that a fault could leave behind on a node, as values that can be compared."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.sweep.world import World

# The rig's own: kept between faults, and said to be in docs/node-scripts.md.
_KEPT = re.compile(r"(scripts-[0-9a-f]+(/.*)?|log(/.*)?|leases|tree|guard|lock|exo\.pid)$")


@dataclass(frozen=True)
class Snapshot:
    filters: str
    links: str
    shapes: str
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
    enter = world.network.enter_node
    return Snapshot(
        filters=_run(*enter, "nft", "list", "ruleset"),
        links="\n".join(sorted(re.sub(r" tentative|valid_lft.*", "", _run(*enter, "ip", "-o", "addr")).splitlines()))
        + "".join(_run(*enter, "ip", family, "route") for family in ("-4", "-6"))
        + "".join(sorted(re.findall(r"<[^>]*>", re.sub(r"LOWER_UP|NO-CARRIER", "", _run(*enter, "ip", "-o", "link"))))),
        shapes=_run(*enter, "tc", "qdisc", "show"),
        processes=_processes(world, runners=runners),
        files=_files(world),
        foreign=_foreign(world),
    )


def _processes(world: World, *, runners: bool) -> tuple[str, ...]:
    """exo's tree by command and whether it is stopped; every other process of the node that is not always there."""
    tree = [one for one in world.exo_tree() if runners or _kind(one) != "spawn_main"]
    found = [f"exo {'stopped' if one.status() == psutil.STATUS_STOPPED else 'up'} {_kind(one)}" for one in tree]
    always = {one.pid for one in world.exo_tree()} | {one.pid for one in world.processes}
    for one in world.mine():
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
    return tuple(sorted(found))


def _kind(process: psutil.Process) -> str:
    words = process.cmdline()
    return next((word for word in ("resource_tracker", "spawn_main") if word in words), "main")


def _files(world: World) -> tuple[str, ...]:
    found: list[str] = []
    for root in (world.rig_dirs["n1"], world.exo.home):
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if not _KEPT.match(name) and not name.startswith(("lock.", "exo_log", "leases/foreign")):
                found.append(f"{root.name}/{name} {path.lstat().st_mode:o}")
    return tuple(found)


def _foreign(world: World) -> str:
    """The planted process, lease and rule. (The rule is part of `filters` as well.)"""
    assert world.foreign is not None
    state = Path(f"/proc/{world.foreign.pid}/stat").read_text().rpartition(") ")[2][0]
    lease = world.leases / "foreign"
    return f"{state} {lease.read_text() if lease.exists() else 'no lease'}"


def _changes(was: str | tuple[str, ...], now: str | tuple[str, ...]) -> str:
    old, new = _items(was), _items(now)
    return "; ".join([f"gone {item}" for item in sorted(old - new)] + [f"new {item}" for item in sorted(new - old)])[
        :400
    ]


def _items(value: str | tuple[str, ...]) -> set[str]:
    return set(value.splitlines()) if isinstance(value, str) else set(value)


def _run(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=True, env={**os.environ, "LC_ALL": "C"}
    )
    return done.stdout
