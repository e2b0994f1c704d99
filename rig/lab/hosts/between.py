"""What lies between the nodes of a cluster, and how their machines are started in it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rig.lab.embedded.layout import ClusterLayout
from rig.lab.hosts.switch import shield, sweep, switch, unshield


@dataclass(frozen=True)
class Between:
    """`switch_pid` holds the network namespace that joins the nodes; None: they are processes, joined by sockets."""

    switch_pid: int | None

    def machine(self, node_folder: Path) -> list[str]:
        """The module that runs a node, and its arguments."""
        if self.switch_pid is None:
            return ["rig.lab.embedded.machine", str(node_folder)]
        return ["rig.lab.hosts.enter", str(node_folder), "--switch", str(self.switch_pid)]


@asynccontextmanager
async def between(layout: ClusterLayout, *, owned: bool) -> AsyncGenerator[Between]:
    """`owned`: somebody else shields the cluster's subnet for as long as he uses it."""
    if layout.hosts == "processes":
        yield Between(None)
        return
    if not owned:
        shield(layout.subnet, os.getpid())
    try:
        async with switch(layout.subnet) as pid:
            yield Between(pid)
    finally:
        if not owned:
            unshield(layout.subnet, os.getpid())
        sweep()
