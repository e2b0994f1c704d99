"""Leases: who may strike beside one, and how heal.sh undoes what a dead script left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Node, Script, parse, state, until


def killed_freeze(node: Node) -> tuple[Script, list[int]]:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    tree = node.tree()
    script.process.kill()
    script.process.wait()
    assert all(state(pid) == "T" for pid in tree)
    return script, tree


def edit(lease: Path, **values: str) -> None:
    lines = [line.partition("=") for line in lease.read_text().splitlines()]
    lease.write_text("".join(f"{key}={values.get(key, value)}\n" for key, _, value in lines))


@pytest.mark.parametrize("what", ["all", "f1"])
def test_freeze_of_a_killed_script_is_undone(node: Node, main: psutil.Process, what: str) -> None:
    _, tree = killed_freeze(node)
    heal = node.heal(what)
    assert heal.status == 0
    assert all(state(pid) in "RS" for pid in tree)
    assert node.leases == []
    assert [event.name for event in parse(heal.said)] == ["healing", "healed", "dropped"]
    assert parse(heal.said)[1].fields["id"] == "f1"
    assert [event.name for event in node.log("f1")][-1] == "dropped"
    assert main.is_running()


def test_lease_within_its_time_is_not_expired(node: Node, main: psutil.Process) -> None:
    _, tree = killed_freeze(node)
    assert node.heal("expired").status == 0
    assert node.leases == ["f1"]
    assert all(state(pid) == "T" for pid in tree)
    edit(node.rig_dir / "leases" / "f1", deadline="1.000")
    assert node.heal("expired").status == 0
    assert node.leases == []
    assert all(state(pid) in "RS" for pid in tree)
    assert main.is_running()


def test_live_script_is_asked_to_heal(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    tree = node.tree()
    heal = node.heal("f1")
    assert heal.status == 0
    assert parse(heal.said)[-1].fields["by"] == "script"
    assert all(state(pid) in "RS" for pid in tree)
    assert script.process.wait(5) == 0
    assert node.leases == []
    assert main.is_running()


def test_stopped_script_is_woken_and_heals(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    os.kill(script.process.pid, signal.SIGSTOP)
    heal = node.heal("f1")
    assert heal.status == 0
    assert all(state(pid) in "RS" for pid in node.tree())
    assert script.process.wait(5) == 0
    assert main.is_running()


def test_reused_pid_is_not_signalled(node: Node, main: psutil.Process) -> None:
    """A lease whose pids are by now other processes, one of them stopped by its owner."""
    killed_freeze(node)
    bystander = subprocess.Popen([sys.executable, "-c", "import time;time.sleep(30)"])
    os.kill(bystander.pid, signal.SIGSTOP)
    until(lambda: state(bystander.pid) == "T", "stopped")
    lease = node.rig_dir / "leases" / "f1"
    pids = next(line for line in lease.read_text().splitlines() if line.startswith("pids="))[5:]
    edit(lease, pids=f"{pids} {bystander.pid}:12345 1:1 0:0 {os.getpid()}:1")
    assert node.heal("f1").status == 0
    assert state(bystander.pid) == "T"
    assert all(state(pid) in "RS" for pid in node.tree())
    assert main.is_running()
    bystander.kill()
    bystander.wait()


def test_lease_of_another_boot_signals_nobody(node: Node, main: psutil.Process) -> None:
    _, tree = killed_freeze(node)
    edit(node.rig_dir / "leases" / "f1", boot_id="of-another-boot")
    assert node.heal("expired").status == 0
    assert node.leases == []
    assert all(state(pid) == "T" for pid in tree)
    assert main.is_running()
    for pid in tree:
        os.kill(pid, signal.SIGCONT)


def test_crash_lease_of_another_boot_starts_exo(node: Node, main: psutil.Process) -> None:
    script = node.script("crash.sh", hold="60", start=f"{node.start_command()} &")
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    edit(node.rig_dir / "leases" / "f1", boot_id="of-another-boot")
    assert node.heal("expired").status == 0
    assert node.leases == []
    assert node.main_pid() != main.pid
    assert state(node.main_pid()) in "RS"


@pytest.mark.parametrize(
    "text",
    ["", "version=1\nid=f1\n", "version=2\nid=f1\nkind=freeze\ndeadline=1\nend=1\n", "rm=-rf\nend=1\n", "\0\0\0"],
    ids=["empty", "torn", "version", "unknown", "binary"],
)
def test_lease_that_cannot_be_understood_is_left_alone(node: Node, text: str) -> None:
    (node.rig_dir / "leases").mkdir(parents=True)
    (node.rig_dir / "leases" / "f1").write_text(text)
    heal = node.heal("all")
    assert heal.status == 12
    assert parse(heal.said)[-1].name == "unhealed"
    assert node.leases == ["f1"]


def test_no_second_fault_beside_a_live_one(node: Node, main: psutil.Process) -> None:
    first = node.script("freeze.sh", hold="60")
    first.wait_for("holding")
    second = node.script("freeze.sh", id="f2", hold="0.1")
    events = second.end()
    assert second.status == 10
    assert events[-1].fields["reason"].startswith("already stopped")
    assert node.leases == ["f1"]
    first.process.send_signal(signal.SIGTERM)
    first.end()
    assert main.is_running()


def test_lease_of_a_live_script_is_named_with_its_owner(node: Node, main: psutil.Process) -> None:
    first = node.script("crash.sh", hold="60", start=f"{node.start_command()} &", owner="alice@studio")
    first.wait_for("holding")
    node.start_exo()
    second = node.script("freeze.sh", id="f2", hold="0.1")
    events = second.end()
    assert second.status == 10
    assert events[-1].fields["reason"] == "lease f1 of alice@studio is in force"
    assert node.leases == ["f1"]
    beside = node.script("freeze.sh", id="f3", hold="0.1", also="1")
    beside.end()
    assert beside.status == 0
    first.process.send_signal(signal.SIGTERM)
    first.end()
    assert main.pid != node.main_pid()


def test_what_a_dead_script_left_is_undone_before_the_next_strike(node: Node, main: psutil.Process) -> None:
    first = node.script("crash.sh", id="old", hold="60", start=f"{node.start_command()} &")
    first.wait_for("holding")
    first.process.kill()
    first.process.wait()
    node.start_exo()
    second = node.script("freeze.sh", hold="0.1")
    events = second.end()
    assert second.status == 0, events
    assert events[0].fields["stale_healed"] == "old"
    assert node.leases == []
    assert main.pid != node.main_pid()


def crashed(node: Node) -> Path:
    """A crash whose script is dead, of an exo that takes a while before it has a pid; counts its starts in a file."""
    node.start_exo()
    starts = node.folder / "starts"
    command = f"echo start >>'{starts}'; sleep 1; {node.start_command()} &"
    script = node.script("crash.sh", hold="60", start=command)
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    return starts


def test_of_two_healers_one_heals_and_the_other_waits(node: Node) -> None:
    """The guard and `rig heal` at the same moment: exo is started once."""
    starts = crashed(node)
    healers = [node.script("heal.sh", what="all") for _ in range(3)]
    said = [event for healer in healers for event in healer.end(timeout_s=60)]
    assert [healer.status for healer in healers] == [0, 0, 0]
    assert starts.read_text() == "start\n"
    assert sorted(event.fields["by"] for event in said if event.name == "healed") == ["another", "another", "heal"]
    assert os.listdir(node.rig_dir / "leases") == []


def test_what_a_killed_healer_began_is_ended_by_the_next(node: Node) -> None:
    """All of it is killed, but for the start command that it has given."""
    starts = crashed(node)
    healer = node.script("heal.sh", what="all")
    until(starts.exists, "it has given the start command")
    shells = list[psutil.Process]()
    for child in psutil.Process(healer.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a command of the script's that was over just then
            shells += [child] if "heal.sh" in str(child.cmdline()) else []
    for shell in (healer.process, *shells):
        shell.kill()
    healer.process.wait()
    later = node.heal()
    assert later.status == 0
    assert [event.fields["by"] for event in parse(later.said) if event.name == "healed"] == ["heal"]
    assert starts.read_text() == "start\n"
    assert os.listdir(node.rig_dir / "leases") == []


def test_a_healer_that_outlives_its_parent_is_waited_for(node: Node) -> None:
    """What undoes is a shell of its own: with the pid that is known of it alone `kill` does not reach it."""
    starts = crashed(node)
    healer = node.script("heal.sh", what="all")
    until(starts.exists, "it has given the start command")
    healer.process.kill()
    healer.process.wait()
    later = node.heal()
    assert later.status == 0
    assert [event.fields["by"] for event in parse(later.said) if event.name == "healed"] == ["another"]
    assert starts.read_text() == "start\n"
    assert os.listdir(node.rig_dir / "leases") == []


def test_a_claim_of_an_earlier_boot_or_a_dead_process_binds_nobody(node: Node, main: psutil.Process) -> None:
    _, tree = killed_freeze(node)
    boot = next(line for line in (node.rig_dir / "leases" / "f1").read_text().splitlines() if "boot_id=" in line)
    alive = f"{main.pid}:{Path(f'/proc/{main.pid}/stat').read_text().rpartition(') ')[2].split()[19]}"
    claims = [f"{alive} earlier", f"{main.pid}:1 {boot.removeprefix('boot_id=')}"]
    for number, claim in enumerate(claims, start=1):
        (node.rig_dir / "leases" / f".f1.claim.{number}").write_text(f"{claim}\n")
    assert node.heal("f1").status == 0
    assert all(state(pid) in "RS" for pid in tree)
    assert os.listdir(node.rig_dir / "leases") == []


def test_the_next_fault_gives_way_to_a_healer_at_work(node: Node) -> None:
    starts = crashed(node)
    healer = node.script("heal.sh", what="all")
    until(starts.exists, "it has given the start command")
    later = node.script("cpu-hog.sh", hold="1", load="1", id="f2")
    skipped = next(event for event in later.end() if event.name == "skipped")
    assert skipped.fields["reason"] == "lease f1 was left by a dead script and is being undone"
    healer.end(timeout_s=60)
    assert starts.read_text() == "start\n"
    assert node.leases == []


def test_nothing_to_heal(node: Node) -> None:
    assert node.heal("all").status == 0
    assert node.heal("all").said == ""


def test_heal_script_ends_soon_after_a_live_script(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    begun = time.monotonic()
    node.heal("all")
    assert time.monotonic() - begun < 10.0
    assert main.is_running()
