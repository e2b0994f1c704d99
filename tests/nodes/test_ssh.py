"""What only SSH does, against real servers: its failures told apart, and reconnects. The rest is in test_contract."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from rig.config.inventory import Node
from rig.errors import CommandFailed, CommandTimeout, HostKeyError, SshError
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.ssh import SshNode
from rig.nodes.stream import LINE_LIMIT_BYTES, Lines
from tests.nodes.servers import SshServer


def dials(nodes: ShellNodes) -> int:
    node = nodes["n1"]
    assert isinstance(node, SshNode)
    return node.dials


async def test_deadline(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        with pytest.raises(CommandTimeout) as timeout:
            await nodes["n1"].run("sleep 20", timeout_s=0.3)
        assert not isinstance(timeout.value, SshError)
        assert (await nodes["n1"].run("echo on")).stdout == "on\n"
        assert dials(nodes) == 1  # the connection outlives a command that hangs


async def test_connection_cut_in_a_command(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        async with nodes["n1"].stream("echo $$; exec sleep 30", timeout_s=60) as stream:
            lines = stream.lines()
            pid = int(await anext(lines))
            waiting = asyncio.create_task(nodes["n1"].run("sleep 30", timeout_s=60))
            await nodes["n1"].run("true")
            each_server.kill()
            with pytest.raises(SshError) as lost:
                await waiting
            assert not isinstance(lost.value, CommandFailed)
            with pytest.raises(SshError):
                await anext(lines)
        os.kill(pid, signal.SIGTERM)  # raises unless the command outlived its connection
        each_server.start()
        assert (await nodes["n1"].run("echo back")).stdout == "back\n"
        assert dials(nodes) == 2


async def test_a_channel_that_closes_without_a_status_is_no_success(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        with pytest.raises(SshError, match="before the command's status came"):
            await nodes["n1"].run("echo close without a status")


async def test_reconnects_are_bounded(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        server.kill()
        with pytest.raises(SshError, match=r"refused|lost"):
            await nodes["n1"].run("true", timeout_s=20)
        before = dials(nodes)
        for _ in range(20):
            with pytest.raises((SshError, CommandTimeout)):
                await nodes["n1"].run("true", timeout_s=0.02)
        assert dials(nodes) - before <= 2  # hammering does not dial more often than the back-off allows
        assert before <= 6


async def test_wrong_host_key(each_server: SshServer) -> None:
    other = (each_server.folder / "other_key.pub").read_text().strip()
    node = SshNode("n1", each_server.node(ssh=each_server.ssh(host_key=other)))
    for _ in range(2):
        with pytest.raises(HostKeyError, match=r"not the one in `ssh\.host_key`"):
            await node.run("true")
    assert node.dials == 1  # another attempt cannot mend it
    await node.close()


async def test_known_hosts_file(server: SshServer, tmp_path: Path) -> None:
    known = tmp_path / "known"
    entry = f"[127.0.0.1]:{server.port} {server.host_key}\n"
    node = server.node(ssh=server.ssh(host_key=None, known_hosts=str(known)))

    async def attempt() -> str:
        connection = SshNode("n1", node)
        try:
            return (await connection.run("echo in")).stdout
        finally:
            await connection.close()

    with pytest.raises(HostKeyError, match="there is no"):
        await attempt()
    known.write_text(f"elsewhere {server.host_key}\n")
    with pytest.raises(HostKeyError, match="is not in"):
        await attempt()
    known.write_text(entry.replace(server.host_key, (server.folder / "other_key.pub").read_text().strip()))
    with pytest.raises(HostKeyError, match="not the one in"):
        await attempt()
    known.write_text(entry)
    assert await attempt() == "in\n"
    known.write_text(entry + f"@revoked * {server.host_key}\n")
    with pytest.raises(HostKeyError):
        await attempt()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"key": "/nonexistent/key"}, "key file /nonexistent/key does not exist"),
        ({"key": "/etc/hostname"}, "key file /etc/hostname cannot be read"),
        ({"host": "no-such-host.invalid"}, "host 'no-such-host.invalid' is not known"),
        ({"host_key": "ssh-ed25519 nonsense"}, "`ssh.host_key` cannot be read"),
    ],
)
async def test_what_cannot_be_mended_says_what_to_mend(
    server: SshServer, changes: dict[str, object], says: str
) -> None:
    node = SshNode("n1", server.node(ssh=server.ssh(**changes)))
    with pytest.raises(SshError) as failed:
        await node.connect(timeout_s=5)
    assert says in failed.value.message
    assert failed.value.message.startswith("n1: ")
    assert failed.value.remedy
    await node.close()


async def test_a_key_that_is_not_authorised(each_server: SshServer) -> None:
    node = SshNode("n1", each_server.node(ssh=each_server.ssh(key=str(each_server.folder / "other_key"))))
    with pytest.raises(SshError, match="refused to log in") as failed:
        await node.connect()
    assert "authorized_keys" in (failed.value.remedy or "")
    await node.close()


async def test_a_port_where_nobody_listens_and_one_that_never_answers(server: SshServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        refused = SshNode("n1", server.node(ssh=server.ssh(port=silent.getsockname()[1])))
        with pytest.raises(SshError, match="refused the connection"):
            await refused.connect(timeout_s=1)
        silent.listen()
        mute = SshNode("n1", server.node(ssh=server.ssh(port=silent.getsockname()[1])))
        with pytest.raises(SshError, match="no SSH connection"):
            await mute.connect(timeout_s=0.5)
        await refused.close()
        await mute.close()


async def test_one_unreachable_node_is_named(server: SshServer) -> None:
    bad: Node = server.node(ssh=server.ssh(key="/nonexistent/key"))
    inventory = server.inventory(good=server.node(), bad=bad)
    with pytest.raises(SshError, match=r"^bad: "):
        async with open_nodes(inventory):
            pass
    told: list[str] = []
    async with open_nodes(inventory, on_unreachable=lambda error: told.append(error.node)) as nodes:
        assert (await nodes["good"].run("echo in")).stdout == "in\n"
    assert told == ["bad"]


async def test_many_commands_at_once_share_one_connection(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        results = await asyncio.gather(*(nodes["n1"].run(f"sleep 0.05; echo {n}") for n in range(20)))
        assert [int(result.stdout) for result in results] == list(range(20))
        assert dials(nodes) == 1


def test_lines_are_bounded_and_survive_any_cut() -> None:
    text = "é\n" + "x" * (LINE_LIMIT_BYTES + 10) + "\nlast"
    lines = Lines()
    assert [line for byte in "é\nab\n".encode() for line in lines.feed(bytes([byte]))] == ["é", "ab"]
    for size in (997, 4096, len(text) * 2):
        lines, data = Lines(), text.encode()
        seen = [line for i in range(0, len(data), size) for line in lines.feed(data[i : i + size])] + lines.end()
        assert seen == ["é", "x" * LINE_LIMIT_BYTES, "last"]
