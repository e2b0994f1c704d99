"""The same assertions against each node that has a shell: SSH servers, and this machine without SSH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from rig.clock import RunClock
from rig.config.inventory import Inventory, Node
from rig.errors import CommandFailed, CommandTimeout, NodeError, NodeNotReady, TransportError
from rig.nodes.lock import hold_locks
from rig.nodes.node import NodeConnection
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.operations import ShellNode
from rig.nodes.shell import COMMANDS_AT_ONCE
from rig.nodes.upload import upload
from rig.targets.exo.fields import ExoProcess
from tests.nodes import contract
from tests.nodes.conftest import kinds_of_servers
from tests.nodes.fakeexo import FakeExo, states
from tests.nodes.servers import SshServer, until


@dataclass
class Machine:
    """A machine that may be opened again and again."""

    inventory: Inventory

    @asynccontextmanager
    async def open(self, **changes: object) -> AsyncGenerator[ShellNode]:
        """`changes`: of the node's entry in the inventory."""
        node = self.inventory.nodes["n1"].model_copy(update=changes)
        async with open_nodes(self.inventory.model_copy(update={"nodes": {"n1": node}})) as nodes:
            yield nodes["n1"]


@pytest.fixture(params=["local", *kinds_of_servers()])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    if request.param == "local":
        yield Machine(Inventory(name="test", nodes={"n1": local_node(tmp_path)}))
        return
    server = SshServer(tmp_path / "server", openssh=request.param == "openssh")
    server.start()
    yield Machine(server.inventory())
    server.kill()


def local_node(folder: Path) -> Node:
    return Node(
        local=True, api="http://127.0.0.1:1", process=ExoProcess(home="/exo"), rig_dir=f"{folder}/rig dir's", sudo=False
    )


@pytest.fixture
async def shell(machine: Machine) -> AsyncIterator[ShellNode]:
    async with machine.open() as node:
        yield node


@pytest.fixture
async def with_exo(machine: Machine, tmp_path: Path) -> AsyncIterator[tuple[ShellNode, FakeExo]]:
    """The scripts are there, and an exo runs."""
    exo = FakeExo(tmp_path / "exo", master=True)
    exo.start()
    async with machine.open(process=exo.process()) as node:
        await upload(node)
        yield node, exo
    exo.kill()


# The shell


async def test_output_status_and_stdin(shell: ShellNode) -> None:
    result = await shell.run("cat; echo err >&2", stdin="a\nb\n")
    assert (result.status, result.stdout, result.stderr) == (0, "a\nb\n", "err\n")
    many = await shell.run("wc -c", stdin=b"x" * 1_000_000)
    assert int(many.stdout) == 1_000_000
    assert (await shell.run("cat")).stdout == ""


async def test_stdin_that_nobody_reads_is_no_error(shell: ShellNode) -> None:
    assert (await shell.run("exit 3", stdin=b"x" * 1_000_000, check=False)).status == 3
    async with shell.stream("exit 3", timeout_s=30, stdin=b"x" * 1_000_000) as stream:
        assert (await stream.wait()).status == 3


async def test_commands_are_sh_whatever_they_contain(shell: ShellNode) -> None:
    nasty = "a 'b' \"c\" $(touch pwned) `touch pwned` \\ ; & | * é\n"
    quoted = nasty.replace("'", "'\\''")
    assert (await shell.run(f"printf %s '{quoted}'")).stdout == nasty


@pytest.mark.parametrize("status", [1, 127, 255])
async def test_a_bad_status_is_the_commands_own(shell: ShellNode, status: int) -> None:
    with pytest.raises(CommandFailed) as failed:
        await shell.run(f"echo first; echo why >&2; exit {status}")
    assert failed.value.status == status
    assert "why" in str(failed.value)
    assert (await shell.run(f"exit {status}", check=False)).status == status


async def test_a_command_ended_by_a_signal(shell: ShellNode) -> None:
    result = await shell.run("kill -9 $$", check=False)
    assert (result.status, result.signal) == (137, "KILL")


async def test_deadline(shell: ShellNode) -> None:
    """The command is not ended: nobody knows what it is in the middle of."""
    async with shell.stream("echo $$; exec sleep 30", timeout_s=0.5) as stream:
        lines = stream.lines()
        pid = int(await anext(lines))
        with pytest.raises(CommandTimeout) as timeout:
            await anext(lines)
    assert not isinstance(timeout.value, TransportError)
    with pytest.raises(CommandTimeout):
        await shell.run("sleep 20", timeout_s=0.3)
    assert (await shell.run("echo on")).stdout == "on\n"
    psutil.Process(pid).kill()  # raises unless the command outlived its deadline


