"""Start an embedded cluster and end it: the side of whoever owns it (`rig soak`, `rig cluster up`, a test).

The owner starts one process, `rig.lab.embedded.supervise`, which starts and watches everything else, and holds a
lifeline to it: when the owner dies the supervisor waits for the leases on the nodes (at most a minute) and ends
everything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from rig.config.inventory import Embedded, Inventory
from rig.config.target_fields import inventory_from
from rig.errors import ClusterError
from rig.lab.embedded.layout import ClusterLayout
from rig.lab.embedded.lifeline import Lifeline
from rig.lab.embedded.prepare import prepare
from rig.lab.embedded.ready import wait_until_ready
from rig.lab.embedded.reap import reap
from rig.lab.hosts.switch import shield, unshield

READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `lost` is set, with the reason in `lost_reason()`, when it ended without being told to."""

    inventory: Inventory
    folder: Path
    behaviour: str
    pace: float
    ledger_path: Path
    samples_path: Path
    supervisor_pid: int
    lost: asyncio.Event

    def lost_reason(self) -> str:
        return log_tail(self.folder)


@asynccontextmanager
async def start_cluster(
    spec: Embedded, folder: Path, *, inert: frozenset[str] = frozenset()
) -> AsyncGenerator[Cluster]:
    """A cluster that serves its API, has a master, and whose views all list all nodes; ended on leaving.

    `folder` gets `inventory.yaml`, usable by every rig command. `inert` names commands that do nothing on the nodes
    (kill, nft, pfctl). Raises ClusterError when it does not come up within a minute.
    """
    layout = await asyncio.to_thread(prepare, spec, folder, inert=inert)
    folder = Path(layout.folder)
    if layout.hosts == "namespaces":
        shield(layout.subnet, os.getpid())
    lifeline = Lifeline()
    process = await spawn_supervisor(layout, lifeline=lifeline)
    lost = asyncio.Event()
    watcher = asyncio.create_task(_watch(process, lost))
    try:
        inventory = load_own_inventory(folder)
        await come_up(inventory, lost, folder)
        yield Cluster(
            inventory=inventory,
            folder=folder,
            behaviour=layout.behaviour,
            pace=layout.pace,
            ledger_path=folder / "ledger",
            samples_path=folder / "samples.jsonl",
            supervisor_pid=process.pid,
            lost=lost,
        )
    finally:
        watcher.cancel()
        await end_supervisor(process)
        lifeline.cut()
        await asyncio.to_thread(reap, layout)
        if layout.hosts == "namespaces":
            unshield(layout.subnet, os.getpid())


def load_own_inventory(folder: Path) -> Inventory:
    return inventory_from(yaml.safe_load((folder / "inventory.yaml").read_text()))


async def spawn_supervisor(
    layout: ClusterLayout, *, lifeline: Lifeline | None, limit_s: float | None = None
) -> asyncio.subprocess.Process:
    """With a lifeline it ends with its owner; without one it is a daemon that ends after `limit_s` seconds."""
    arguments = [sys.executable, "-m", "rig.lab.embedded.supervise", layout.folder]
    if lifeline is not None:
        arguments += ["--lifeline", str(lifeline.read_fd)]
    if limit_s is not None:
        arguments += ["--for", str(limit_s)]
    with (Path(layout.folder) / "cluster.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=() if lifeline is None else (lifeline.read_fd,),
            start_new_session=True,  # Ctrl-C at the terminal is the owner's to handle, in its order
        )
    if lifeline is not None:
        lifeline.release()
    return process


async def end_supervisor(process: asyncio.subprocess.Process) -> None:
    """SIGTERM, and SIGKILL after `END_TIMEOUT_S`."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        process.send_signal(number)
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            continue


async def _watch(process: asyncio.subprocess.Process, lost: asyncio.Event) -> None:
    await process.wait()
    lost.set()


async def come_up(inventory: Inventory, lost: asyncio.Event, folder: Path) -> None:
    """Returns when the cluster is ready; raises ClusterError when it ended or took too long."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    ready = asyncio.create_task(wait_until_ready(inventory, deadline=deadline))
    ended = asyncio.create_task(lost.wait())
    try:
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise ClusterError(f"the embedded cluster ended while it was starting: {log_tail(folder)}")
        await ready
    finally:
        for task in (ready, ended):
            task.cancel()


def log_tail(folder: Path, *, lines: int = 3) -> str:
    """The last lines of the cluster's own log, for an error message."""
    try:
        text = (folder / "cluster.log").read_text(errors="replace")
    except OSError as error:
        return f"no log: {error}"
    return " | ".join(text.strip().splitlines()[-lines:]) or f"nothing in {folder / 'cluster.log'}"
