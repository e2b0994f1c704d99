"""The machine of a node in namespaces: the first process of the node, from boot to the end of that boot.

    python -m rig.lab.hosts.machine NODE_FOLDER --lifeline FD

It mounts what a boot mounts, runs OpenSSH and exo, answers the node's commands, and when it ends the kernel ends every
process of the node. Exit status `REBOOT_STATUS`: the node is to be booted again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from rig.errors import ClusterError
from rig.lab.embedded import lifeline as lifelines
from rig.lab.embedded import orphans
from rig.lab.embedded.machine.answering import Answering
from rig.lab.embedded.machine.collecting import collect_orphans
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.to_end import run_to_end
from rig.lab.embedded.settings import NodeSettings, read_settings
from rig.lab.hosts import root, sshd
from rig.lab.hosts.enter import REBOOT_STATUS
from rig.lab.hosts.system import furnish, system_of
from rig.lab.ledger import Ledger, Stopping

MOST_BETWEEN_NODES = 20_000
DOWN_S = 0.5  # what a node gets to end before the power goes


async def run(settings: NodeSettings, lifeline_fd: int) -> int:
    loop = asyncio.get_running_loop()
    stop, reboot = asyncio.Event(), asyncio.Event()
    lifelines.watch(lifeline_fd, stop.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    ledger = Ledger(settings.ledger, node=settings.name, process="machine")
    exo = ExoMain(settings, ledger)
    system = system_of(settings, ledger, exo, lambda: loop.call_later(DOWN_S, reboot.set))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(settings.control_socket)
    server = await Answering(system.handlers()).serve(settings.control_socket)
    background = [
        asyncio.create_task(collect_orphans(ledger, settings.name)),
        asyncio.create_task(sshd.serve(settings)),
        asyncio.create_task(system.run()),
    ]
    try:
        problem = await system.boot()
        if problem is not None:
            print(f"{settings.name}: {problem}", file=sys.stderr, flush=True)
            return 1
        return await _until_end(stop, reboot, background)
    finally:
        ledger.write(Stopping(t=ledger.now(), node=settings.name, process="machine", pid=os.getpid()))
        server.close()
        for task in background:
            task.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # everything but this, the first process of its namespace
        orphans.collect_all()
        ledger.close()


async def _until_end(stop: asyncio.Event, reboot: asyncio.Event, background: list[asyncio.Task[None]]) -> int:
    stopping, rebooting = asyncio.create_task(stop.wait()), asyncio.create_task(reboot.wait())
    done, _ = await asyncio.wait({stopping, rebooting, *background}, return_when=asyncio.FIRST_COMPLETED)
    if stopping in done:
        return 0
    if rebooting in done:
        return REBOOT_STATUS
    for task in background:
        if task.done():
            print(f"a part of the machine ended: {task.exception()!r}", file=sys.stderr, flush=True)
    return 1


def number_from(index: int) -> None:
    """Let pids of different nodes differ, as between machines: accounts that name a pid alone stay clear.
    Not every kernel can.
    """
    folder = Path("/proc/sys/kernel")
    with contextlib.suppress(OSError, ValueError):
        step = min(MOST_BETWEEN_NODES, int((folder / "pid_max").read_text()) // 20)
        (folder / "ns_last_pid").write_text(str(index * step))


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.hosts.machine")
    parser.add_argument("folder")
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    settings = read_settings(arguments.folder)
    try:
        root.mount_boot(settings)
        furnish(settings)
        number_from(settings.index)
    except (ClusterError, OSError) as error:
        print(f"{settings.name}: {error}", file=sys.stderr, flush=True)
        return 1
    # How others find this node's processes from outside.
    Path(settings.folder, "pid_namespace").write_text(f"{os.stat('/proc/self/ns/pid').st_ino}\n")
    return run_to_end(run(settings, arguments.lifeline))


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)