async def test_output_is_bounded(shell: ShellNode) -> None:
    with pytest.raises(NodeError, match="output is over"):
        await shell.run("yes | head -c 6000000")
    big = await shell.run("yes | head -c 4000000")
    assert len(big.stdout) == 4_000_000


async def test_stream_has_back_pressure_and_an_end(shell: ShellNode) -> None:
    command = "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done; echo e >&2; exit 7"
    async with shell.stream(command, timeout_s=30) as s:
        assert [line async for line in s.lines()] == ["0", "1", "2"]
        result = await s.wait()
    assert (result.status, result.stderr) == (7, "e\n")
    async with shell.stream("exec yes", timeout_s=30) as s:  # more than any buffer holds
        assert await anext(s.lines()) == "y"
        assert (await shell.run("echo beside")).stdout == "beside\n"


async def test_many_commands_at_once(shell: ShellNode) -> None:
    results = await asyncio.gather(*(shell.run(f"sleep 0.05; echo {n}") for n in range(20)))
    assert [int(result.stdout) for result in results] == list(range(20))


async def test_no_more_commands_at_once_than_there_is_room_for(shell: ShellNode, tmp_path: Path) -> None:
    """The one that found no room was never started."""
    async with AsyncExitStack() as stack:
        for _ in range(COMMANDS_AT_ONCE):
            await stack.enter_async_context(shell.stream("exec cat", timeout_s=60.0))
        with pytest.raises(CommandTimeout, match="was not started"):
            await shell.run(f"touch {tmp_path}/started", timeout_s=1.0)
    await shell.run("true")
    assert not (tmp_path / "started").exists()


async def test_put_is_whole_or_not_at_all(shell: ShellNode, tmp_path: Path) -> None:
    folder = tmp_path / "put"
    folder.mkdir()
    path = folder / "a b'c$(x)"
    await shell.put(str(path), b"\x00\xff" * 50_000, 0o750)
    assert path.read_bytes() == b"\x00\xff" * 50_000
    assert path.stat().st_mode & 0o777 == 0o750
    with pytest.raises(CommandFailed, match="could not write"):
        await shell.put(str(folder / "missing" / "file"), b"x")
    assert os.listdir(folder) == [path.name]


async def test_nothing_can_be_asked_after_the_end(machine: Machine) -> None:
    async with machine.open() as node:
        pass
    with pytest.raises(TransportError, match="closed by the rig"):
        await node.run("true")


# The operations


async def test_a_freeze_holds_until_it_is_healed(with_exo: tuple[ShellNode, FakeExo]) -> None:
    await contract.a_freeze_holds_until_it_is_healed(with_exo[0])


async def test_a_fault_goes_on_when_nobody_follows_it(with_exo: tuple[ShellNode, FakeExo]) -> None:
    await contract.a_fault_goes_on_when_nobody_follows_it(with_exo[0])


async def test_a_strike_that_outlasts_its_time_is_told(with_exo: tuple[ShellNode, FakeExo]) -> None:
    await contract.a_strike_that_outlasts_its_time_is_told(with_exo[0])


async def test_the_clock_is_that_of_the_scripts(with_exo: tuple[ShellNode, FakeExo]) -> None:
    await contract.the_clock_is_that_of_the_scripts(with_exo[0], RunClock())


async def test_the_past_of_a_log_comes_before_its_mark(shell: ShellNode, tmp_path: Path) -> None:
    log = tmp_path / "it's a log"
    log.write_text("long ago elected Master\nINFO Node elected Master\nlast\n")
    await contract.the_past_of_a_log_comes_before_its_mark(shell, str(log), "INFO Node elected Master", "last")


