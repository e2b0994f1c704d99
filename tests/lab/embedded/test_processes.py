"""exo's processes are real: killed, stopped and started with real signals, over SSH, by what node scripts use."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import psutil
import pytest

from rig.lab.embedded.sampler import ProcessSeen, read_samples
from rig.lab.ledger import ProcessExited, ProcessStarted, read_ledger

pytestmark = pytest.mark.asyncio
A, B = "lab/tiny-a", "lab/tiny-b"


def tree(pid: int) -> list[psutil.Process]:
    main = psutil.Process(pid)
    return [main, *main.children(recursive=True)]


def runners(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if "spawn_main" in " ".join(p.cmdline())]


async def test_the_process_tree_looks_like_exos(cluster: Any) -> None:
    await cluster.deploy(B, min_nodes=2)
    _, instances = await cluster.get("node-1", "/state/instances")
    ids = {name: (await cluster.get(name, "/node_id"))[1] for name in cluster.layout.nodes}
    (instance,) = [i["MlxRingInstance"] for i in instances.values() if B in str(i)]
    hosting = [name for name, node_id in ids.items() if node_id in instance["shardAssignments"]["nodeToRunner"]]
    assert len(hosting) == 2
    for name in hosting:
        pid = cluster.main_pid(name)
        main, *children = tree(pid)
        commands = [" ".join(child.cmdline()) for child in children]
        assert "-m rig.lab.embedded.process" in " ".join(main.cmdline())
        assert os.getsid(pid) == pid
        assert sum("multiprocessing.resource_tracker" in command for command in commands) == 1
        found = [p for p in children if "--multiprocessing-fork" in " ".join(p.cmdline())]
        assert found
        assert all(p.memory_info().rss < 16_000_000 for p in found)
        pids = ",".join(str(p.pid) for p in found)
        done = await cluster.ssh(name, f"lsof -nP -a -p {pids} -iTCP -Fpn")
        assert f"n*:{instance['ephemeralPort']}" in done.out.splitlines()


async def test_only_the_master_holds_the_master_log_open(cluster: Any, until: Any) -> None:
    """In the first seconds every node does; then one."""

    def holders() -> list[str]:
        return [
            name
            for name in cluster.layout.nodes
            if any("event_log/master/events.bin" in f.path for f in psutil.Process(cluster.main_pid(name)).open_files())
        ]

    await until(lambda: len(holders()) == 1, what="one master")
    log = (cluster.node_folder(holders()[0]) / "exo" / "exo_log" / "exo.log").read_text()
    last = [line for line in log.splitlines() if "lected" in line][-1]
    assert "self" in last
    assert "demoting" not in last


async def test_a_second_start_is_refused(cluster: Any) -> None:
    before = cluster.main_pid("node-1")
    done = await cluster.ssh("node-1", "exo-start")
    assert done.status == 1
    assert "daemon already running" in done.err
    assert cluster.main_pid("node-1") == before
    assert psutil.Process(before).is_running()


async def test_a_killed_node_leaves_and_returns(cluster: Any, until: Any) -> None:
    await cluster.deploy(A)
    pid = cluster.main_pid("node-2")
    old_id = (await cluster.get("node-2", "/node_id"))[1]
    pids = [p.pid for p in tree(pid)]
    await cluster.ssh("node-2", f"kill -KILL {' '.join(str(p) for p in pids)}")
    await until(lambda: not any(psutil.pid_exists(p) for p in pids), what="nothing left of the tree", within_s=3)
    await until(lambda: cluster.whole(["node-1", "node-3"]), what="the others go on without it")
    logs = len(list((cluster.node_folder("node-2") / "exo" / "exo_log").glob("exo*.log")))
    assert (await cluster.ssh("node-2", "exo-start")).status == 0
    await until(cluster.whole, what="it is back")
    assert (await cluster.get("node-2", "/node_id"))[1] != old_id
    assert len(list((cluster.node_folder("node-2") / "exo" / "exo_log").glob("exo*.log"))) == min(logs + 1, 6)
    await until(lambda: cluster.serving(A), what="served again")
    exits = [e for e in read_ledger(cluster.folder) if isinstance(e, ProcessExited) and e.pid == pid]
    assert [(e.role, e.status) for e in exits] == [("main", -signal.SIGKILL)]


async def test_a_frozen_node_keeps_its_connections_and_says_nothing(cluster: Any, until: Any) -> None:
    pid = cluster.main_pid("node-3")
    await cluster.ssh("node-3", f"kill -STOP {pid}")
    try:
        assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
        assert (await cluster.ssh("node-1", "nc -z -w 1 10.77.0.3 52415")).status == 0  # the kernel still accepts
        with pytest.raises(TimeoutError):
            await cluster.get("node-3", "/node_id", timeout_s=0.3)
        await until(lambda: cluster.whole(["node-1", "node-2"]), what="the others go on without it")
    finally:
        await cluster.ssh("node-3", f"kill -CONT {pid}")
    await until(cluster.whole, what="it is back")
    seen = [s.state for s in read_samples(cluster.folder) if isinstance(s, ProcessSeen) and s.pid == pid]
    assert "T" in seen
    assert seen[-1] == "S"


async def test_a_killed_runner_is_replaced_in_its_instance(cluster: Any, until: Any) -> None:
    await cluster.deploy(A)
    before = set((await cluster.get("node-1", "/state/instances"))[1])
    found = {name: runners(tree(cluster.main_pid(name))) for name in cluster.layout.nodes}
    ledger = [e for e in read_ledger(cluster.folder) if isinstance(e, ProcessStarted) and A in e.detail]
    of_model = {e.pid for e in ledger}
    name, victim = next((name, p) for name, processes in found.items() for p in processes if p.pid in of_model)
    await cluster.ssh(name, f"kill -KILL {victim.pid}")
    await until(lambda: not victim.is_running() or victim.status() == "zombie", what="it is gone", within_s=2)

    async def again() -> bool:
        return await cluster.serving(A) and len(runners(tree(cluster.main_pid(name)))) >= len(found[name])

    await until(again, what="served again by a new runner")
    assert set((await cluster.get("node-1", "/state/instances"))[1]) == before
    assert psutil.Process(cluster.main_pid(name)).is_running()


async def test_a_polite_stop_ends_the_tree(cluster: Any, until: Any) -> None:
    pids = [p.pid for p in tree(cluster.main_pid("node-1"))]
    assert (await cluster.ssh("node-1", "exo-stop")).status == 0
    await until(lambda: not any(psutil.pid_exists(p) for p in pids), what="nothing left of the tree", within_s=3)
    assert (await cluster.ssh("node-1", "exo-start")).status == 0
    await until(cluster.whole, what="it is back")


@pytest.mark.parametrize(("behaviour", "stay"), [("sound", False), ("exo-0.3.70", True)])
async def test_orphans_of_a_killed_main(start: Any, until: Any, behaviour: str, *, stay: bool) -> None:
    """exo 0.3.70 leaves its runners behind, holding their memory."""
    own = await start(behaviour=behaviour)
    await own.deploy(A)
    main, *children = tree(own.main_pid("node-1"))
    assert len(children) == 2
    main.kill()
    await until(lambda: not main.is_running() or main.status() == "zombie", what="main is gone", within_s=2)
    if stay:
        await asyncio.sleep(0.5)  # long enough for what would end
        assert all(child.is_running() and child.status() != "zombie" for child in children)
        assert (await own.ssh("node-1", "exo-start")).status == 0
        assert all(child.is_running() for child in children)
    else:
        await until(
            lambda: all(not c.is_running() or c.status() == "zombie" for c in children),
            what="they are gone",
            within_s=2,
        )


async def test_inert_commands_do_nothing(start: Any) -> None:
    """The negative control: `kill` and the packet filter say that all is well and have no effect."""
    own = await start(inert=frozenset({"kill", "nft"}))
    pid = own.main_pid("node-1")
    assert (await own.ssh("node-1", f"env kill -s KILL {pid}")).status == 0
    assert (await own.ssh("node-1", "nft -f /nonexistent")).status == 0
    assert psutil.Process(pid).is_running()
    assert (await own.ssh("node-1", "nft list tables")).out == ""
