from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.config.inventory import Node
from rig.errors import NodeNotReady, TransportError, UsageError
from rig.nodes.consent import first_contact
from rig.nodes.doctor import Finding, examine, worst
from rig.nodes.lock import hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.rehearse import rehearse, rehearsed
from rig.nodes.upload import upload
from tests.nodes.fakeexo import FakeExo, states
from tests.nodes.servers import SshServer, until


@pytest.fixture
def exo(tmp_path: Path) -> Iterator[FakeExo]:
    exo = FakeExo(tmp_path / "exo", runners=1)
    yield exo
    exo.kill()


async def diagnose(server: SshServer, node: Node, kinds: list[str] | None = None) -> dict[str, Finding]:
    """The worst finding of each check."""
    inventory = server.inventory(n1=node)
    lost: dict[str, TransportError] = {}
    async with open_nodes(inventory, on_unreachable=lambda error: lost.setdefault(error.node, error)) as nodes:
        found = await examine(inventory, nodes, lost, kinds=kinds)
    levels = {"ok": 0, "warn": 1, "fail": 2}
    return {one.check: one for one in sorted(found, key=lambda one: levels[one.level])}


async def test_a_sound_node(server: SshServer, exo: FakeExo) -> None:
    main = exo.start()
    with socket.create_server(("127.0.0.1", 0)) as api:
        url = f"http://127.0.0.1:{api.getsockname()[1]}"
        found = await diagnose(server, server.node(process=exo.process(), api=url, restart_rehearsed=True))
    failed = {check: one.text for check, one in found.items() if one.level == "fail"}
    assert failed == {} if os.getuid() == 0 else set(failed) <= {"packet filter"}
    assert {"ssh", "scripts", "exo", "leases", "disk", "memory", "packet filter", "clock", "restart", "api"} <= set(
        found
    )
    assert f"pid {main.pid}, 1 runners" in found["exo"].text


async def test_a_node_that_is_this_machine(server: SshServer, exo: FakeExo) -> None:
    main = exo.start()
    found = await diagnose(server, server.node(ssh=None, local=True, process=exo.process()))
    assert "ssh" not in found
    assert {check: found[check].level for check in ("local", "scripts", "exo", "clock", "leases")} == dict.fromkeys(
        ("local", "scripts", "exo", "clock", "leases"), "ok"
    )
    assert f"pid {main.pid}" in found["exo"].text


async def test_what_is_wrong_is_said_with_its_remedy(server: SshServer, exo: FakeExo) -> None:
    node = server.node(process=exo.process(start=None), addresses=[])
    found = await diagnose(server, node)
    for check, says in (
        ("exo", "no pid in"),
        ("restart", "how exo is started is not known"),
        ("api", "does not accept connections"),
        ("addresses", "no addresses"),
    ):
        assert found[check].level == "fail"
        assert says in found[check].text
        assert found[check].remedy
    assert worst(found.values()) == "fail"
    fewer = await diagnose(server, node, kinds=["freeze"])
    assert (fewer["restart"].level, fewer["addresses"].level) == ("warn", "warn")


async def test_a_process_that_is_not_exo(server: SshServer, exo: FakeExo) -> None:
    (exo.home / "exo.pid").write_text(str(os.getpid()))
    found = await diagnose(server, server.node(process=exo.process()))
    assert found["exo"].level == "fail"
    assert "not recognised as exo" in found["exo"].text
    assert "exo.match" in found["exo"].remedy
    (exo.home / "exo.pid").write_text("4194303")
    assert "does not run" in (await diagnose(server, server.node(process=exo.process())))["exo"].text


async def test_stopped_processes_and_a_foreign_lock(server: SshServer, exo: FakeExo) -> None:
    main = exo.start()
    main.suspend()
    node = server.node(process=exo.process())
    async with open_nodes(server.inventory(n1=node)) as nodes:
        await upload(nodes["n1"])
        async with hold_locks(nodes, "a run", owner="ann@desk:1"):
            found = await diagnose(server, node)
    assert "stopped" in found["exo"].text
    assert "locked by ann@desk:1 for run a run" in found["lock"].text
    main.resume()


async def test_unreachable_and_unwritable(server: SshServer, tmp_path: Path) -> None:
    lost = await diagnose(server, server.node(ssh=server.ssh(key="/nonexistent/key")))
    assert set(lost) == {"ssh"}
    assert lost["ssh"].text == "key file /nonexistent/key does not exist"
    (tmp_path / "file").touch()
    unwritable = await diagnose(server, server.node(rig_dir=str(tmp_path / "file")))
    assert set(unwritable) == {"ssh", "scripts"}
    assert unwritable["scripts"].level == "fail"


