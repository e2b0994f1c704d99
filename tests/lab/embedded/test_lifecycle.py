"""Nothing is left behind, whatever dies first; and a cluster without its owner waits for the leases on its nodes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from rig.config.inventory import Embedded
from rig.config.read import load_inventory
from rig.errors import ClusterError
from rig.lab.embedded.cluster import start_cluster
from rig.lab.embedded.prepare import prepare, read_layout
from rig.lab.embedded.reap import end_marked

pytestmark = pytest.mark.asyncio
DAEMON = "perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec qw(sleep 300)' </dev/null >/dev/null 2>&1 &"
ENDS_WITHIN_S = 3.0  # 2 s on an idle machine


async def leave_traces(own: Any) -> None:
    """A stopped main, a process that daemonised itself out of its session, and a command in flight."""
    await own.ssh(
        "node-1", "perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec qw(sleep 300)' </dev/null >/dev/null 2>&1 &"
    )
    await own.ssh("node-1", "sleep 301 </dev/null >/dev/null 2>&1 &")
    os.kill(own.main_pid("node-1"), signal.SIGSTOP)


def left(own: Any) -> list[str]:
    return [str(p.pid) for p in [*own.processes(), *own.own_processes()] if p.pid != os.getpid()]


def sockets_gone(own: Any) -> bool:
    return not Path(own.layout.sockets).exists()


async def test_death_of_the_supervisor_ends_everything(start: Any, until: Any) -> None:
    own = await start()
    await leave_traces(own)
    await until(lambda: len(own.processes()) >= 4, what="its processes", within_s=ENDS_WITHIN_S)
    own.supervisor.kill()
    own.supervisor.wait(5)
    await until(lambda: not left(own), what="nothing left", within_s=ENDS_WITHIN_S)
    assert sockets_gone(own)


async def test_death_of_a_machine_ends_everything(start: Any, until: Any) -> None:
    own = await start()
    await leave_traces(own)
    own.machine("node-1").kill()
    await until(lambda: not left(own), what="nothing left", within_s=ENDS_WITHIN_S)
    assert own.supervisor.wait(5) == 1
    assert "node-1 ended by itself" in (own.folder / "cluster.log").read_text()


async def test_a_polite_end(start: Any, until: Any) -> None:
    own = await start()
    await leave_traces(own)
    begin = time.monotonic()
    own.supervisor.terminate()
    assert own.supervisor.wait(5) == 0
    assert time.monotonic() - begin < ENDS_WITHIN_S
    assert left(own) == []
    assert not (own.folder / "state.json").exists()


async def test_without_its_owner_it_waits_for_leases(start: Any, until: Any) -> None:
    """So that a node can be seen to heal by itself after the death of the controller."""
    own = await start()
    leases = Path(own.inventory.nodes["node-1"].rig_dir) / "leases"
    leases.mkdir(parents=True)
    (leases / "f1").write_text("version=1\n")
    own.lifeline.cut()
    await asyncio.sleep(0.6)
    assert own.supervisor.is_running()
    assert own.supervisor.status() != psutil.STATUS_ZOMBIE
    assert own.processes()
    (leases / "f1").unlink()
    await until(lambda: not left(own), what="it ends with the last lease", within_s=ENDS_WITHIN_S)


async def test_start_cluster_gives_an_inventory_for_every_command(tmp_path: Path) -> None:
    async with start_cluster(Embedded(pace=20, nodes=2), tmp_path / "c") as cluster:
        inventory = load_inventory(str(cluster.folder / "inventory.yaml"))
        assert inventory == cluster.inventory
        assert list(inventory.nodes) == ["node-1", "node-2"]
        assert inventory.emulated is not None
        assert (inventory.emulated.pace, inventory.emulated.behaviour) == (20, "sound")
        assert all(node.restart_rehearsed for node in inventory.nodes.values())
        layout = read_layout(cluster.folder)
        with pytest.raises(ClusterError, match="already holds"):
            prepare(Embedded(), cluster.folder)
    assert end_marked(f"{layout.cluster}/") == []
    assert (cluster.folder / "ledger").exists()


async def test_a_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="inert"):
        async with start_cluster(Embedded(), tmp_path / "c", inert=frozenset({"rm"})):
            pass
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="cannot lay out"):
        async with start_cluster(Embedded(), tmp_path / "file"):
            pass