async def test_a_log_is_followed_over_its_rotation_and_left_alone_at_the_end(shell: ShellNode, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    async with aclosing(shell.follow_log(str(log), "nothing", back=1)) as lines:
        assert [(await anext(lines)).age for _ in range(2)] == ["past", "mark"]
        with log.open("a") as file:
            file.write("@rig-past is but text now\n")
        assert (await anext(lines)).text == "@rig-past is but text now"
        log.rename(tmp_path / "log.1")
        log.write_text("first of a new one\n")
        assert (await anext(lines)).text == "first of a new one"
    await until(lambda: not tails(log))


def tails(log: Path) -> list[int]:
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() == "tail" and str(log) in process.cmdline():
                found.append(process.pid)
    return found


async def test_who_answers(shell: ShellNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert await shell.answering(["127.0.0.1", "127.0.0.2", "::1"], port, timeout_s=10.0) == {"127.0.0.1"}


async def test_a_command_of_the_inventory(machine: Machine, tmp_path: Path) -> None:
    made = tmp_path / "it's made"
    commands = ExoProcess(home="/exo", start=f'touch "{made}"', stop="echo why >&2; exit 4")
    async with machine.open(process=commands) as node:
        await upload(node)
        nodes: ShellNodes = {"n1": node}
        async with hold_locks(nodes, "ours"):
            await node.carry_out("start", timeout_s=20.0)
            assert made.exists()
            with pytest.raises(NodeNotReady, match="status 4: why"):
                await node.carry_out("stop", timeout_s=20.0)
            made.unlink()
            async with machine.open(process=commands) as another:
                another.lock = "0123456789abcdef"
                with pytest.raises(NodeNotReady, match="was not run"):
                    await another.carry_out("start", timeout_s=20.0)
            assert not made.exists()


async def test_evidence_is_bounded_and_never_fails(with_exo: tuple[ShellNode, FakeExo]) -> None:
    node, exo = with_exo
    (exo.home / "exo_log" / "exo.log").write_text("x" * 5000 + "the end\n")
    found = await node.evidence(state_bytes=2000, log_bytes=1000, timeout_s=20.0)
    assert len(found.state) == 2000
    assert len(found.log) == 1000
    assert found.log.endswith(b"the end\n")
    late = await node.evidence(state_bytes=2000, log_bytes=1000, timeout_s=0.0)
    assert late.state.startswith(b"not collected: n1: ")


async def test_a_script_that_fails_says_why(with_exo: tuple[ShellNode, FakeExo]) -> None:
    with pytest.raises(CommandFailed, match="offset"):
        await with_exo[0].script("events.sh", {"offset": "many", "most": "1"}, timeout_s=20.0)


# Only without SSH

_DIES = """
import asyncio, os, sys
from rig.config.inventory import Node
from rig.nodes.local import LocalNode
from rig.targets.exo.fields import ExoProcess

async def main(folder, how):
    home = ExoProcess.model_validate_json(sys.argv[3])
    node = LocalNode("n1", Node(local=True, api="http://127.0.0.1:1", process=home, rig_dir=folder, sudo=False))
    def heard(event):
        if event.event == "holding":
            print("holding", flush=True)
            if how == "killed":
                os.kill(os.getpid(), 9)
            asyncio.get_running_loop().stop()
    await node.strike("freeze.sh", {"id": "f1", "run": "r", "owner": "o", "hold": "3"}, heard, timeout_s=60)

try:
    asyncio.run(main(sys.argv[1], sys.argv[2]))
except RuntimeError:
    pass
"""


@pytest.mark.parametrize("how", ["killed", "ended"])
async def test_a_local_fault_outlives_its_controller_and_heals(tmp_path: Path, how: str) -> None:
    exo = FakeExo(tmp_path / "exo")
    exo.start()
    node = local_node(tmp_path).model_copy(update={"process": exo.process()})
    try:
        async with open_nodes(Inventory(name="test", nodes={"n1": node})) as nodes:
            await upload(nodes["n1"])
            words = [node.rig_dir, how, exo.process().model_dump_json()]
            command = [sys.executable, "-c", _DIES, *words]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
            assert done.stdout == "holding\n", done.stderr
            assert set(states(exo.tree())) == {psutil.STATUS_STOPPED}
            conn: NodeConnection = nodes["n1"]
            lease = Path(node.rig_dir) / "leases" / "f1"
            await until(lambda: not lease.exists(), within_s=30.0)
            assert psutil.STATUS_STOPPED not in states(exo.tree())
            said = Path(node.rig_dir) / "log" / "f1.log"
            await until(lambda: "dropped" in said.read_text())
            log = await conn.fault_log("f1", timeout_s=10.0)
            assert [event.event for event in log] == contract.STATES
            assert log[4].node_t - log[1].node_t >= 3.0  # the hold was not cut short by the controller's end
    finally:
        exo.kill()


async def test_a_local_node_leaves_neither_zombies_nor_open_files(tmp_path: Path) -> None:
    own = psutil.Process()
    async with open_nodes(Inventory(name="test", nodes={"n1": local_node(tmp_path)})) as nodes:
        await nodes["n1"].run("true")
        before = own.num_fds()
        for _ in range(20):
            await nodes["n1"].run("cat; echo err >&2", stdin="x")
            with pytest.raises(CommandTimeout):
                await nodes["n1"].run("read -r _ <&2; sleep 0.2", timeout_s=0.01)
        assert own.num_fds() == before
    await until(lambda: not [child for child in own.children() if child.status() == psutil.STATUS_ZOMBIE])


async def test_a_local_node_does_not_name_an_address_of_its_controller(tmp_path: Path) -> None:
    async with open_nodes(Inventory(name="test", nodes={"n1": local_node(tmp_path)})) as nodes:
        assert await nodes["n1"].controller_address() == ""