async def test_a_rehearsal_restarts_and_is_remembered(server: SshServer, exo: FakeExo) -> None:
    before = exo.start()
    inventory = server.inventory(n1=server.node(process=exo.process()))
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        assert await rehearsed(nodes) == frozenset()
        after = await rehearse(nodes["n1"], lambda text: None)
        assert after.pid == exo.wait(unlike=before.pid).pid
        assert states([before]) == ["gone"]
        assert await rehearsed(nodes) == {"n1"}
    changed = server.inventory(n1=server.node(process=exo.process(start="other")))
    async with open_nodes(changed) as nodes:
        assert await rehearsed(nodes) == frozenset()  # that command was never tried


async def test_a_rehearsal_that_fails_is_not_remembered(
    server: SshServer, exo: FakeExo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.nodes.rehearse.START_LIMIT_S", 0.5)
    exo.start()
    inventory = server.inventory(n1=server.node(process=exo.process(start="true")))
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        with pytest.raises(Exception, match="no new main process"):
            await rehearse(nodes["n1"], lambda text: None)
        assert await rehearsed(nodes) == frozenset()


async def test_a_rehearsal_brings_an_exo_back_that_does_not_end(
    server: SshServer, exo: FakeExo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed, as a crash would do it, started again, and both are said; such a restart is not remembered."""
    monkeypatch.setattr("rig.nodes.rehearse.STOP_LIMIT_S", 0.5)
    before = exo.start()
    said: list[str] = []
    inventory = server.inventory(n1=server.node(process=exo.process(stop="true")))  # which ends nothing
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        with pytest.raises(
            NodeNotReady, match=r"did not end within 0\.5 s of `exo\.stop`: it was killed, and runs again"
        ):
            await rehearse(nodes["n1"], said.append)
        assert await rehearsed(nodes) == frozenset()
    assert states([before]) == ["gone"]
    assert exo.wait(unlike=before.pid).is_running()
    assert any("killing it" in line for line in said)


@pytest.mark.parametrize("what", ["start fails", "stop fails"])
async def test_a_rehearsal_says_how_it_leaves_a_node(
    server: SshServer, exo: FakeExo, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("rig.nodes.rehearse.START_LIMIT_S", 5.0)
    monkeypatch.setattr("rig.nodes.rehearse.KILL_LIMIT_S", 0.2)
    before = exo.start()
    commands = {"start": "exit 9"} if what == "start fails" else {"stop": "exit 9"}
    said: list[str] = []
    async with open_nodes(server.inventory(n1=server.node(process=exo.process(**commands)))) as nodes:
        await upload(nodes["n1"])
        with pytest.raises(NodeNotReady) as refused:
            await rehearse(nodes["n1"], said.append)
    if what == "start fails":
        assert "exo is DOWN there" in str(refused.value)
        assert "n1: exo is DOWN: run `exo.start` by hand" in said
    else:
        assert "`exo.stop` ended with status 9" in str(refused.value)
        assert f"n1: the exo of before runs still (pid {before.pid})" in said
        assert before.is_running()


async def test_a_rehearsal_that_is_interrupted_starts_exo_again(server: SshServer, exo: FakeExo) -> None:
    before = exo.start()
    stopping = exo.folder / "stopping"
    stop = f"kill -TERM $(cat '{exo.home}/exo.pid'); touch '{stopping}'; exec sleep 30"
    async with open_nodes(server.inventory(n1=server.node(process=exo.process(stop=stop)))) as nodes:
        await upload(nodes["n1"])
        running = asyncio.create_task(rehearse(nodes["n1"], lambda text: None))
        await until(lambda: stopping.exists() and states([before]) == ["gone"])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert exo.wait(unlike=before.pid).is_running()


async def test_first_contact_names_and_asks(server: SshServer, exo: FakeExo) -> None:
    main = exo.start()
    said: list[str] = []
    inventory = server.inventory(
        n1=server.node(process=exo.process()), shy=server.node(process=exo.process(), faults=False)
    )
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        named = await first_contact(nodes, yes=False, say=said.append, answer=lambda: "y")
        assert set(named) == {"n1"}
        assert {line.split()[0] for line in named["n1"]} == {str(one.pid) for one in exo.tree()}
        assert str(main.pid) in said[0]
        assert "never: shy" in said[0]
        assert await first_contact(nodes, yes=True, say=said.append) == named
        for answer in ("", "n", "maybe"):
            with pytest.raises(UsageError, match="did not agree"):
                await first_contact(nodes, yes=False, say=said.append, answer=lambda answer=answer: answer)
        with pytest.raises(UsageError, match="not a terminal"):
            await first_contact(nodes, yes=False, say=said.append)
    os.kill(main.pid, signal.SIGCONT)
