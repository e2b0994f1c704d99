"""inspect.sh: what it says of a real tree, and that it changes nothing but its own record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Node, state, until, uptime

PROMOTED = "2026-01-01 10:00:00.000 | INFO | exo.routing:elect:1 - Node elected Master - promoting self\n"
OTHER = "2026-01-01 10:00:09.000 | INFO | exo.routing:elect:1 - Node 12D3Koo elected master - demoting self\n"


def values(said: list[tuple[str, str]], key: str) -> list[str]:
    return [value for name, value in said if name == key]


def test_tree_main_first(node: Node, main: psutil.Process) -> None:
    node.rig_dir.mkdir()
    before = uptime()
    said = node.inspect()
    facts = dict(said)
    assert before <= float(facts["clock"]) <= uptime()
    assert facts["os"] == "Linux"
    assert facts["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert facts["main_pid"] == str(main.pid)
    rows = [row.split("|", 4) for row in values(said, "proc")]
    assert [int(row[0]) for row in rows] == [main.pid, *sorted(child.pid for child in main.children())]
    assert all(row[1] == str(main.pid) for row in rows[1:])
    assert all(row[3] in "RS" for row in rows)
    assert sum("--multiprocessing-fork" in row[4] for row in rows) == 3
    times = main.cpu_times()
    cpu = dict(value.split("|") for value in values(said, "cpu"))
    assert list(cpu) == [row[0] for row in rows]
    assert float(cpu[str(main.pid)]) == pytest.approx(times.user + times.system, abs=0.5)
    assert float(facts["mem_available"]) > 1e6
    assert float(facts["disk_free"]) > 1e6
    assert values(said, "orphan") == []
    assert sorted(os.listdir(node.rig_dir)) == ["tree"]


def test_without_a_folder_nothing_is_made(node: Node, main: psutil.Process) -> None:
    node.inspect()
    assert not node.rig_dir.exists()
    assert main.is_running()


@pytest.mark.parametrize("what", ["clock", "tree", "master", "leases", "procs"])
def test_subsets(node: Node, main: psutil.Process, what: str) -> None:
    keys = {key for key, _ in node.inspect(what=what, pids=str(main.pid))}
    assert "clock" in keys
    assert ("main_pid" in keys) == (what in ("tree", "master"))
    assert ("proc" in keys) == (what in ("tree", "procs"))
    assert ("master_log" in keys) == (what == "master")
    assert "mem_available" not in keys


def test_states_of_pids(node: Node, main: psutil.Process) -> None:
    runner = main.children()[-1]
    runner.send_signal(signal.SIGSTOP)
    until(lambda: state(runner.pid) == "T", "stopped")
    rows = [row.split("|") for row in values(node.inspect(what="procs", pids=f"{main.pid} {runner.pid} 1x"), "proc")]
    assert {int(row[0]): row[3] for row in rows}[runner.pid] == "T"
    assert {int(row[0]) for row in rows} == {main.pid, runner.pid}


def test_orphans_are_those_recorded_earlier(node: Node, main: psutil.Process) -> None:
    """A child that lost its main is told apart from a stranger that looks the same."""
    node.rig_dir.mkdir()
    stranger = subprocess.Popen([sys.executable, "-c", "import time;time.sleep(30)", "--multiprocessing-fork"])
    children = [child.pid for child in main.children()]
    assert values(node.inspect(what="tree"), "orphan") == []
    main.kill()
    until(lambda: state(main.pid) == "-", "main is gone")
    orphans = [row.split("|") for row in values(node.inspect(what="tree"), "orphan")]
    assert sorted(int(row[0]) for row in orphans) == sorted(children)
    new = node.start_exo(1)
    said = node.inspect(what="tree")
    assert len(values(said, "proc")) == 3
    again = [row.split("|") for row in values(node.inspect(what="tree"), "orphan")]
    assert sorted(int(row[0]) for row in again) == sorted(children)
    assert new.is_running()
    for pid in [*children, stranger.pid]:
        os.kill(pid, signal.SIGKILL)
    stranger.wait()
    until(lambda: all(state(pid) in "-Z" for pid in children), "gone")
    assert values(node.inspect(what="tree"), "orphan") == []


@pytest.mark.parametrize(
    ("text", "claim", "line"),
    [
        ("", "", ""),
        (PROMOTED, "1", PROMOTED),
        (PROMOTED + OTHER, "0", OTHER),
        (OTHER + PROMOTED.replace("promoting", "maintaining"), "1", PROMOTED.replace("promoting", "maintaining")),
        (PROMOTED + "x" * 100 + "\n" + ("noise of a long run\n" * 80_000), "1", PROMOTED),
    ],
    ids=["none", "promoted", "demoted", "maintained", "long ago"],
)
def test_the_last_master_line_counts(node: Node, text: str, claim: str, line: str) -> None:
    (node.home / "exo_log").mkdir()
    (node.home / "exo_log" / "exo.log").write_text(text)
    facts = dict(node.inspect(what="master"))
    assert facts["master_claim"] == claim
    assert facts["master_log"] == line.strip()
    assert facts["exo_log_bytes"] == str(len(text))


def test_since_when_it_claims_and_which_id_is_its_own(node: Node) -> None:
    """Claims in a row are one; the log is the process's own from its start."""
    (node.home / "exo_log").mkdir()
    log = node.home / "exo_log" / "exo.log"
    again = PROMOTED.replace("promoting", "maintaining").replace("10:00", "10:07")
    log.write_text(
        "10:00 | Starting node 12D3Koo-self\n" + PROMOTED + OTHER + PROMOTED.replace("10:00", "10:05") + again
    )
    facts = dict(node.inspect(what="master"))
    assert (facts["master_since"], facts["node_id"]) == (PROMOTED.replace("10:00", "10:05").strip(), "12D3Koo-self")
    assert facts["master_log"] == again.strip()
    before = datetime.now().astimezone().replace(microsecond=0, tzinfo=None)
    said = datetime.fromisoformat(dict(node.inspect(what="master"))["log_now"])
    assert before <= said <= datetime.now().astimezone().replace(tzinfo=None)
    with log.open("a") as file:
        file.write(OTHER)
    assert dict(node.inspect(what="master"))["master_since"] == ""


