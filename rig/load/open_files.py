"""Room for connections: a shell's default limit of open files (256 on macOS) is below what a large load needs."""

from __future__ import annotations

import resource

from rig.errors import UsageError

_BESIDES = 128  # the rig's own: journal, log files, SSH connections, what libraries open


def allow_open_files(connections: int) -> None:
    """Raise this process's soft limit so that so many connections fit. Raises UsageError when the hard one forbids."""
    needed = connections + _BESIDES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{connections} connections at once need {needed} open files, the limit is {soft} (hard limit {hard})",
            remedy="raise it with `ulimit -n`, or ask for fewer: `clients`, in open loop `arrivals.max_concurrency`",
        ) from error
