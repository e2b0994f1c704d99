"""A signal ends everything that the command started, and nothing else: workers by their pid, each with its own rig.

The command that is told (SIGINT, SIGTERM, SIGHUP) starts nothing more and sends SIGTERM to its workers. A worker that
plays a simulation ends at once. One that waits for a rig tells it in turn, which heals and ends its cluster, and then
ends. Whoever does not end in time is killed. What they wrote for the moment is in a folder of the command's.
"""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import FrameType
from typing import BinaryIO, Final

_LOOK_S: Final = 0.2  # for a signal
_RIG_ENDS_S: Final = 60.0  # a soak that is told heals, drains shortly, reports and ends its cluster
_WORKER_ENDS_S: Final = _RIG_ENDS_S + 15.0
_TOLD: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Context manager: `number` is the first signal that came meanwhile, None as long as there was none.

    What was ignored before stays ignored; the handlers are put back afterwards.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before = {one: signal.getsignal(one) for one in _TOLD}

    @property
    def status(self) -> int:
        """To exit with, as a shell says it of a process that a signal ended."""
        return 128 + (self.number or 0)

    def _tell(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = self.number or number

    def __enter__(self) -> Ending:
        for one, before in self._before.items():
            if before is not signal.SIG_IGN:
                signal.signal(one, self._tell)
        return self

    def __exit__(self, *error: object) -> None:
        for one, before in self._before.items():
            signal.signal(one, before)


def in_worker(scratch: str) -> None:
    """Called first in each worker. A terminal tells the command alone, and the command its workers."""
    tempfile.tempdir = scratch
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_workers() -> None:
    """Tell every worker of this process and wait for its end; what is still there after 75 s is killed."""
    workers = multiprocessing.active_children()
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + _WORKER_ENDS_S
    for worker in workers:
        worker.join(max(until - time.monotonic(), 0.0))
        if worker.is_alive():
            worker.kill()


def call(command: Sequence[str], output: BinaryIO, limit_s: float) -> int:
    """Run a command to its end and return its status. Raises TimeoutError when that is not within `limit_s`.

    At the limit, and when this process is told to end, the command is told by SIGTERM, and killed when it has not
    ended in 60 s. Then this process ends by the signal that it was told by.
    """
    until = time.monotonic() + limit_s
    with (
        Ending() as ending,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        while not _ended(process, _LOOK_S):
            if ending.number is not None or time.monotonic() > until:
                process.terminate()
                if not _ended(process, _RIG_ENDS_S):
                    process.kill()
                break
        status = process.wait()
    if ending.number is not None:
        signal.raise_signal(ending.number)
    if time.monotonic() > until:
        raise TimeoutError
    return status


def _ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True
