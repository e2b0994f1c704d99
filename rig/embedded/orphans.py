"""Takes in processes whose parent died, so that their end is seen and none stays defunct.

On Linux a process can ask to become the parent of its orphaned descendants. Elsewhere they go to process 1, which
reaps them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable

PR_SET_CHILD_SUBREAPER = 36
AT_ONCE = 256


def adopt() -> None:
    """Become the parent of descendants that lose theirs. No effect where that is not possible."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def collect(ended: Callable[[int, int], None]) -> None:
    """Reap adopted processes that have ended: `ended(pid, status)`, status as in the ledger.

    Own children are left alone: they lead a session of their own, which tells them from what was adopted.
    """
    if sys.platform != "linux":
        return
    for _ in range(AT_ONCE):
        with contextlib.suppress(ChildProcessError):
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or os.getsid(found.si_pid) == found.si_pid:
                return
            _, status = os.waitpid(found.si_pid, 0)
            ended(found.si_pid, os.waitstatus_to_exitcode(status))
            continue
        return


def collect_all() -> None:
    """At the very end: reap whatever is left to reap."""
    with contextlib.suppress(ChildProcessError):
        for _ in range(AT_ONCE):
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
