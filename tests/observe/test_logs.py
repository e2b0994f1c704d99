from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rig.config.inventory import Node
from rig.journal.records import Finding, LogLine, MasterSeen
from rig.nodes.following import follow_command
from rig.nodes.ssh import SshNode
from rig.observe.logs import LineBudget, LogFollower
from rig.targets.exo.api import Exo
from rig.targets.exo.fields import ExoProcess
from tests.nodes.servers import SshServer
from tests.observe.conftest import Written

PROMOTED = "INFO Node elected Master - promoting self"
OTHER = "INFO Node 4d1530193f48 elected master"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    server = SshServer(tmp_path / "server")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "it's exo's home" / "exo_log"
    folder.mkdir(parents=True)
    log = folder / "exo.log"
    log.write_text(f"INFO long ago\n{PROMOTED}\nERROR before the rig came\n")
    return log


@pytest.fixture
async def following(server: SshServer, log: Path, exo: Exo, written: Written) -> AsyncIterator[SshNode]:
    """A follower at work; its first word is that the node is master, from before."""
    node = Node(ssh=server.ssh(), api="http://127.0.0.1:1", process=ExoProcess(home=str(log.parents[1])))
    connection = SshNode("a", node)
    task = asyncio.create_task(LogFollower(connection, exo, written.journal, retry_s=0.1).run())
    await written.until(lambda: _claims(written) == [True])
    await written.until(lambda: len(_tails(log)) == 1)
    yield connection
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await connection.close()
    await written.until(lambda: not _tails(log))


def _claims(written: Written) -> list[bool]:
    return [record.is_master for record in written.records if isinstance(record, MasterSeen)]


def _texts(written: Written) -> list[str]:
    return [record.text for record in written.records if isinstance(record, LogLine)]


def _tails(log: Path) -> list[str]:
    """Processes that follow this log, in the node's own process table."""
    table = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=", "-o", "args="], check=True, capture_output=True, text=True
    ).stdout
    return [line for line in table.splitlines() if "tail -c +" in line and f"-F {log}" in line]


def _rotate(log: Path) -> None:
    log.rename(log.with_suffix(".1.log"))
    log.write_text(f"{PROMOTED}\n")


def _append(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


async def test_lines_that_matter_and_masters_come_with_their_time(
    following: SshNode, log: Path, written: Written
) -> None:
    before = written.journal.now()
    _append(log, "INFO GET /state/instances", "ERROR something broke", OTHER)
    await written.until(lambda: len(_texts(written)) == 2)
    after = written.journal.now()
    assert _texts(written) == ["ERROR something broke", OTHER]
    assert _claims(written) == [True, False]
    first, last = [record for record in written.records if isinstance(record, MasterSeen)]
    assert (first.past, last.past) == (True, False)  # it had said so before it was followed
    assert last.node == following.name
    assert before <= last.at_t <= after
    assert last.at_t - last.at_error_s <= after


@pytest.mark.parametrize("shell", ["sh", "dash", "bash --posix"])
def test_no_line_falls_between_what_was_and_what_comes(log: Path, shell: str) -> None:
    """Lines are appended all the while; the command is begun in the middle of that."""
    writer = subprocess.Popen(
        [
            "sh",
            "-c",
            'i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo "line $i" >>"$0"; done; echo end >>"$0"',
            str(log),
        ]
    )
    command = follow_command(str(log), "elected", back=10_000)
    reader = subprocess.Popen([*shell.split(), "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdin is not None
    assert reader.stdout is not None
    lines: list[str] = []
    for line in reader.stdout:
        lines.append(line.strip().removeprefix("@rig-past "))
        if lines[-1] == "end":
            break
    assert [line for line in lines if line.startswith("line")] == [f"line {number}" for number in range(1, 3001)]
    assert lines.index("@rig-following") < lines.index("end")
    writer.wait()
    reader.stdin.close()
    reader.wait(timeout=10)
    reader.stdout.close()


def test_a_log_that_is_not_there_yet_is_waited_for(log: Path) -> None:
    log.unlink()
    reader = subprocess.Popen(
        ["sh", "-c", follow_command(str(log), "elected", back=1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline().strip() == "@rig-following"
    log.write_text("first\n")
    assert reader.stdout.readline().strip() == "first"
    reader.stdin.close()
    reader.wait(timeout=10)
    reader.stdout.close()


@pytest.mark.usefixtures("following")
async def test_rotation_is_followed(log: Path, written: Written) -> None:
    _rotate(log)
    await written.until(lambda: _claims(written) == [True, True])
    _append(log, "ERROR in the new file")
    await written.until(lambda: _texts(written)[-1:] == ["ERROR in the new file"])


@pytest.mark.usefixtures("following")
async def test_what_was_missed_while_ssh_was_away_is_told_once_with_its_uncertainty(
    server: SshServer, log: Path, written: Written
) -> None:
    _append(log, "ERROR one")
    await written.until(lambda: _texts(written) == ["ERROR one"])
    server.kill()
    await written.until(lambda: any(isinstance(record, Finding) for record in written.records))
    lost_t = next(record.t for record in written.records if isinstance(record, Finding))
    _append(log, "ERROR two", "ERROR three")
    server.start()
    await written.until(lambda: len(_texts(written)) == 3, timeout_s=20)
    _append(log, "ERROR four")
    await written.until(lambda: len(_texts(written)) == 4)
    assert _texts(written) == ["ERROR one", "ERROR two", "ERROR three", "ERROR four"]
    missed = next(record for record in written.records if isinstance(record, LogLine) and record.text == "ERROR two")
    assert lost_t - 0.3 <= missed.at_t - missed.at_error_s <= lost_t
    assert missed.t <= missed.at_t + missed.at_error_s


@pytest.mark.usefixtures("following")
async def test_a_flood_is_cut_and_counted_but_masters_are_all_told(log: Path, written: Written) -> None:
    _append(log, *["ERROR flood"] * 500, OTHER, "ERROR end of the flood")
    await written.until(lambda: _claims(written) == [True, False])
    first = len(_texts(written))
    assert first <= 40
    await asyncio.sleep(1.1)  # the budget is by the second
    _append(log, "ERROR calm")
    await written.until(lambda: _texts(written)[-1:] == ["ERROR calm"])
    dropped = sum(int(text[1:].split()[0]) for text in _texts(written) if "were dropped here" in text)
    told = sum(text in {"ERROR flood", OTHER, "ERROR end of the flood"} for text in _texts(written))
    assert dropped + told == 502


def test_a_budget_is_by_the_second() -> None:
    budget = LineBudget(2)
    assert [budget.allow(now) for now in (0.0, 0.1, 0.2, 0.9, 1.0, 1.1, 1.2)] == [
        True,
        True,
        False,
        False,
        True,
        True,
        False,
    ]
    assert budget.take_dropped() == 3
    assert budget.take_dropped() == 0
