"""A command on a terminal of its own: what it shows, what is typed to it, and the terminal being closed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.soak.lane import RIG, clean_environment

_BECOME = (
    "import fcntl, os, sys, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])",
)
WITH_TERMINAL = (sys.executable, "-c", *_BECOME)
"""Makes standard output the controlling terminal of the session it leads, and becomes the command that follows."""


class Reader:
    """Reads a pseudo-terminal, so that who writes is never held up, until it is closed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._stop = threading.Event()
        self._read = bytearray()
        os.set_blocking(number, False)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            try:
                self._read += os.read(self._number, 65536)
            except BlockingIOError:
                continue
            except OSError:
                return

    def text(self) -> str:
        return self._read.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._number, text.encode())

    def close(self) -> None:
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            os.close(self._number)


class Terminal:
    """`rig …` with all its streams on a terminal."""

    def __init__(self, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None) -> None:
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*WITH_TERMINAL, *RIG, *arguments],
            cwd=cwd,
            env=clean_environment() | {"TERM": "xterm-256color"} | dict(environment or {}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.reader = Reader(ours)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.close()
