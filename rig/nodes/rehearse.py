"""A rehearsed restart: the target stopped and started once by the inventory's means, proved, remembered on the node.

Crash faults kill the target and rely on its `start`. A start command that does not work would leave a node dead in the
middle of a run, so none is struck before one restart has worked. What is remembered is bound to the commands.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from rig.config.inventory import Node
from rig.errors import NodeError, NodeNotReady
from rig.nodes.inspect import Inspection, Process
from rig.nodes.open import ShellNodes
from rig.nodes.operations import ShellNode
from rig.nodes.scripts import q

STOP_LIMIT_S = 60.0
START_LIMIT_S = 120.0
KILL_LIMIT_S = 20.0  # a process with much memory takes a while to end
POLL_S = 0.2


def fingerprint(node: Node) -> str:
    """Of the commands that a rehearsal has proved to work."""
    process = node.process
    text = "\0".join(command or "" for command in (process.start, process.hold, process.release))
    return hashlib.sha256(text.encode()).hexdigest()


async def rehearsed(nodes: ShellNodes) -> frozenset[str]:
    """Names of the nodes on which a restart is known to work: by the inventory, or by an earlier rehearsal."""
    known = await asyncio.gather(*(_remembered(conn) for conn in nodes.values()))
    return frozenset(name for name, yes in zip(nodes, known, strict=True) if yes)


async def rehearse(conn: ShellNode, say: Callable[[str], None]) -> Process:
    """Stops and starts the target, waits for a new main process, remembers it. Returns that process.

    Whatever goes wrong on the way, and when it is cancelled, it is started again, or it is said that it is down.
    Raises NodeNotReady with what did not happen; what `hold` held is released all the same.
    """
    process = conn.node.process
    what = process.section
    if process.start is None:
        remedy = f"say in the inventory how {what} is started (`{what}.start`)"
        raise NodeNotReady(conn.name, f"how {what} is started is not known", remedy=remedy)
    before = await conn.inspect("tree")
    if before.main is None:
        text = f"{what} does not run: there is nothing to restart"
        raise NodeNotReady(conn.name, text, remedy="start it once by hand")
    say(f"{conn.name}: stopping {what} (pid {before.main.pid})")
    try:
        ended = await _take_down(conn, before)
    except BaseException:
        await asyncio.shield(_recover(conn, before.main, say))
        raise
    if not ended:
        say(f"{conn.name}: it did not end within {STOP_LIMIT_S:g} s; killing it")
    main = await asyncio.shield(_bring_back(conn, before.main, say))
    if main is None:
        remedy = f"run `{what}.start` by hand on the node and look at what it says"
        raise NodeNotReady(
            conn.name, f"no new main process within {START_LIMIT_S:g} s: {what} is DOWN there", remedy=remedy
        )
    if main.identity == before.main.identity:
        text = f"{what} (pid {main.pid}) ended neither by itself nor by SIGKILL: it is there still, and may be unfit"
        raise NodeNotReady(conn.name, text, remedy="look at it on the node")
    if not ended:
        how = f"`{what}.stop`" if process.stop is not None else "SIGTERM"
        text = f"{what} did not end within {STOP_LIMIT_S:g} s of {how}: it was killed, and runs again (pid {main.pid})"
        raise NodeNotReady(conn.name, text, remedy=f"give a `{what}.stop` that ends it; it is not remembered")
    await conn.put(_path(conn), f"{fingerprint(conn.node)}\n".encode())
    say(f"{conn.name}: remembered")
    return main


async def _take_down(conn: ShellNode, before: Inspection) -> bool:
    """Stops the target by the inventory's command, else by SIGTERM to the main process. False: it had to be killed."""
    process, main = conn.node.process, before.main
    assert main is not None
    try:
        if process.hold is not None:
            await conn.carry_out("hold", timeout_s=START_LIMIT_S)
        if process.stop is not None:
            await conn.carry_out("stop", timeout_s=START_LIMIT_S)
        else:
            await _signal(conn, "TERM", [main])
        if ended := await _wait(conn, lambda seen: seen is None or seen.identity != main.identity, STOP_LIMIT_S):
            return ended
        await _signal(conn, "KILL", before.tree)
        await _wait(conn, lambda seen: seen is None or seen.identity != main.identity, KILL_LIMIT_S)
        return False
    finally:
        if process.release is not None:
            await conn.carry_out("release", timeout_s=START_LIMIT_S)


async def _recover(conn: ShellNode, before: Process, say: Callable[[str], None]) -> None:
    """After something went wrong: it may have been told to end, and may do so only now. Never raises NodeError."""
    what = conn.node.process.section
    try:
        await _wait(conn, lambda seen: seen is None or seen.identity != before.identity, KILL_LIMIT_S)
        main = await _bring_back(conn, before, say)
    except NodeError as error:
        unknown = f"whether {what} runs is NOT KNOWN ({error.message})"
        say(f"{conn.name}: {unknown}: look there, run `{what}.start` if it is gone")
        return
    if main is not None and main.identity == before.identity:
        say(f"{conn.name}: should it still end, as it may have been told to, run `{what}.start` by hand")


async def _bring_back(conn: ShellNode, before: Process, say: Callable[[str], None]) -> Process | None:
    """Starts the target unless it runs, and says how it stands there. None: it is down. Raises NodeError: not known."""
    what = conn.node.process.section
    main = (await conn.inspect("tree")).main
    if main is None:  # a supervisor may have been quicker
        say(f"{conn.name}: starting it again")
        try:
            await conn.carry_out("start", timeout_s=START_LIMIT_S)
        except NodeError as error:
            say(f"{error}")  # what counts is whether a main process runs
        await _wait(conn, lambda seen: seen is not None, START_LIMIT_S)
        main = (await conn.inspect("tree")).main
    if main is None:
        say(f"{conn.name}: {what} is DOWN: run `{what}.start` by hand")
    elif main.identity == before.identity:
        say(f"{conn.name}: the {what} of before runs still (pid {main.pid})")
    else:
        say(f"{conn.name}: {what} runs again (pid {main.pid})")
    return main


async def _signal(conn: ShellNode, name: str, processes: list[Process]) -> None:
    """To those of them that are there still, looked at right before."""
    there = {one.identity for one in (await conn.inspect("tree")).tree}
    if pids := [str(one.pid) for one in processes if one.identity in there]:
        await conn.run(f"kill -{name} {' '.join(pids)}", check=False)


async def _wait(conn: ShellNode, wanted: Callable[[Process | None], bool], limit_s: float) -> bool:
    """Polls the main process until it is as wanted, within `limit_s`."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while not wanted((await conn.inspect("tree")).main):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def _remembered(conn: ShellNode) -> bool:
    if conn.node.restart_rehearsed:
        return True
    try:
        said = await conn.run(f"cat {q(_path(conn))}", check=False)
    except NodeError:
        return False
    return conn.node.process.start is not None and said.stdout.strip() == fingerprint(conn.node)


def _path(conn: ShellNode) -> str:
    return f"{conn.node.rig_dir}/restart_rehearsed"
