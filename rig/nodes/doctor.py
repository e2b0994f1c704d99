"""The precheck of every node, short form: looks, changes nothing but its own scripts in `rig_dir`, says what to do."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from rig.clock import RunClock
from rig.config.inventory import Inventory
from rig.errors import NodeError, TransportError
from rig.faults.plan.registry import kinds_of, needing
from rig.nodes.inspect import Inspection
from rig.nodes.lock import binds, holder
from rig.nodes.offset import measure
from rig.nodes.open import ShellNodes
from rig.nodes.operations import ShellNode
from rig.nodes.own_boot import THE_RIGS_OWN, own_boot
from rig.nodes.rehearse import rehearsed
from rig.nodes.scripts import q
from rig.nodes.upload import upload

Level = Literal["ok", "warn", "fail"]

LATENCY_WARN_S = 0.25
OFFSET_ERROR_WARN_S = 0.1
DISK_FAIL_BYTES, DISK_WARN_BYTES = 100 * 2**20, 2 * 2**30
MEMORY_WARN_BYTES = 2**29
REBOOT_REMEDY = "run the rig elsewhere; an embedded cluster has machines of its own with `hosts: namespaces`"
WAIT = "wait for that run to end"
SPARED = "none: this node is part of the machine that the rig runs on, and an embedded cluster leaves it as it is"


@dataclass(frozen=True)
class Finding:
    node: str
    check: str
    level: Level
    text: str
    remedy: str = ""


async def examine(
    inventory: Inventory,
    nodes: ShellNodes,
    unreachable: Mapping[str, TransportError] | None = None,
    *,
    kinds: Collection[str] | None = None,
    own_lock: str | None = None,
) -> list[Finding]:
    """All checks of all nodes, nodes at once. Never raises NodeError.

    `kinds`: the fault kinds to be struck (None: all); what only other kinds need is a warning. `own_lock`: the owner
    whose lock is no finding.
    """
    needed = frozenset(kinds) if kinds is not None else None
    lost = unreachable or {}
    found = await asyncio.gather(
        *(
            _unreachable(lost[name]) if name in lost else _node(nodes[name], needed, own_lock)
            for name in inventory.nodes
            if name in lost or name in nodes
        )
    )
    return sparing(inventory, [finding for findings in found for finding in findings])


def sparing(inventory: Inventory, findings: list[Finding]) -> list[Finding]:
    """The findings without remedies that change the machine, where that is the user's own. Pure."""
    if not inventory.on_this_machine:
        return findings
    return [replace(one, remedy=SPARED) if _CHANGES_MACHINE.search(one.remedy) else one for one in findings]


_CHANGES_MACHINE = re.compile(r"rig bootstrap|\bsudo\b|modprobe|\binstall\b|/etc/")


def worst(findings: Collection[Finding]) -> Level:
    levels = {finding.level for finding in findings}
    return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"


async def _unreachable(error: TransportError) -> list[Finding]:
    return [Finding(error.node, "ssh", "fail", error.message.partition(": ")[2], error.remedy or "")]


async def _node(conn: ShellNode, kinds: frozenset[str] | None, own_lock: str | None) -> list[Finding]:
    found: list[Finding] = []
    steps: tuple[tuple[str, Callable[[], Awaitable[list[Finding]]]], ...] = (
        (conn.transport, lambda: _latency(conn)),
        ("scripts", lambda: _scripts(conn)),
        ("inspect", lambda: _inspected(conn, kinds, own_lock)),
        ("clock", lambda: _clock(conn)),
        ("restart", lambda: _restart(conn, kinds)),
        ("api", lambda: _api(conn)),
    )
    for check, step in steps:
        try:
            found += await step()
        except NodeError as exc:
            found.append(Finding(conn.name, check, "fail", exc.message.partition(": ")[2], exc.remedy or ""))
            if check in (conn.transport, "scripts"):
                break  # nothing further can work
    return found


async def _latency(conn: ShellNode) -> list[Finding]:
    await conn.run("true")  # may dial
    times: list[float] = []
    for _ in range(3):
        begun = time.monotonic()
        await conn.run("true")
        times.append(time.monotonic() - begun)
    best = min(times)
    text = f"a command takes {best * 1000:.0f} ms"
    slow = "strikes are timed by the node, but early heals depend on it: use a wired, idle network"
    return [
        Finding(conn.name, conn.transport, "warn" if best > LATENCY_WARN_S else "ok", text, slow if best > 0.25 else "")
    ]


