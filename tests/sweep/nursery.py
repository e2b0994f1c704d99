"""Starts controllers quickly: a process that has everything imported and forks one a line of its stdin.

`{"order": {…}}` → `PID`. Its children are processes of their own, in sessions of their own; it collects them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict

from tests.sweep.controller import Order, main


class Nursery:
    """The side of the harness."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sweep.nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, order: Order) -> int:
        """The pid of a new controller."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asdict(order)) + "\n")
        stdin.flush()
        return int(stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects the children
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
            os._exit(main(Order(**json.loads(line))))
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
