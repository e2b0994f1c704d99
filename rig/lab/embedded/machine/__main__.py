"""One node's machine: `python -m rig.lab.embedded.machine NODE_FOLDER --lifeline FD`. Ends with its lifeline, and its
node with it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys

from rig.lab.embedded import lifeline as lifelines
from rig.lab.embedded import orphans
from rig.lab.embedded.machine import commands
from rig.lab.embedded.machine.collecting import collect_orphans
from rig.lab.embedded.machine.environment import node_environment
from rig.lab.embedded.machine.exo_process import ExoMain
from rig.lab.embedded.machine.guard import start_guard
from rig.lab.embedded.machine.network import Network
from rig.lab.embedded.machine.packet_filter import PacketFilter
from rig.lab.embedded.machine.shims import write_shims
from rig.lab.embedded.machine.ssh_server import NodeSshServer
from rig.lab.embedded.machine.to_end import run_to_end
from rig.lab.embedded.reap import end_marked
from rig.lab.embedded.settings import NodeSettings, read_settings
from rig.lab.ledger import FilterChanged, Ledger, Stopping


async def run(settings: NodeSettings, lifeline_fd: int) -> int:
    """Serve until the lifeline ends or a signal comes; whatever happens, end every process of the node."""
    orphans.adopt()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    lifelines.watch(lifeline_fd, stop.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    api_port = hold_port(settings.api_port)
    ledger = Ledger(settings.ledger, node=settings.name, process="machine")
    packet_filter = PacketFilter(settings.interface, enabled=settings.system == "linux")
    network = Network(settings, packet_filter)
    note_filter(packet_filter, ledger, settings.name)
    exo = ExoMain(settings, ledger)
    write_shims(settings)
    serving = asyncio.create_task(network.serve())
    collecting = asyncio.create_task(collect_orphans(ledger, settings.name))
    try:
        control = await commands.serve(settings, commands.Commands(settings, network, exo))
        ssh = await NodeSshServer(settings, ledger).listen()
        problem = await exo.start()
        if problem is not None:
            print(f"{settings.name}: {problem}", file=sys.stderr, flush=True)
            return 1
        await start_guard(settings, node_environment(settings))
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
        ssh.close()
        control.close()
        return 0 if waiting.done() else 1
    finally:
        ledger.write(Stopping(t=ledger.now(), node=settings.name, process="machine", pid=os.getpid()))
        serving.cancel()
        collecting.cancel()
        end_marked(settings.marker)
        orphans.collect_all()
        api_port.close()
        ledger.close()


def hold_port(port: int) -> socket.socket:
    """Keep a port for this node while its exo does not run: bound, not listening, so that connections are refused."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", port))
    return held


def note_filter(packet_filter: PacketFilter, ledger: Ledger, node: str) -> None:
    """Write every change of the filter into the ledger."""

    def changed(command: str) -> None:
        ledger.write(
            FilterChanged(
                t=ledger.now(),
                node=node,
                command=command,
                rules=packet_filter.rules(),
                packets=packet_filter.removed_packets,
            )
        )

    packet_filter.changed.append(changed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.embedded.machine")
    parser.add_argument("folder")
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    # Not uvloop: it leaves descriptors open in the processes it starts, and a command in the background would keep its
    # session from ending.
    return run_to_end(run(read_settings(arguments.folder), arguments.lifeline))


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # everything is ended and written: taking the interpreter apart would only take time