async def _scripts(conn: ShellNode) -> list[Finding]:
    return [Finding(conn.name, "scripts", "ok", f"in {await upload(conn)}")]


async def _inspected(conn: ShellNode, kinds: frozenset[str] | None, own_lock: str | None) -> list[Finding]:
    seen = await conn.inspect()
    busy = seen.lock.get("owner") != own_lock and binds(seen.lock, seen)
    found = [
        await _target(conn, seen),
        *_processes(conn, seen, busy=busy),
        *_leases(conn, seen, busy=busy),
        *_room(conn, seen),
        *_tools(conn, seen, kinds),
    ]
    if (kinds is None or needing(kinds, "reboot")) and seen.boot_id == await own_boot():
        found.append(Finding(conn.name, "reboot", "warn", f"will be skipped: {THE_RIGS_OWN}", REBOOT_REMEDY))
    if seen.os == "Darwin":
        found += await _exo_app(conn)
    return found


async def _target(conn: ShellNode, seen: Inspection) -> Finding:
    process = conn.node.process
    what = process.section
    if seen.main is not None:
        workers = len(seen.workers)
        return Finding(
            conn.name, what, "ok", f"pid {seen.main.pid}, {workers} {process.worker}s: {seen.main.command[:100]}"
        )
    said = await conn.run(f"cat {q(process.pid_path)}", check=False)
    pid = said.stdout.strip()
    if said.status != 0 or not pid.isdigit():
        text = f"there is no pid in {process.pid_path}"
        return Finding(conn.name, what, "fail", text, f"start {what} there, and check `{what}.home` in the inventory")
    command = (await conn.run(f"ps -o command= -p {pid}", check=False)).stdout.strip()
    if not command:
        return Finding(conn.name, what, "fail", f"pid {pid} of {process.pid_path} does not run", f"start {what} there")
    text = f"pid {pid} is not recognised as {what}: {command[:160]}"
    remedy = f"make `{what}.match` fit that command line (it is {process.match!r})"
    return Finding(conn.name, what, "fail", text, remedy)


def _processes(conn: ShellNode, seen: Inspection, *, busy: bool) -> list[Finding]:
    """`busy`: another run holds the node, so that it may be its fault, which must not be ended."""
    found: list[Finding] = []
    if stopped := [process.pid for process in seen.tree if process.state == "T"]:
        what = conn.node.process.section
        text = f"{what} processes are stopped: {', '.join(map(str, stopped))}"
        remedy = WAIT if busy else "rig heal, or `kill -CONT` them"
        found.append(Finding(conn.name, what, "fail", text, remedy))
    if seen.orphans:
        left = ", ".join(str(one.pid) for one in seen.orphans)
        text = f"{conn.node.process.worker}s without a main process hold memory: {left}"
        found.append(Finding(conn.name, "orphans", "warn", text, WAIT if busy else "kill them"))
    return found


def _leases(conn: ShellNode, seen: Inspection, *, busy: bool) -> list[Finding]:
    """A live owner comes first: what is in force then is most likely his."""
    found = [Finding(conn.name, "lock", "fail", f"locked by {holder(seen.lock)}", WAIT)] if busy else []
    found += [
        Finding(
            conn.name,
            "leases",
            "fail",
            f"{one.kind} {one.id} of {one.owner}, run {one.run}",
            WAIT if busy else "rig heal",
        )
        for one in seen.leases
    ]
    return found or [Finding(conn.name, "leases", "ok", "none left")]


def _room(conn: ShellNode, seen: Inspection) -> list[Finding]:
    found: list[Finding] = []
    if (disk := seen.disk_free_bytes) is not None:
        level: Level = "fail" if disk < DISK_FAIL_BYTES else "warn" if disk < DISK_WARN_BYTES else "ok"
        remedy = "" if level == "ok" else "free some: leases and logs must be written, and so must the target's"
        found.append(Finding(conn.name, "disk", level, f"{disk / 2**30:.1f} GiB free at {conn.node.rig_dir}", remedy))
    if (memory := seen.mem_available_bytes) is not None:
        low = memory < MEMORY_WARN_BYTES
        remedy = "the target may not get its model back after a crash" if low else ""
        text = f"{memory / 2**30:.1f} GiB available"
        found.append(Finding(conn.name, "memory", "warn" if low else "ok", text, remedy))
    return found


