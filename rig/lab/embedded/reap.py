"""Ends every process of a node or of a cluster, stopped ones too, and proves it: nothing may be left behind.

Processes are found by a marker in their environment, which children inherit, and by the sessions that a machine opened
(some systems hide the environment of system binaries). A process is signalled through a handle that is bound to its
start time, so a pid that was given to somebody else is never hit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil

from rig.lab.embedded.layout import ClusterLayout
from rig.lab.embedded.settings import MARKER

ROUNDS = 40
ROUND_S = 0.05
SAME_START_S = 2.5  # start times count from a boot time in whole seconds, which each process reads for itself


def reap(layout: ClusterLayout) -> list[int]:
    """End all processes of the cluster's nodes and remove its sockets. Returns the pids that would not go (none,
    normally).
    """
    left = end_marked(f"{layout.cluster}/", sessions=recorded_sessions(Path(layout.folder)))
    shutil.rmtree(layout.sockets, ignore_errors=True)
    return left


def end_marked(prefix: str, *, sessions: AbstractSet[tuple[int, float]] = frozenset()) -> list[int]:
    """SIGKILL every process whose marker starts with `prefix`, or of one of `sessions`, until none is found twice."""
    for _ in range(ROUNDS):
        found = [process for process in marked(prefix, sessions=sessions) if process.pid != os.getpid()]
        if not found:
            return []
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(ROUND_S)  # a killed process needs a moment to go; a parent may have forked meanwhile
    return [process.pid for process in marked(prefix, sessions=sessions) if process.pid != os.getpid()]


def marked(prefix: str, *, sessions: AbstractSet[tuple[int, float]] = frozenset()) -> Iterator[psutil.Process]:
    """Living processes of ours. Zombies are gone already; those of other users are none of ours."""
    leaders = dict(sessions)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get(MARKER, "").startswith(prefix) or _in_session(process, leaders):
                yield process


def _in_session(process: psutil.Process, leaders: dict[int, float]) -> bool:
    """Whether it belongs to a session of ours. A pid is not given away while it still is the id of a session, so that a
    leader that is gone leaves its members ours; one that lives must be the one that was recorded."""
    if not leaders:
        return False
    session = os.getsid(process.pid)
    start = leaders.get(session)
    if start is None:
        return False
    try:
        return abs(psutil.Process(session).create_time() - start) < SAME_START_S
    except psutil.NoSuchProcess:
        return True


def record_session(folder: str, pid: int) -> None:
    """Note a session that a machine opened. Only needed where the environment of other processes can be hidden."""
    if sys.platform == "linux":
        return
    with contextlib.suppress(psutil.Error):
        line = f"{pid} {psutil.Process(pid).create_time()}\n"
        with (Path(folder) / "sessions").open("a") as file:
            file.write(line)


def recorded_sessions(cluster_folder: Path) -> set[tuple[int, float]]:
    sessions: set[tuple[int, float]] = set()
    for path in cluster_folder.glob("*/sessions"):
        for line in path.read_text().splitlines():
            pid, _, start = line.partition(" ")
            with contextlib.suppress(ValueError):
                sessions.add((int(pid), float(start)))
    return sessions
