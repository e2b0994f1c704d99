"""crash.sh: the whole tree dies, stays dead for the hold, and a new main process runs afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Node, state, until, uptime

LIBC_SIGNALS = 0b11 << 31  # 32 and 33 are the C library's own: no shell can set them, whatever they were at the start


def test_whole_tree_dies_and_a_new_main_runs_after_the_hold(node: Node, main: psutil.Process) -> None:
    tree = node.tree()
    script = node.script("crash.sh", hold="0.8", start=f"{node.start_command()} &")
    struck = script.wait_for("struck")
    assert [state(pid) for pid in tree if state(pid) not in "-Z"] == []
    until(lambda: node.main_pid() != main.pid, "a new main", timeout_s=5)
    assert uptime() >= struck.t + 0.78
    events = script.end()
    assert script.status == 0
    assert [event.name for event in events] == ["leased", "struck", "holding", "healing", "healed", "dropped"]
    healed = events[4].fields
    assert healed["started"] == "1"
    assert healed["new_main"].split(":")[0] == str(node.main_pid())
    assert "restarted_early" not in healed
    assert {item.split(":")[0] for item in struck.fields["pids"].split()} == {str(pid) for pid in tree}
    assert node.leases == []
    assert psutil.Process(node.main_pid()).is_running()


def test_new_main_has_default_signals(node: Node, main: psutil.Process) -> None:
    """A shell starts background jobs with SIGINT ignored; exo must not inherit that, nor our own SIGPIPE."""
    status = node.folder / "status"
    start = f"grep SigIgn /proc/self/status >'{status}'; {node.start_command()} &"
    script = node.script("crash.sh", hold="0.1", start=start)
    script.end()
    assert script.status == 0
    ignored = int(status.read_text().split()[1], 16)
    assert ignored & ~LIBC_SIGNALS == 0
    assert not main.is_running() or main.status() == psutil.STATUS_ZOMBIE


def test_start_command_that_stays_in_the_foreground(node: Node, main: psutil.Process) -> None:
    script = node.script("crash.sh", hold="0.1", start=node.start_command())
    events = script.end()
    assert script.status == 0, events
    assert state(node.main_pid()) in "RS"
    left = [name for name in os.listdir(node.rig_dir) if name.startswith(".")]
    assert left == []
    assert main.pid != node.main_pid()


def test_supervisor_that_restarts_early_is_named(node: Node, main: psutil.Process) -> None:
    marker = node.folder / "released"
    script = node.script("crash.sh", hold="3", start="exit 9", hold_cmd="exit 3", release_cmd=f"touch '{marker}'")
    struck = script.wait_for("struck")
    node.start_exo()
    events = script.end()
    assert script.status == 0
    healed = next(event for event in events if event.name == "healed").fields
    assert healed["restarted_early"].split(":")[0] == str(node.main_pid())
    assert struck.t <= float(healed["restarted_early_t"]) <= struck.t + 3.2
    assert healed["hold_status"] == "3"
    assert healed["started"] == "0"
    assert marker.exists()
    assert main.pid != node.main_pid()


def test_hold_and_release_commands_run_in_order(node: Node, main: psutil.Process) -> None:
    order = node.folder / "order"
    script = node.script(
        "crash.sh",
        hold="0.3",
        hold_cmd=f"echo hold >>'{order}'",
        release_cmd=f"echo release >>'{order}'",
        start=f"echo start >>'{order}'; {node.start_command()} &",
    )
    script.end()
    assert script.status == 0
    assert order.read_text().split() == ["hold", "release", "start"]
    assert main.pid != node.main_pid()


def test_without_a_start_command_nothing_is_killed(node: Node, main: psutil.Process) -> None:
    script = node.script("crash.sh", hold="0.1")
    assert [event.name for event in script.end()] == ["skipped"]
    assert script.status == 10
    assert state(main.pid) in "RS"


def test_kill_that_does_nothing_is_ineffective_and_starts_nothing(node: Node, main: psutil.Process) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "kill").write_text('#!/bin/sh\ncase $2 in KILL) exit 0 ;; esac\nexec /bin/kill "$@"\n')
    (shims / "kill").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    started = node.folder / "started"
    script = node.script("crash.sh", hold="0.1", start=f"touch '{started}'")
    events = script.end(timeout_s=30)
    assert script.status == 11
    assert [event.name for event in events] == ["leased", "ineffective", "healing", "healed", "dropped"]
    assert all(state(pid) in "RS" for pid in node.tree())
    assert not started.exists()
    assert main.pid == node.main_pid()


def test_signal_in_the_hold_starts_exo_at_once(node: Node, main: psutil.Process) -> None:
    script = node.script("crash.sh", hold="30", start=f"{node.start_command()} &")
    script.wait_for("holding")
    script.process.send_signal(signal.SIGTERM)
    until(lambda: node.main_pid() != main.pid, "a new main", timeout_s=5)
    script.end()
    assert script.status == 0


@pytest.mark.parametrize("moment", ["struck", "holding"])
def test_killed_script_is_healed_from_its_lease(node: Node, main: psutil.Process, moment: str) -> None:
    marker = node.folder / "released"
    script = node.script(
        "crash.sh", hold="30", start=f"{node.start_command()} &", release_cmd=f"touch '{marker}'", hold_cmd="true"
    )
    script.wait_for(moment)
    script.process.kill()
    script.process.wait()
    assert node.leases == ["f1"]
    heal = node.heal("f1")
    assert heal.status == 0, heal.said
    assert node.leases == []
    assert node.main_pid() != main.pid
    assert state(node.main_pid()) in "RS"
    assert marker.exists()


def test_exo_that_ignores_everything_but_kill(node: Node) -> None:
    stubborn = node.folder / "exo_like.py"
    stubborn.write_text(
        "import os, signal, sys, time\n"
        "for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(name, signal.SIG_IGN)\n"
        "open(sys.argv[1] + '/exo.pid', 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(["python3", str(stubborn), str(node.home)])
    until(lambda: node.main_pid() == process.pid, "main is up")
    script = node.script("crash.sh", hold="0.1", start=f"{node.start_command()} &", match="exo_like.py")
    script.wait_for("struck")
    assert process.wait(5) == -signal.SIGKILL
    script.end()
    assert script.status == 0
    assert Path(f"/proc/{node.main_pid()}").exists()
