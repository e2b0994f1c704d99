"""A rehearsed restart: exo stopped and started once by the inventory's means, proved, and remembered on the node.

Crash faults kill exo and rely on `exo.start`. A start command that does not work would leave a node dead in the middle
of a run, so none is struck before one restart has worked. What is remembered is bound to the commands.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from rig.config.inventory import ExoProcess
from rig.errors import CommandFailed, NodeError, NodeNotReady
from rig.nodes.inspect import Process, inspect
from rig.nodes.scripts import q
from rig.nodes.ssh import NodeConnection, Nodes

STOP_LIMIT_S = 60.0
START_LIMIT_S = 120.0
POLL_S = 0.2


def fingerprint(exo: ExoProcess) -> str:
    """Of the commands that a rehearsal has proved to work."""
    text = "\0".join(command or "" for command in (exo.start, exo.hold, exo.release))
    return hashlib.sha256(text.encode()).hexdigest()


async def rehearsed(nodes: Nodes) -> frozenset[str]:
    """Names of the nodes on which a restart is known to work: by the inventory, or by an earlier rehearsal."""
    known = await asyncio.gather(*(_remembered(conn) for conn in nodes.values()))
    return frozenset(name for name, yes in zip(nodes, known, strict=True) if yes)


async def rehearse(conn: NodeConnection, say: Callable[[str], None]) -> Process:
    """Stops and starts exo, waits for a new main process, remembers it. Returns that process.

    Raises NodeNotReady with what did not happen; what `hold` held is released all the same.
    """
    exo = conn.node.exo
    if exo.start is None:
        remedy = "say in the inventory how exo is started (`exo.start`)"
        raise NodeNotReady(conn.name, "how exo is started is not known", remedy=remedy)
    before = (await inspect(conn, "tree")).main
    if before is None:
        raise NodeNotReady(conn.name, "exo does not run: there is nothing to restart", remedy="start it once by hand")
    say(f"{conn.name}: stopping exo (pid {before.pid})")
    try:
        if exo.hold is not None:
            await _command(conn, exo.hold)
        await _stop(conn, before)
        gone = await _wait(conn, lambda main: main is None or main.identity != before.identity, STOP_LIMIT_S)
        if not gone:
            remedy = "check `exo.stop` in the inventory"
            raise NodeNotReady(conn.name, f"exo did not end within {STOP_LIMIT_S:g} s", remedy=remedy)
    finally:
        if exo.release is not None:
            await _command(conn, exo.release)
    say(f"{conn.name}: starting it again")
    if (await inspect(conn, "tree")).main is None:  # a supervisor may have been quicker
        await _command(conn, exo.start)
    if not await _wait(conn, lambda main: main is not None and main.identity != before.identity, START_LIMIT_S):
        remedy = "run `exo.start` by hand on the node and look at what it says; exo is down there now"
        raise NodeNotReady(conn.name, f"no new main process within {START_LIMIT_S:g} s", remedy=remedy)
    main = (await inspect(conn, "tree")).main
    if main is None:
        raise NodeNotReady(conn.name, "the new main process ended at once", remedy="look at exo's log")
    await conn.put(_path(conn), f"{fingerprint(exo)}\n".encode())
    say(f"{conn.name}: exo runs again (pid {main.pid}); remembered")
    return main


async def _stop(conn: NodeConnection, main: Process) -> None:
    """By the inventory's command, else SIGTERM to the main process, once more looked at right before."""
    if conn.node.exo.stop is not None:
        await _command(conn, conn.node.exo.stop)
        return
    seen = (await inspect(conn, "tree")).main
    if seen is not None and seen.identity == main.identity:
        await conn.run(f"kill -TERM {main.pid}")


async def _wait(conn: NodeConnection, wanted: Callable[[Process | None], bool], limit_s: float) -> bool:
    """Polls the main process until it is as wanted, within `limit_s`."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while not wanted((await inspect(conn, "tree")).main):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def _command(conn: NodeConnection, command: str) -> None:
    try:
        await conn.run(command, timeout_s=START_LIMIT_S)
    except CommandFailed as exc:
        raise NodeNotReady(conn.name, exc.message.partition(": ")[2], remedy="correct it in the inventory") from exc


async def _remembered(conn: NodeConnection) -> bool:
    if conn.node.restart_rehearsed:
        return True
    try:
        said = await conn.run(f"cat {q(_path(conn))}", check=False)
    except NodeError:
        return False
    return conn.node.exo.start is not None and said.stdout.strip() == fingerprint(conn.node.exo)


def _path(conn: NodeConnection) -> str:
    return f"{conn.node.rig_dir}/restart_rehearsed"
