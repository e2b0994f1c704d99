"""The process that stands over a cluster: starts the machines and the sampler, and ends everything in time.

    python -m rig.lab.embedded.supervise FOLDER [--lifeline FD] [--for SECONDS]

It ends everything at once on SIGTERM or SIGINT, when its time is over, or when a machine or the sampler ends by
itself (exit status 1 then: the emulation is broken). When its owner is gone it lingers while a node still holds a
lease, so that a node can be seen to heal without its controller. If this process is itself killed, machines and
sampler read the end of their lifelines and end their nodes' processes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from rig.lab.embedded import lifeline as lifelines
from rig.lab.embedded import orphans
from rig.lab.embedded.layout import ClusterLayout, read_layout
from rig.lab.embedded.lifeline import Lifeline
from rig.lab.embedded.machine.to_end import run_to_end
from rig.lab.embedded.reap import reap
from rig.lab.hosts.between import between
from rig.lab.hosts.require import SYSTEM_PATH

LINGER_S = 60.0
LINGER_POLL_S = 0.1
DEFAULT_LIMIT_S = 15 * 86400.0  # longer than the longest run
CHILD_END_S = 4.0  # the sampler's own limits, and a busy machine


class SupervisorState(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`: who looks after the cluster in this folder. Stale when no process has this pid and start."""

    pid: int
    start: float
    limit_wall: float  # Unix time at which it ends by itself


def state_path(folder: Path | str) -> Path:
    return Path(folder) / "state.json"


@dataclass
class _Child:
    name: str
    process: asyncio.subprocess.Process
    lifeline: Lifeline


async def _start(layout: ClusterLayout, name: str, *arguments: str) -> _Child:
    lifeline = Lifeline()
    process = await asyncio.create_subprocess_exec(
        layout.python,
        "-m",
        *arguments,
        "--lifeline",
        str(lifeline.read_fd),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(lifeline.read_fd,),
    )
    lifeline.release()
    return _Child(name=name, process=process, lifeline=lifeline)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


async def supervise(layout: ClusterLayout, *, owner_fd: int | None, limit_s: float) -> int:
    """Run the cluster until it is to end. Returns the exit status."""
    orphans.adopt()
    stop = asyncio.Event()
    owner_gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if owner_fd is not None:
        lifelines.watch(owner_fd, owner_gone.set)
    _write_state(layout, limit_s)
    children: list[_Child] = []
    networks = contextlib.AsyncExitStack()
    try:
        network = await networks.enter_async_context(between(layout, owned=owner_fd is not None))
        for node in layout.nodes:
            child = await _start(layout, node, *network.machine(layout.node_folder(node)))
            children.append(child)
        children.append(await _start(layout, "sampler", "rig.lab.embedded.sampler", layout.folder))
        return await _wait_for_end(layout, children, stop=stop, owner_gone=owner_gone, limit_s=limit_s)
    finally:
        await _end(children)
        left = await asyncio.to_thread(reap, layout)
        await networks.aclose()
        orphans.collect_all()
        if left:
            _say(f"could not end {left}")
        with contextlib.suppress(OSError):
            state_path(layout.folder).unlink()


def _write_state(layout: ClusterLayout, limit_s: float) -> None:
    state = SupervisorState(pid=os.getpid(), start=psutil.Process().create_time(), limit_wall=time.time() + limit_s)
    path = state_path(layout.folder)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(state))
    temporary.replace(path)


async def _wait_for_end(
    layout: ClusterLayout,
    children: list[_Child],
    *,
    stop: asyncio.Event,
    owner_gone: asyncio.Event,
    limit_s: float,
) -> int:
    waits: list[asyncio.Task[object]] = [
        asyncio.create_task(stop.wait()),
        asyncio.create_task(_linger(layout, owner_gone)),
        *(asyncio.create_task(child.process.wait()) for child in children),
    ]
    await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    for task in waits:
        task.cancel()
    for child in children:
        if child.process.returncode is not None and not stop.is_set():
            _say(f"{child.name} ended by itself with status {child.process.returncode}: ending the cluster")
            return 1
    return 0


async def _linger(layout: ClusterLayout, owner_gone: asyncio.Event) -> None:
    """Returns when the owner is gone and no node holds a lease any more, or after `LINGER_S`."""
    await owner_gone.wait()
    deadline = time.monotonic() + LINGER_S
    while time.monotonic() < deadline and holds_lease(layout):  # noqa: ASYNC110 (files of other processes)
        await asyncio.sleep(LINGER_POLL_S)


def holds_lease(layout: ClusterLayout) -> bool:
    for node in layout.nodes:
        with contextlib.suppress(OSError):
            if any(not entry.name.startswith(".") for entry in (layout.node_folder(node) / "rig" / "leases").iterdir()):
                return True
    return False


async def _end(children: list[_Child]) -> None:
    """Cut the lifelines, give the children a moment to end their nodes, then end them too."""
    for child in children:
        child.lifeline.cut()
    waits = [asyncio.create_task(child.process.wait()) for child in children]
    if waits:
        await asyncio.wait(waits, timeout=CHILD_END_S)
    for child in children:
        if child.process.returncode is None:
            child.process.kill()
            await child.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.embedded.supervise")
    parser.add_argument("folder")
    parser.add_argument("--lifeline", type=int)
    parser.add_argument("--for", dest="limit_s", type=float, default=DEFAULT_LIMIT_S)
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"  # a user's may leave out /usr/sbin
    layout = read_layout(arguments.folder)
    return run_to_end(supervise(layout, owner_fd=arguments.lifeline, limit_s=arguments.limit_s))


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # everything is ended and written: taking the interpreter apart would only take time
