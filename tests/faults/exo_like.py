"""A real process tree that looks like exo to the node scripts: main, resource tracker and three runners.

Run as `python …/exo_like.py HOME [RUNNERS [RING_PORT…]]`. The pid file is written last. With ring ports, runner N
listens on the Nth of them. Everything ends by itself after two minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

_LIFE_S = 120
_SLEEP = f"import time; time.sleep({_LIFE_S + 5})"
_LISTEN = f"""
import socket, sys, time
port = int(sys.argv[1]) if sys.argv[1] != '-' else 0
if port:
    ring = socket.create_server(('127.0.0.1', port))
time.sleep({_LIFE_S + 5})
"""


def main() -> None:
    home = sys.argv[1]
    runners = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    ports = [*sys.argv[3:], *["-"] * runners][:runners]
    python = [sys.executable, "-S", "-E", "-c"]
    children = [subprocess.Popen([*python, _SLEEP, "from multiprocessing.resource_tracker import main;main(6)"])]
    children += [
        subprocess.Popen([*python, _LISTEN, port, "multiprocessing.spawn import spawn_main", "--multiprocessing-fork"])
        for port in ports
    ]
    new = f"{home}/exo.pid.new"
    with open(new, "w") as file:
        file.write(str(os.getpid()))
    os.rename(new, f"{home}/exo.pid")
    end = time.monotonic() + _LIFE_S
    while time.monotonic() < end:
        time.sleep(0.05)
        for child in children:
            child.poll()


main()
