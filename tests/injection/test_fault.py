"""One fault at a time against real processes over real SSH. What happened is read with psutil, not from the scripts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading

import psutil
import pytest

from rig.errors import NodeNotReady
from rig.injection.lease import heal_all, leases
from rig.journal.records import ClockOffset, NodeMemory
from rig.nodes.lock import hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from rig.targets.views import Instance
from tests.injection.rigs import MODEL, Rig
from tests.nodes.fakeexo import states
from tests.nodes.servers import until


async def test_freeze(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=2.0).run(asyncio.Event()))
        struck = await rig.journal.reached("struck")
        assert set(states(tree)) == {"stopped"}
        assert await running == "healed"
    assert not {"stopped", "gone"} & set(states(tree))
    assert rig.journal.states() == ["planned", "leased", "struck", "holding", "healed"]
    healed = rig.journal.faults()[-1]
    assert (healed.nodes, healed.processes_hit, healed.hold_s) == (["n1"], ["n1"], 2.0)
    assert 1.9 < healed.at_t - struck.at_t < 2.6
    assert 0 < struck.at_error_s < 0.2
    assert struck.at_t <= struck.t + struck.at_error_s
    assert healed.evidence["controller"] == [
        {"node": "n1", "says": "agrees", "text": f"{len(tree)} of {len(tree)} seen in state T"}
    ]
    assert healed.evidence["n1"]["healed"]["held"] == "1"
    assert [record.node for record in rig.journal.records if isinstance(record, ClockOffset)] == ["n1"]
    assert [record.when for record in rig.journal.records if isinstance(record, NodeMemory)] == ["after fault 3"]


async def test_a_lock_that_was_taken_meanwhile(rig: Rig) -> None:
    """As of a controller that slept: it still believes in its lock when it sends the script."""
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        async with hold_locks(nodes, "a run"):
            lock = rig.rig_dir / "lock"
            new = lock.with_name("lock.new")
            mine = next(line for line in lock.read_text().splitlines() if line.startswith("token="))
            new.write_text(lock.read_text().replace(mine, "token=theirs").replace("run=a run", "run=theirs"))
            new.rename(lock)
            fault = rig.fault(nodes, "freeze", hold_s=0.3)
            assert await fault.run(asyncio.Event()) == "skipped"
            assert "locked by" in fault.reason
            assert "for run theirs" in fault.reason
            assert await leases(nodes) == []
            with pytest.raises(NodeNotReady, match=r"`exo\.start` was not run: this node is locked by"):
                await nodes["n1"].carry_out("start", timeout_s=20.0)
        lock.unlink()
        async with hold_locks(nodes, "a run"):
            assert await rig.fault(nodes, "freeze", hold_s=0.3).run(asyncio.Event()) == "healed"
    assert not {"stopped", "gone"} & set(states(tree))


async def test_crash_and_restart(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        assert await rig.fault(nodes, "node-crash", hold_s=0.5).run(asyncio.Event()) == "healed"
    assert set(states(tree)) == {"gone"}
    new = rig.exo.wait(unlike=tree[0].pid)
    healed = rig.journal.faults()[-1]
    assert healed.evidence["n1"]["healed"]["new_main"].startswith(f"{new.pid}:")
    assert healed.evidence["controller"][0]["says"] == "agrees"


async def test_commands_are_in_no_arguments(rig: Rig) -> None:
    """Every user of a machine can list the arguments of its processes; a start command may hold a token."""
    secrets = {f"{name}-s3cr3t" for name in ("start", "stop", "hold", "release")}
    start = rig.exo.process().start
    commands = {name: f": {name}-s3cr3t; sleep 0.3" for name in ("stop", "hold", "release")}
    exo = rig.exo.process(**commands, start=f": start-s3cr3t; sleep 0.3; {start}")
    seen: set[str] = set()
    rig.tree()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    seen.update(secret for secret in secrets if secret in " ".join(process.cmdline()))

    async with open_nodes(rig.server.inventory(n1=rig.node(process=exo))) as nodes:
        await upload(nodes["n1"])
        watching = asyncio.create_task(asyncio.to_thread(watch))
        try:
            fault = rig.fault(nodes, "node-crash", hold_s=1.0)
            assert (await fault.run(asyncio.Event()), fault.reason) == ("healed", "")
            for which in ("hold", "stop", "release", "start"):
                await nodes["n1"].carry_out(which, timeout_s=30.0)
        finally:
            done.set()
            await watching
    assert seen == set()
    assert (rig.rig_dir.stat().st_mode & 0o777) == 0o700  # leases hold them


async def test_master_crash_finds_the_master(rig: Rig) -> None:
    main = rig.tree()[0]
    async with open_nodes(
        rig.server.inventory(n1=rig.node(), other=rig.node(process=rig.exo.process(home="/nowhere")))
    ) as n:
        await upload(n["n1"])
        fault = rig.fault(n, "master-crash", hold_s=0.2, node=None)
        assert await fault.run(asyncio.Event()) == "healed"
        assert fault.aim is not None
        assert fault.aim.nodes == ("n1",)
    assert states([main]) == ["gone"]


async def test_runner_kill(rig: Rig) -> None:
    main, *children = rig.tree()
    runner = next(child for child in children if "--multiprocessing-fork" in child.cmdline())
    rig.instances = [Instance("i1", MODEL, {"n1": "r1"}, None)]
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        assert await rig.fault(nodes, "runner-kill", 0.0).run(asyncio.Event()) == "healed"
    assert states([runner]) == ["gone"]
    assert states([main])[0] not in ("gone", "stopped")
    last = rig.journal.faults()[-1]
    assert (last.model, last.processes_hit, last.nodes) == (MODEL, [], ["n1"])
    assert last.evidence["controller"][0]["says"] == "agrees"


async def test_stop_heals_within_two_seconds(rig: Rig) -> None:
    tree = rig.tree()
    stop = asyncio.Event()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=60.0).run(stop))
        await rig.journal.reached("holding")
        stop.set()
        await until(lambda: "stopped" not in states(tree), within_s=2.0)
        assert await running == "healed"
        assert await leases(nodes) == []


async def test_cancellation_heals(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=60.0).run(asyncio.Event()))
        await rig.journal.reached("holding")
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()  # impatience changes nothing
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "stopped" not in states(tree)
        assert rig.journal.states()[-1] == "healed"


async def test_ssh_cut_in_mid_fault(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=2.5).run(asyncio.Event()))
        struck = await rig.journal.reached("struck")
        rig.server.kill()
        assert set(states(tree)) == {"stopped"}
        await until(lambda: "stopped" not in states(tree), within_s=2.5 + 2.0)
        rig.server.start()
        assert await running == "healed"
    healed = rig.journal.faults()[-1]
    assert 2.4 < healed.at_t - struck.at_t < 3.2
    assert healed.t - healed.at_t > 0  # learned later than it happened
    assert "lost" in healed.reason
    assert rig.journal.states() == ["planned", "leased", "struck", "holding", "healed"]


async def test_a_killed_script_is_invalid_and_healed(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=60.0).run(asyncio.Event()))
        await rig.journal.reached("holding")
        lease = next((rig.rig_dir / "leases").iterdir()).read_text()
        os.kill(int(lease.partition("script_pid=")[2].split()[0]), signal.SIGKILL)
        assert await running == "invalid"
        assert "KILL" in rig.journal.faults()[-1].reason
        assert "stopped" not in states(tree)
        assert await leases(nodes) == []


async def test_no_answer_in_time_is_unhealed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.injection.act.RELEARN_S", 0.5)
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=0.5).run(asyncio.Event()))
        await rig.journal.reached("struck")
        rig.server.kill()
        assert await running == "unhealed"
        assert "not known" in rig.journal.faults()[-1].reason


async def test_somebody_resumes_it_during_the_hold(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=1.5).run(asyncio.Event()))
        await rig.journal.reached("holding")
        for process in tree:
            process.resume()
        assert await running == "ineffective"


async def test_what_does_nothing_is_ineffective(rig: Rig) -> None:
    """The negative control: a `kill` that does nothing."""
    inert = rig.server.folder / "inert"
    inert.mkdir()
    (inert / "kill").write_text("#!/bin/sh\nexit 0\n")
    (inert / "kill").chmod(0o755)
    tree = rig.tree()
    node = rig.node(path=f"{inert}:/usr/local/bin:/usr/bin:/bin")
    rig.instances = [Instance("i1", MODEL, {"n1": "r1"}, None)]
    async with open_nodes(rig.server.inventory(n1=node)) as nodes:
        await upload(nodes["n1"])
        for kind in ("freeze", "node-crash", "runner-kill"):
            assert await rig.fault(nodes, kind, hold_s=0.3).run(asyncio.Event()) == "ineffective"
    assert not {"stopped", "gone"} & set(states(tree))


async def test_skipped_with_the_reason(rig: Rig) -> None:
    node = rig.node(restart_rehearsed=False)
    async with open_nodes(rig.server.inventory(n1=node, shy=rig.node(faults=False))) as nodes:
        await upload(nodes["n1"])
        for fault, reason in (
            (rig.fault(nodes, "node-crash"), "rehearse-restart"),
            (rig.fault(nodes, "freeze", node="shy"), "allows no faults"),
            (rig.fault(nodes, "runner-kill"), f"no instance of {MODEL}"),
        ):
            assert await fault.run(asyncio.Event()) == "skipped"
            assert reason in rig.journal.faults()[-1].reason
        rig.exo.kill()
        assert await rig.fault(nodes, "freeze", 0.1).run(asyncio.Event()) == "skipped"
        assert rig.journal.faults()[-1].reason


async def test_heal_all_needs_nothing_but_the_node(rig: Rig) -> None:
    tree = rig.tree()
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rig.fault(nodes, "freeze", hold_s=60.0).run(asyncio.Event()))
        await rig.journal.reached("holding")
        async with open_nodes(rig.server.inventory(n1=rig.node())) as others:
            [lease] = await leases(others)
            assert (lease.kind, lease.owner, lease.run, lease.script_alive) == ("freeze", "me@here", "a run", True)
            [healed] = await heal_all(others)
            assert healed.ok
            assert "stopped" not in states(tree)
            assert await leases(others) == []
        with contextlib.suppress(asyncio.CancelledError):
            assert await running == "healed"
