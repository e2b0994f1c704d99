"""First contact: which processes the rig may stop and kill, by pid, named before it is let loose on them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from rig.errors import UsageError
from rig.nodes.inspect import Inspection
from rig.nodes.node import Nodes


async def named_processes(nodes: Nodes) -> dict[str, list[str]]:
    """Node → `pid start command` of every process that a fault may hit there now. Raises NodeError."""
    hit = {name: conn for name, conn in nodes.items() if conn.node.faults}
    seen = await asyncio.gather(*(conn.inspect("tree") for conn in hit.values()))
    return {one.node: _lines(one) for one in seen}


def consent_text(named: dict[str, list[str]], nodes: Nodes) -> str:
    """What the user is asked about. Pure."""
    lines = ["Faults may stop or kill these processes, and what starts in their place, and cut these nodes off:"]
    for name, processes in named.items():
        lines.append(f"  {name} ({nodes[name].node.reached_as})")
        lines += [f"    {process[:160]}" for process in processes] or ["    (the target does not run there now)"]
    spared = [name for name in nodes if name not in named]
    if spared:
        lines.append(f"  never: {', '.join(spared)} (`faults: false`)")
    return "\n".join(lines)


async def first_contact(
    nodes: Nodes, *, yes: bool, say: Callable[[str], None], answer: Callable[[], str] | None = None
) -> dict[str, list[str]]:
    """Names the processes and asks, unless `yes`. Returns what was named, for the run's record.

    Raises UsageError when the user declines, or when nobody can be asked.
    """
    named = await named_processes(nodes)
    await agreed(consent_text(named, nodes), yes=yes, say=say, answer=answer)
    return named


async def agreed(text: str, *, yes: bool, say: Callable[[str], None], answer: Callable[[], str] | None = None) -> None:
    """Says `text` and returns when the user agrees to it, or has by `yes`. Raises UsageError otherwise."""
    say(text)
    if yes:
        return
    if answer is None and not sys.stdin.isatty():
        raise UsageError("nobody can be asked: this is not a terminal", remedy="give --yes if that may be done")
    said = await _ask() if answer is None else await asyncio.to_thread(answer)
    if said.strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done: you did not agree")


async def _ask() -> str:
    """One line from the terminal. Reading in a thread would outlive a Ctrl-C at the question."""
    print("Go ahead? [y/N] ", end="", file=sys.stderr, flush=True)
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(os.read(number, 1024))

    loop.add_reader(number, read)
    try:
        return (await typed).decode(errors="replace")
    finally:
        loop.remove_reader(number)


def _lines(seen: Inspection) -> list[str]:
    return [f"{process.pid} {process.start} {process.command}" for process in seen.tree]