def _tools(conn: ShellNode, seen: Inspection, kinds: frozenset[str] | None) -> list[Finding]:
    level: Level = "fail" if kinds is None or needing(kinds, "filter") else "warn"

    found: list[Finding] = []
    name = "pfctl" if seen.os == "Darwin" else "nft"  # iptables will do for partitions
    if "filter" not in seen.tools:
        text = f"{name} is not there: no partitions"
        found.append(Finding(conn.name, "packet filter", level, text, f"install {name}"))
    elif not seen.filter_allowed:
        how = "`sudo -n` does not allow it" if conn.node.sudo else "the user is not root and `sudo: false`"
        remedy = "rig bootstrap, or allow the SSH user everything by `sudo -n` without a password"
        found.append(Finding(conn.name, "packet filter", level, f"{name}: {how}", remedy))
    else:
        found.append(Finding(conn.name, "packet filter", "ok", f"{seen.tools['filter']} may be used"))
    if not {"nc", "perl"} & seen.tools.keys():
        found.append(Finding(conn.name, "tools", level, "neither nc nor perl is there", "install nc"))
    if not {"lsof", "ss"} & seen.tools.keys():
        text = f"neither lsof nor ss: a {conn.node.process.worker} can be told from others only when there is one"
        found.append(Finding(conn.name, "tools", "warn", text, "install lsof"))
    if not conn.node.addresses:
        text = "the inventory has no addresses of it: it cannot be cut off"
        found.append(Finding(conn.name, "addresses", level, text, "add `addresses`; `rig init` finds them"))
    return found


async def _exo_app(conn: ShellNode) -> list[Finding]:
    """exo.app's daemon renews DHCP on Thunderbolt every half hour, in the middle of a run."""
    said = await conn.run("/bin/launchctl print system/io.exo.networksetup >/dev/null 2>&1", check=False)
    if said.status != 0:
        return []
    text = "exo.app's network daemon io.exo.networksetup is loaded: it resets the network every 1786 s"
    remedy = "sudo launchctl bootout system/io.exo.networksetup for the time of the run"
    return [Finding(conn.name, "network daemon", "warn", text, remedy)]


async def _clock(conn: ShellNode) -> list[Finding]:
    offset = await measure(conn, RunClock())
    text = f"offset known to ± {offset.error_s * 1000:.0f} ms"
    wide = offset.error_s > OFFSET_ERROR_WARN_S
    return [
        Finding(conn.name, "clock", "warn" if wide else "ok", text, "the network or the node is busy" if wide else "")
    ]


async def _restart(conn: ShellNode, kinds: frozenset[str] | None) -> list[Finding]:
    needed = kinds is None or any(kind.restarts for kind in kinds_of(kinds))
    if conn.node.process.start is None:
        what = conn.node.process.section
        text = f"how {what} is started is not known: crash faults are refused"
        return [Finding(conn.name, "restart", "fail" if needed else "warn", text, f"say it as `{what}.start`")]
    if conn.name not in await rehearsed({conn.name: conn}):
        text = "never rehearsed: crash faults are refused"
        return [Finding(conn.name, "restart", "fail" if needed else "warn", text, "rig doctor --rehearse-restart")]
    return [Finding(conn.name, "restart", "ok", "known to work")]


async def _api(conn: ShellNode) -> list[Finding]:
    url = urlsplit(conn.node.api)
    try:
        async with asyncio.timeout(3.0):
            _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.close()
    except (OSError, TimeoutError) as exc:
        text = f"{conn.node.api} does not accept connections from here: {exc or 'timed out'}"
        return [Finding(conn.name, "api", "fail", text, "check `api` in the inventory, and the firewall there")]
    return [Finding(conn.name, "api", "ok", f"{conn.node.api} accepts connections")]
