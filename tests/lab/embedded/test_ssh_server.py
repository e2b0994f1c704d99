"""The node's SSH server tells the truth about commands, and lets them outlive their connection."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import asyncssh
import psutil
import pytest

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("status", [0, 1, 7, 126, 127, 255])
async def test_reports_the_exit_status(cluster: Any, status: int) -> None:
    done = await cluster.ssh("node-1", f"echo out; echo err >&2; exit {status}")
    assert (done.status, done.signal, done.out, done.err) == (status, None, "out\n", "err\n")


async def test_reports_the_signal_that_ended_a_command(cluster: Any) -> None:
    done = await cluster.ssh("node-1", "kill -KILL $$")
    assert (done.status, done.signal) == (None, "KILL")


async def test_runs_a_real_shell_in_the_nodes_own_surroundings(cluster: Any) -> None:
    folder = cluster.node_folder("node-2")
    done = await cluster.ssh("node-2", 'printf "%s\\n" "$SSH_CONNECTION" "$HOME" "$PWD" "$PATH" "$RIG_INVENTORY"')
    connection, home, here, path, foreign = done.out.splitlines()
    assert connection == "10.77.0.250 50022 10.77.0.2 22"
    assert (home, here, foreign) == (str(folder), str(folder), "")
    assert path.split(":")[0] == str(folder / "bin")
    assert Path((await cluster.ssh("node-2", "command -v nft")).out.strip()) == folder / "bin" / "nft"


async def test_passes_input_and_much_output(cluster: Any) -> None:
    text = "line of input\n" * 20_000
    done = await cluster.ssh("node-1", "cat", stdin=text)
    assert done.out == text
    many = await cluster.ssh("node-1", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert many.out == "x" * 3_000_000


async def test_a_command_outlives_its_connection(cluster: Any, tmp_path: Path, until: Any) -> None:
    """As with OpenSSH: its pipes close, it is not killed."""
    pid_file, end_file = tmp_path / "pid", tmp_path / "end"
    connection = await cluster.connect("node-1")
    script = f"trap '' PIPE; echo $$ > {pid_file}; sleep 0.5; echo nobody hears; echo done > {end_file}; exec sleep 60"
    await connection.create_process(script)
    await until(lambda: pid_file.exists() and pid_file.read_text().strip() != "", what="the command runs")
    connection.abort()
    await until(end_file.exists, what="the command goes on")
    process = psutil.Process(int(pid_file.read_text()))
    assert process.is_running()
    assert os.getsid(process.pid) == process.pid  # a session of its own
    process.kill()


async def test_signals_of_the_client_reach_the_command(cluster: Any) -> None:
    async with await cluster.connect("node-1") as connection:
        process = await connection.create_process(
            "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
        )
        assert await process.stdout.readline() == "ready\n"
        process.stdin.write_eof()  # a signal must arrive after the end of the input as well
        process.send_signal("TERM")
        done = await asyncio.wait_for(process.wait(), 5)
    assert (done.exit_status, done.stdout) == (9, "caught\n")


async def test_only_the_clusters_key_is_let_in(cluster: Any, tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType] (untyped keywords)
    path = tmp_path / "other"
    path.write_bytes(key.export_private_key())
    path.chmod(0o600)
    with pytest.raises(asyncssh.PermissionDenied):
        await cluster.connect("node-1", key=str(path))


async def test_sessions_are_bounded(cluster: Any) -> None:
    async with await cluster.connect("node-3") as connection:
        for _ in range(64):
            await connection.create_process("exec cat")
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process("exec cat")
    start = time.monotonic()
    while (await cluster.ssh("node-3", "true")).status != 0:  # the ended sessions make room again
        assert time.monotonic() - start < 5
