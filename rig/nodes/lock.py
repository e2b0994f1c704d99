"""A lock on a node that keeps two rigs apart: `RIG_DIR/lock` with an owner, a run and a deadline on the node's clock.

It is created by `ln` of a complete file, which fails when the lock is there, renewed while a run lives, and taken over
when its deadline has passed or the node has booted since: a controller that dies leaves no lock that needs a hand.
A controller may sleep and wake to a node that another holds, so it does not suffice that it looks: its connection
carries the token of its lock, and what strikes on the node compares it there, right before the strike.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rig.errors import CommandFailed, LeaseError, NodeError
from rig.nodes.inspect import Inspection
from rig.nodes.open import ShellNodes
from rig.nodes.operations import ShellNode
from rig.nodes.scripts import called

TTL_S = 60.0
SILENT_S = 600.0  # a node that says nothing for so long is lost; one that boots again is silent for a minute or two
HELD = 75  # status of the scripts below: the lock is (or has become) another's

# $1 lock, $2 our file, $3 the token of the stale lock that may be replaced (empty: none).
# A stale lock is replaced only by who made the folder named after its token, and only while it still is that lock.
_TAKE = """
umask 077; lock=$1; mine=$2; stale=$3; gate=$lock.over-$3
cat >"$mine" || exit 1
# A connection that is lost on the way ends the input early: half a lock must not take the place of a whole one.
[ "$(tail -n 1 "$mine")" = end=1 ] || { rm -f "$mine"; exit 1; }
if [ -z "$stale" ]; then
    ln "$mine" "$lock" 2>/dev/null; took=$?
elif mkdir "$gate" 2>/dev/null; then
    grep -qxF "token=$stale" "$lock" 2>/dev/null && mv -f "$mine" "$lock"; took=$?
    rmdir "$gate"
else
    [ -z "$(find "$gate" -prune -mmin +1 2>/dev/null)" ] || rmdir "$gate" 2>/dev/null
    took=1
fi
rm -f "$mine"
[ "$took" -eq 0 ] && exit 0
[ -e "$lock" ] && exit 75
[ -n "$stale" ] && exit 75
echo "cannot write $lock" >&2
exit 1
"""
_RENEW = """
umask 077; lock=$1; mine=$2
cat >"$mine" || exit 1
[ "$(tail -n 1 "$mine")" = end=1 ] || { rm -f "$mine"; exit 1; }
grep -qxF "token=$3" "$lock" 2>/dev/null || { rm -f "$mine"; exit 75; }
mv -f "$mine" "$lock"
"""
_RELEASE = 'grep -qxF "token=$2" "$1" 2>/dev/null && rm -f "$1"; exit 0'


@dataclass
class Locks:
    """The locks of one run. `lost` is set, with `reason`, when one of them could not be kept; it was last known to be
    this run's at `kept_at`, on the event loop's clock."""

    owner: str
    run: str
    token: str
    taken_over: list[str] = field(default_factory=list[str])  # "NODE: from OWNER (run RUN)", for the report
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""
    kept_at: float = 0.0


def default_owner() -> str:
    """`user@host:pid`, for people to find who holds a lock."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no name for this uid
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


@asynccontextmanager
async def hold_locks(
    nodes: ShellNodes,
    run: str,
    *,
    owner: str | None = None,
    ttl_s: float = TTL_S,
    silent_s: float = SILENT_S,
    say: Callable[[str], None] | None = None,
) -> AsyncGenerator[Locks]:
    """Locks all nodes in the order of their names, renews every third of `ttl_s`, unlocks at the end.

    A node that cannot be reached for longer than `ttl_s` may be locked by another rig; that is found out when it can be
    reached again, and the lock is lost then, or when it stayed silent for `silent_s`. Raises LeaseError naming the
    owner of a live lock. The scripts must have been uploaded.
    """
    locks = Locks(owner or default_owner(), run, secrets.token_hex(8))
    held: list[ShellNode] = []
    renewing: asyncio.Task[None] | None = None
    try:
        for name in sorted(nodes):
            if (previous := await _take(nodes[name], locks, ttl_s)) is not None:
                locks.taken_over.append(f"{name}: from {previous}")
                if say is not None:
                    say(f"{name}: took over an expired lock from {previous}")
            nodes[name].lock = locks.token
            held.append(nodes[name])
        renewing = asyncio.create_task(_renew_all(held, locks, ttl_s, silent_s))
        yield locks
    finally:
        if renewing is not None:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
        for conn in held:
            conn.lock = ""
        await asyncio.gather(*(_release(conn, locks) for conn in held), return_exceptions=True)


