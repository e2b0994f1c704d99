"""The SSH client against real servers: what comes back, and that each failure is told apart from the others."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from rig.config.inventory import Node
from rig.errors import CommandFailed, CommandTimeout, HostKeyError, NodeError, SshError
from rig.nodes.ssh import NodeConnection, open_nodes
from rig.nodes.stream import LINE_LIMIT_BYTES, Lines
from tests.nodes.servers import SshServer


async def test_output_status_and_stdin(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        result = await nodes["n1"].run("cat; echo err >&2", stdin="a\nb\n")
        assert (result.status, result.stdout, result.stderr) == (0, "a\nb\n", "err\n")
        many = await nodes["n1"].run("wc -c", stdin=b"x" * 1_000_000)
        assert int(many.stdout) == 1_000_000
        assert (await nodes["n1"].run("cat")).stdout == ""


async def test_commands_are_sh_whatever_they_contain(each_server: SshServer) -> None:
    nasty = "a 'b' \"c\" $(touch pwned) `touch pwned` \\ ; & | * é\n"
    async with open_nodes(each_server.inventory()) as nodes:
        quoted = nasty.replace("'", "'\\''")
        assert (await nodes["n1"].run(f"printf %s '{quoted}'")).stdout == nasty


@pytest.mark.parametrize("status", [1, 127, 255])
async def test_a_bad_status_is_the_commands_own(each_server: SshServer, status: int) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        with pytest.raises(CommandFailed) as failed:
            await nodes["n1"].run(f"echo first; echo why >&2; exit {status}")
        assert failed.value.status == status
        assert "why" in str(failed.value)
        assert (await nodes["n1"].run(f"exit {status}", check=False)).status == status


async def test_a_command_ended_by_a_signal(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        result = await nodes["n1"].run("kill -9 $$", check=False)
        assert (result.status, result.signal) == (137, "KILL")


async def test_deadline(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        with pytest.raises(CommandTimeout) as timeout:
            await nodes["n1"].run("sleep 20", timeout_s=0.3)
        assert not isinstance(timeout.value, SshError)
        assert (await nodes["n1"].run("echo on")).stdout == "on\n"
        assert nodes["n1"].dials == 1  # the connection outlives a command that hangs


async def test_output_is_bounded(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        with pytest.raises(NodeError, match="output is over"):
            await nodes["n1"].run("yes | head -c 6000000")
        big = await nodes["n1"].run("yes | head -c 4000000")
        assert len(big.stdout) == 4_000_000


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
        assert nodes["n1"].dials == 2


async def test_a_channel_that_closes_without_a_status_is_no_success(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        with pytest.raises(SshError, match="before the command's status came"):
            await nodes["n1"].run("echo close without a status")


async def test_reconnects_are_bounded(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        server.kill()
        with pytest.raises(SshError, match=r"refused|lost"):
            await nodes["n1"].run("true", timeout_s=20)
        before = nodes["n1"].dials
        for _ in range(20):
            with pytest.raises((SshError, CommandTimeout)):
                await nodes["n1"].run("true", timeout_s=0.02)
        assert nodes["n1"].dials - before <= 2  # hammering does not dial more often than the back-off allows
        assert before <= 6


async def test_wrong_host_key(each_server: SshServer) -> None:
    other = (each_server.folder / "other_key.pub").read_text().strip()
    node = NodeConnection("n1", each_server.node(ssh=each_server.ssh(host_key=other)))
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
        connection = NodeConnection("n1", node)
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
    node = NodeConnection("n1", server.node(ssh=server.ssh(**changes)))
    with pytest.raises(SshError) as failed:
        await node.connect(timeout_s=5)
    assert says in failed.value.message
    assert failed.value.message.startswith("n1: ")
    assert failed.value.remedy
    await node.close()


async def test_a_key_that_is_not_authorised(each_server: SshServer) -> None:
    node = NodeConnection("n1", each_server.node(ssh=each_server.ssh(key=str(each_server.folder / "other_key"))))
    with pytest.raises(SshError, match="refused to log in") as failed:
        await node.connect()
    assert "authorized_keys" in (failed.value.remedy or "")
    await node.close()


async def test_a_port_where_nobody_listens_and_one_that_never_answers(server: SshServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        refused = NodeConnection("n1", server.node(ssh=server.ssh(port=silent.getsockname()[1])))
        with pytest.raises(SshError, match="refused the connection"):
            await refused.connect(timeout_s=1)
        silent.listen()
        mute = NodeConnection("n1", server.node(ssh=server.ssh(port=silent.getsockname()[1])))
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


async def test_stream_has_back_pressure_and_an_end(each_server: SshServer) -> None:
    async with open_nodes(each_server.inventory()) as nodes:
        async with nodes["n1"].stream(
            "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done; echo e >&2; exit 7", timeout_s=30
        ) as s:
            assert [line async for line in s.lines()] == ["0", "1", "2"]
            result = await s.wait()
        assert (result.status, result.stderr) == (7, "e\n")
        async with nodes["n1"].stream("exec yes", timeout_s=30) as s:  # more than any buffer holds
            assert await anext(s.lines()) == "y"
            assert (await nodes["n1"].run("echo beside")).stdout == "beside\n"


async def test_many_commands_at_once_share_one_connection(server: SshServer) -> None:
    async with open_nodes(server.inventory()) as nodes:
        results = await asyncio.gather(*(nodes["n1"].run(f"sleep 0.05; echo {n}") for n in range(20)))
        assert [int(result.stdout) for result in results] == list(range(20))
        assert nodes["n1"].dials == 1


async def test_put_is_whole_or_not_at_all(server: SshServer, tmp_path: Path) -> None:
    path = tmp_path / "a b'c$(x)"
    async with open_nodes(server.inventory()) as nodes:
        await nodes["n1"].put(str(path), b"\x00\xff" * 50_000, 0o750)
        assert path.read_bytes() == b"\x00\xff" * 50_000
        assert path.stat().st_mode & 0o777 == 0o750
        with pytest.raises(CommandFailed, match="could not write"):
            await nodes["n1"].put(str(tmp_path / "missing" / "file"), b"x")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, "server"])


def test_lines_are_bounded_and_survive_any_cut() -> None:
    text = "é\n" + "x" * (LINE_LIMIT_BYTES + 10) + "\nlast"
    lines = Lines()
    assert [line for byte in "é\nab\n".encode() for line in lines.feed(bytes([byte]))] == ["é", "ab"]
    for size in (997, 4096, len(text) * 2):
        lines, data = Lines(), text.encode()
        seen = [line for i in range(0, len(data), size) for line in lines.feed(data[i : i + size])] + lines.end()
        assert seen == ["é", "x" * LINE_LIMIT_BYTES, "last"]
