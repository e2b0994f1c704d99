from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from rig.errors import LeaseError
from rig.nodes.lock import default_owner, hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from tests.nodes.servers import SshServer, boot_id, until


def lock_file(server: SshServer) -> Path:
    return Path(server.node().rig_dir) / "lock"


async def test_one_rig_at_a_time(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes, open_nodes(server.inventory()) as others:
        await upload(nodes["n1"])
        async with hold_locks(nodes, "run a", owner="ann@desk:1") as locks:
            assert "owner=ann@desk:1" in lock_file(server).read_text().splitlines()
            with pytest.raises(LeaseError, match=r"n1: locked by ann@desk:1 for run run a"):
                async with hold_locks(others, "run b", owner="bob@desk:2"):
                    pass
            assert not locks.lost.is_set()
        assert not lock_file(server).exists()
        async with hold_locks(others, "run b", owner="bob@desk:2") as locks:
            assert locks.taken_over == []
        assert [path.name for path in lock_file(server).parent.glob("lock*")] == []


async def test_it_is_renewed_and_its_loss_is_told(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        begun_at = asyncio.get_running_loop().time()
        async with hold_locks(nodes, "run a", ttl_s=1.5) as locks:
            first = lock_file(server).read_text()
            await until(lambda: lock_file(server).read_text() != first)
            taken_at = asyncio.get_running_loop().time()
            lock_file(server).write_text("owner=eve@desk:3\ntoken=other\nboot_id=x\ndeadline=1\n")
            async with asyncio.timeout(5):
                await locks.lost.wait()
            assert "taken by another rig" in locks.reason
            assert begun_at < locks.kept_at < taken_at + 1.0  # by the last renewal, half a second apart
        assert "owner=eve" in lock_file(server).read_text()  # not ours to remove


def expired(server: SshServer, by_s: float = 0.0) -> bool:
    line = next(line for line in lock_file(server).read_text().splitlines() if line.startswith("deadline="))
    return float(Path("/proc/uptime").read_text().split()[0]) > float(line.removeprefix("deadline=")) + by_s


@pytest.mark.parametrize("meanwhile", ["nobody", "another rig"])
async def test_a_node_may_be_silent_for_longer_than_its_lock_lasts(server: SshServer, meanwhile: str) -> None:
    """As one that boots again is. What was done to the lock then is found out when the node speaks again."""
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        async with hold_locks(nodes, "run a", ttl_s=0.6) as locks:
            server.kill()
            await until(lambda: expired(server, by_s=3.0))
            if meanwhile != "nobody":
                lock_file(server).write_text("owner=eve@desk:3\ntoken=other\nboot_id=x\ndeadline=1\n")
            server.start()
            if meanwhile == "nobody":
                await until(lambda: not expired(server))
                assert not locks.lost.is_set()
            else:
                async with asyncio.timeout(20):
                    await locks.lost.wait()
                assert "taken by another rig" in locks.reason


async def test_a_node_that_stays_silent_is_lost(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        async with hold_locks(nodes, "run a", ttl_s=0.6, silent_s=1.0) as locks:
            server.kill()
            async with asyncio.timeout(20):
                await locks.lost.wait()


@pytest.mark.parametrize("stale", ["deadline", "boot", "owner"])
async def test_an_expired_lock_is_taken_over(server: SshServer, stale: str) -> None:
    boot = boot_id()
    host = default_owner().rpartition(":")[0]
    text = {
        "deadline": f"owner=ann@desk:1\nrun=old\ntoken=abc\nboot_id={boot}\ndeadline=1.0\n",
        "boot": "owner=ann@desk:1\nrun=old\ntoken=abc\nboot_id=other\ndeadline=99999999999\n",
        "owner": f"owner={host}:4194303\nrun=old\ntoken=abc\nboot_id={boot}\ndeadline=99999999999\n",
    }[stale]
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        lock_file(server).write_text(text)
        said: list[str] = []
        async with hold_locks(nodes, "new", say=said.append) as locks:
            assert len(locks.taken_over) == 1
            assert "(run old)" in locks.taken_over[0]
            assert said
            assert "run=new" in lock_file(server).read_text().splitlines()


@pytest.mark.parametrize("text", ["", "nonsense\n", "owner=ann@desk:1\ndeadline=soon\n"])
async def test_a_lock_that_cannot_be_understood_binds(server: SshServer, text: str) -> None:
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        lock_file(server).write_text(text)
        with pytest.raises(LeaseError):
            async with hold_locks(nodes, "new"):
                pass
        assert lock_file(server).read_text() == text


async def test_of_many_at_once_one_wins(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"])
        lock_file(server).write_text("owner=a@b:1\nrun=old\ntoken=abc\nboot_id=other\ndeadline=1\n")
        winners: list[int] = []
        together = asyncio.Event()

        async def one(number: int) -> None:
            with contextlib.suppress(LeaseError):
                async with hold_locks(nodes, f"run {number}", owner=f"o@h{number}:1"):
                    winners.append(number)
                    await together.wait()

        tasks = [asyncio.create_task(one(number)) for number in range(5)]
        await until(lambda: sum(task.done() for task in tasks) == 4)
        together.set()
        await asyncio.gather(*tasks)
        assert len(winners) == 1