async def _take(conn: ShellNode, locks: Locks, ttl_s: float) -> str | None:
    """Takes the lock; returns the owner of an expired one that was taken over. Raises LeaseError for a live one."""
    for _ in range(3):
        seen, now = await asyncio.gather(conn.inspect("leases"), conn.inspect("clock"))
        if binds(seen.lock, now):
            raise _foreign(conn.name, seen.lock, now.clock)
        text = _text(locks, now.boot_id, now.clock + ttl_s)
        stale = seen.lock.get("token", "")
        if seen.lock and not re.fullmatch(r"[A-Za-z0-9]{1,64}", stale):
            raise LeaseError(
                f"{conn.name}: {conn.node.rig_dir}/lock cannot be understood",
                remedy="remove it on the node if no other rig is at work there",
            )
        try:
            await _sh(conn, _TAKE, text, _mine(conn, locks), stale)
        except CommandFailed as exc:
            if exc.status == HELD:
                continue  # somebody was quicker: look again
            raise
        return f"{seen.lock.get('owner', '?')} (run {seen.lock.get('run', '?')})" if stale else None
    raise LeaseError(
        f"{conn.name}: the lock is contended by another rig", remedy="let one rig at a time at these nodes"
    )


def binds(lock: dict[str, str], now: Inspection) -> bool:
    """Whether a lock that was read from a node keeps us off it. `now`: clock and boot of the node."""
    return bool(lock) and _is_live(lock, now.clock, now.boot_id) and not _died_here(lock.get("owner", ""))


def holder(lock: dict[str, str]) -> str:
    """Whose lock it is, in words. Pure."""
    return f"{lock.get('owner', 'somebody')} for run {lock.get('run', '?')}"


def _is_live(lock: dict[str, str], clock: float, boot_id: str) -> bool:
    """Whether a lock binds us: same boot and deadline not passed. What has no readable deadline binds. Pure."""
    try:
        deadline = float(lock.get("deadline", ""))
    except ValueError:
        return True
    return lock.get("boot_id") == boot_id and clock < deadline


def _died_here(owner: str) -> bool:
    """Whether the owner was a process of this user on this machine, and is gone."""
    place, _, pid = owner.rpartition(":")
    if place != default_owner().rpartition(":")[0] or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _foreign(node: str, lock: dict[str, str], clock: float) -> LeaseError:
    remedy = "wait for that run to end; the lock of a dead one runs out by itself"
    with contextlib.suppress(KeyError, ValueError):
        remedy += f" within {max(0.0, float(lock['deadline']) - clock):.0f} s"
    return LeaseError(f"{node}: locked by {holder(lock)}", remedy=remedy)


async def _renew_all(conns: list[ShellNode], locks: Locks, ttl_s: float, silent_s: float) -> None:
    """Renews until cancelled. A node that cannot be reached is tried again until it was silent for `silent_s`."""
    loop = asyncio.get_running_loop()
    renewed = dict.fromkeys((conn.name for conn in conns), loop.time())
    while not locks.lost.is_set():
        await asyncio.sleep(ttl_s / 3)
        outcomes = await asyncio.gather(*(_renew(conn, locks, ttl_s) for conn in conns), return_exceptions=True)
        for conn, outcome in zip(conns, outcomes, strict=True):
            if outcome is None:
                renewed[conn.name] = loop.time()
            elif isinstance(outcome, LeaseError) or loop.time() - renewed[conn.name] > silent_s:
                locks.reason, locks.kept_at = str(outcome), renewed[conn.name]
                locks.lost.set()


async def _renew(conn: ShellNode, locks: Locks, ttl_s: float) -> None:
    now = await conn.inspect("clock", timeout_s=ttl_s / 3)
    text = _text(locks, now.boot_id, now.clock + ttl_s)
    try:
        await _sh(conn, _RENEW, text, _mine(conn, locks), locks.token, timeout_s=ttl_s / 3)
    except CommandFailed as exc:
        if exc.status == HELD:
            raise LeaseError(f"{conn.name}: the lock of this run was taken by another rig") from exc
        raise


async def _release(conn: ShellNode, locks: Locks) -> None:
    try:
        await _sh(conn, _RELEASE, "", locks.token, timeout_s=3)
    except NodeError:
        return  # it runs out by itself


async def _sh(conn: ShellNode, script: str, stdin: str, *arguments: str, timeout_s: float = 10.0) -> None:
    """Runs a script on the lock file ($1) with further arguments."""
    await conn.run(called(script, f"{conn.node.rig_dir}/lock", *arguments), stdin=stdin, timeout_s=timeout_s)


def _mine(conn: ShellNode, locks: Locks) -> str:
    return f"{conn.node.rig_dir}/lock.{locks.token}"


def _text(locks: Locks, boot_id: str, deadline: float) -> str:
    lines = {"version": "1", "owner": locks.owner, "run": locks.run, "token": locks.token, "boot_id": boot_id}
    return "".join(f"{key}={value}\n" for key, value in lines.items()) + f"deadline={deadline:.3f}\nend=1\n"
