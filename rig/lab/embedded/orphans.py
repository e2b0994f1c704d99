"""Takes in processes whose parent died, so that their end is seen and none stays defunct.

On Linux a process can ask to become the parent of its orphaned descendants. Elsewhere they go to process 1, which
reaps them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable

PR_SET_CHILD_SUBREAPER = 36
AT_ONCE = 256
PATIENCE_S = 5.0


def adopt() -> None:
    """Become the parent of descendants that lose theirs. No effect where that is not possible."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Collector:
    """Reaps adopted processes that have ended: `ended(pid, status)`, status as in the ledger.

    Children that somebody here waits for are left to them. They lead a session each; an adopted process seldom does,
    and one that does is known by nobody having reaped it for `PATIENCE_S`.
    """

    def __init__(self, ended: Callable[[int, int], None]) -> None:
        self._ended = ended
        self._waiting: tuple[int, float] = (0, 0.0)

    def collect(self) -> None:
        """Call it now and then. A defunct process that is left to others hides those behind it until it is reaped."""
        if sys.platform != "linux":
            return
        for _ in range(AT_ONCE):
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or not self._adopted(found.si_pid):
                    return
                _, status = os.waitpid(found.si_pid, 0)
            except (ChildProcessError, ProcessLookupError):
                return
            self._ended(found.si_pid, os.waitstatus_to_exitcode(status))

    def _adopted(self, pid: int) -> bool:
        if os.getsid(pid) != pid:
            return True
        now = time.monotonic()
        if self._waiting[0] != pid:
            self._waiting = (pid, now)
        return now - self._waiting[1] > PATIENCE_S


def collect_all() -> None:
    """At the very end: reap whatever is left to reap."""
    with contextlib.suppress(ChildProcessError):
        for _ in range(AT_ONCE):
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
