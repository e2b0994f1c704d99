"""The node guard: what it heals, when, and what it never touches."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from tests.faults.node import FAULTS, Node, Script, state, until, uptime

LATEST_S = 7.0  # beyond the hold


@pytest.fixture
def guard(node: Node) -> Iterator[Script]:
    """The guard as a plain process, every 4 s as launchd and systemd call it."""
    script = Script([*node.shell, str(FAULTS / "guard.sh"), f"rig_dir={node.rig_dir}"], node.env)
    yield script
    script.process.kill()
    script.process.wait()


def test_after_sigkill_of_the_script_within_hold_and_seven(node: Node, main: psutil.Process, guard: Script) -> None:
    script = node.script("freeze.sh", hold="1")
    struck = script.wait_for("struck")
    script.wait_for("holding")
    script.process.kill()
    tree = node.tree()
    assert all(state(pid) == "T" for pid in tree)
    until(lambda: not node.leases, "the guard has healed", timeout_s=30)
    assert all(state(pid) in "RS" for pid in tree)
    healed = next(event for event in node.log("f1") if event.name == "healed")
    assert healed.fields["by"] == "heal"
    assert healed.t - struck.t < 1 + LATEST_S + 3  # 3 s for a machine as busy as that of the tests
    assert main.is_running()
    assert guard.process.poll() is None


def test_a_lease_in_its_time_and_its_script_are_left_alone(node: Node, main: psutil.Process, guard: Script) -> None:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    seen = node.rig_dir / "guard"
    until(seen.exists, "the guard has looked")
    first = seen.read_text()
    until(lambda: seen.read_text() != first, "the guard has looked again", timeout_s=20)
    assert all(state(pid) == "T" for pid in node.tree())
    assert script.process.poll() is None
    assert main.is_running()


def test_a_lease_of_an_earlier_boot_is_undone_at_once(node: Node) -> None:
    """A crash whose node lost its power: exo is started, nobody is signalled."""
    main = node.start_exo()
    script = node.script("crash.sh", hold="60", start=f"{node.start_command()} &")
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    lease = node.rig_dir / "leases" / "f1"
    lease.write_text(lease.read_text().replace("boot_id=", "boot_id=earlier-", 1))
    done = subprocess.run(
        [*node.shell, str(FAULTS / "guard.sh"), f"rig_dir={node.rig_dir}", "once=1"],
        env=node.env,
        timeout=60,
        check=True,
        capture_output=True,
    )
    assert done.stderr == b""
    assert node.leases == []
    until(lambda: node.main_pid() not in (0, main.pid), "exo runs again")


def test_what_no_lease_names_is_never_touched(node: Node, main: psutil.Process, guard: Script) -> None:
    """A process stopped by somebody else, and leases that cannot be understood, survive beside one that is healed."""
    foreign = subprocess.Popen(["sleep", "300"])
    foreign.send_signal(signal.SIGSTOP)
    script = node.script("freeze.sh", hold="1")
    script.wait_for("holding")
    torn = node.rig_dir / "leases" / "torn"
    torn.write_text(f"version=1\nid=torn\nkind=freeze\npids={foreign.pid}:1\n")
    unknown = node.rig_dir / "leases" / "odd"
    unknown.write_text(f"version=2\nid=odd\nkind=freeze\ndeadline=1\npids={foreign.pid}:1\nend=1\n")
    script.process.kill()
    try:
        until(lambda: node.leases == ["odd", "torn"], "the guard has healed", timeout_s=30)
        assert state(foreign.pid) == "T"
    finally:
        foreign.kill()
        foreign.wait()
    assert main.is_running()
    assert guard.process.poll() is None


def test_a_stopped_script_is_past_its_time_like_a_dead_one(node: Node, main: psutil.Process, guard: Script) -> None:
    script = node.script("freeze.sh", hold="1")
    script.wait_for("holding")
    os.kill(script.process.pid, signal.SIGSTOP)
    until(lambda: not node.leases, "healed", timeout_s=40)
    assert all(state(pid) in "RS" for pid in node.tree())
    assert main.is_running()
    assert guard.process.poll() is None


def test_it_says_when_it_looked(node: Node, guard: Script) -> None:
    node.rig_dir.mkdir()
    until((node.rig_dir / "guard").exists, "the guard has looked", timeout_s=20)
    said = dict(line.split("=", 1) for line in (node.rig_dir / "guard").read_text().splitlines())
    assert abs(float(said["clock"]) - uptime()) < 30
    assert int(said["pid"]) == guard.process.pid
    assert said["scripts"] == str(FAULTS)


def test_it_follows_no_folder_that_others_can_write_to(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="60")
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    lease = node.rig_dir / "leases" / "f1"
    lease.write_text(re.sub(r"deadline=.*", "deadline=1.000", lease.read_text()))
    node.rig_dir.chmod(0o777)
    command = [*node.shell, str(FAULTS / "guard.sh"), f"rig_dir={node.rig_dir}", "once=1"]
    subprocess.run(command, env=node.env, timeout=60, check=True, capture_output=True)
    assert node.leases == ["f1"]
    assert all(state(pid) == "T" for pid in node.tree())
    node.rig_dir.chmod(0o700)
    assert node.heal("f1").status == 0
    assert main.is_running()