def test_master_by_its_open_file(node: Node) -> None:
    (node.home / "event_log" / "master").mkdir(parents=True)
    code = (
        "import os, sys, time\n"
        "file = open(sys.argv[2] + '/event_log/master/events.bin', 'ab')\n"
        "open(sys.argv[2] + '/exo.pid', 'w').write(str(os.getpid()))\n"
        "time.sleep(float(sys.argv[3])); file.close(); time.sleep(30)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, "exo_like.py", str(node.home), "1.5"])
    until(lambda: node.main_pid() == process.pid, "main is up")
    assert dict(node.inspect(what="master", match="exo_like.py"))["master_files"] == "1"
    until(lambda: "events.bin" not in str(psutil.Process(process.pid).open_files()), "closed")
    assert dict(node.inspect(what="master", match="exo_like.py"))["master_files"] == "0"
    process.kill()
    process.wait()


def test_leases_and_lock(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="60", owner="a|b c", run="r 1")
    script.wait_for("holding")
    (node.rig_dir / "lock").write_text("owner=me\nrun=r\n")
    said = node.inspect(what="leases")
    (lease,) = [row.split("|") for row in values(said, "lease")]
    assert lease[:2] == ["f1", "freeze"]
    assert (lease[2], lease[3]) == ("a/b c", "r 1")
    assert float(lease[5]) - float(lease[4]) == pytest.approx(62.0, abs=0.5)
    assert lease[6:] == ["struck", "1", "1"]
    assert values(said, "lock") == ["owner=me", "run=r"]
    script.process.kill()
    script.process.wait()
    (lease,) = [row.split("|") for row in values(node.inspect(what="leases"), "lease")]
    assert lease[8] == "0"
    assert node.heal().status == 0
    assert main.is_running()
