"""A process of a node in namespaces has two pids: its own on the node, which exo, its pid file and every account of the
rig name, and another one outside, by which it can be looked at.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from rig.lab.embedded.layout import ClusterLayout


class _Boot(NamedTuple):
    """A node's process namespace; its number may be that of an earlier boot again."""

    namespace: int
    written_ns: int


class NodePids:
    """From one to the other. Of a cluster without namespaces both are the same."""

    def __init__(self, layout: ClusterLayout) -> None:
        self._layout = layout
        self._apart = layout.hosts == "namespaces"
        self._outside: dict[tuple[_Boot, int], int] = {}  # by boot and pid on the node
        self._gone: set[tuple[_Boot, int]] = set()  # a pid is not given away again in the life of so small a namespace

    def outside(self, node: str, pid: int) -> int | None:
        """The pid to look at; None when no such process is on the node now."""
        if not self._apart:
            return pid
        boot = self._boot(node)
        namespace = boot.namespace
        if (boot, pid) in self._gone:
            return None
        known = self._outside.get((boot, pid))
        if known is not None:
            if _namespace_of(known) == namespace and on_node(known) == pid:
                return known
            self._gone.add((boot, pid))
            return None
        for entry in os.listdir("/proc"):
            if entry.isdigit() and _namespace_of(int(entry)) == namespace and on_node(int(entry)) == pid:
                self._outside[boot, pid] = int(entry)
                return int(entry)
        return None

    def on_node(self, outside: int) -> int:
        """The pid that the node knows a process by; the same number when it is gone."""
        return (on_node(outside) or outside) if self._apart else outside

    def _boot(self, node: str) -> _Boot:
        path = self._layout.node_folder(node) / "pid_namespace"
        try:
            return _Boot(int(path.read_text()), path.stat().st_mtime_ns)
        except (OSError, ValueError):
            return _Boot(-1, 0)


def on_node(outside: int) -> int | None:
    """The innermost pid of a process, or None."""
    try:
        for line in Path(f"/proc/{outside}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except OSError:
        pass
    return None


def _namespace_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return 0
