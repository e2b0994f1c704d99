"""exo's main process on an emulated node: `python -m rig.lab.embedded.process NODE_FOLDER --lifeline FD`.

Exit status 1 and "daemon already running" when another one holds the pid file. Ends on SIGTERM and SIGINT as exo does
(open streams are ended first), and at once when its machine is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from rig.lab.embedded.process.api import serve_api
from rig.lab.embedded.process.files import AlreadyRunning, PidFile
from rig.lab.embedded.process.host import Host
from rig.lab.embedded.process.shutdown import shut_down
from rig.lab.embedded.settings import NodeSettings, read_settings
from rig.lab.exo.behaviour import named, timers_for
from rig.lab.exo.defects import changes_of
from rig.lab.ledger import Ledger, Serving, Stopping


async def run(settings: NodeSettings, lifeline_fd: int, pid_file: PidFile) -> int:
    home = Path(settings.exo_home)
    restarted = (home / "exo_log" / "exo.log").exists()
    changes = changes_of(settings.defects, settings.seed)
    behaviour = replace(named(settings.behaviour, settings.seed if settings.habits else None), **changes.behaviour)
    timers = replace(
        timers_for(behaviour, pace=settings.pace, load_s=settings.load_time_s, changes=changes.timers),
        token_s=settings.token_time_s,
    )
    ledger = Ledger(settings.ledger, node=settings.name, process="exo")
    host = Host(settings, ledger, lifeline_fd, behaviour=behaviour, timers=timers, restarted=restarted)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, host.stopped.set)
    loop.set_exception_handler(lambda _, context: die(host, context))
    await host.start()
    runner = await serve_api(host)
    ledger.write(Serving(t=ledger.now(), node=settings.name, pid=os.getpid()))
    pid_file.write()
    spinning = asyncio.create_task(spin()) if behaviour.spin_when_idle else None
    await host.stopped.wait()
    ledger.write(Stopping(t=ledger.now(), node=settings.name, process="exo", pid=os.getpid()))
    if spinning is not None:
        spinning.cancel()
    await shut_down(host, runner)
    return host.status


async def spin() -> None:
    """With the defect of that name: the loop is never idle."""
    while True:  # noqa: ASYNC110 - waiting for an event would be the cure
        await asyncio.sleep(0)


def die(host: Host, context: dict[str, Any]) -> None:
    """An exception that nobody caught ends exo, as it would end the real one, and is seen."""
    error: BaseException | None = context.get("exception")
    if isinstance(error, ConnectionError):
        return  # a client or a peer that went away
    print("EXO terminated due to unhandled exception:", context.get("message"), file=sys.stderr)
    if error is not None:
        traceback.print_exception(error)
    sys.stderr.flush()
    host.log.write(f"EXO terminated due to unhandled exception: {error}")
    host.status = 1
    host.stopped.set()


def end_with(lifeline_fd: int) -> None:
    """A thread of its own, so that a busy event loop cannot delay it."""

    def wait() -> None:
        os.read(lifeline_fd, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.embedded.process")
    parser.add_argument("folder")
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    settings = read_settings(arguments.folder)
    end_with(arguments.lifeline)
    try:
        pid_file = PidFile(Path(settings.exo_home) / "exo.pid")
    except AlreadyRunning:
        print("daemon already running", file=sys.stderr)
        return 1
    return uvloop.run(run(settings, arguments.lifeline, pid_file))


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # everything is ended and written: taking the interpreter apart would only take time
