"""freeze.sh against a real tree, judged by /proc and not by what the script says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.node import EXO_LIKE, FAULTS, Node, state, until, uptime


def all_in(pids: list[int], letters: str) -> bool:
    return all(state(pid) in letters for pid in pids)


def test_whole_tree_is_stopped_for_the_whole_hold_and_no_longer(node: Node, main: psutil.Process) -> None:
    tree = node.tree()
    script = node.script("freeze.sh", hold="1.2")
    struck = script.wait_for("struck")
    while uptime() < struck.t + 1.1:
        assert [state(pid) for pid in tree] == ["T"] * len(tree)
        time.sleep(0.02)
    until(lambda: all_in(tree, "RS"), "everything runs again", timeout_s=2.0)
    events = script.end()
    assert script.status == 0
    assert [event.name for event in events] == ["leased", "struck", "holding", "healing", "healed", "dropped"]
    healed = events[4]
    assert healed.fields["held"] == "1"
    assert int(healed.fields["samples"]) >= 2
    assert 1.19 <= healed.t - struck.t <= 3.2  # the node heals within the hold and 2 s
    assert {item.split(":")[0] for item in struck.fields["pids"].split()} == {str(pid) for pid in tree}
    assert node.leases == []
    assert main.is_running()


def test_resumed_by_somebody_else_is_ineffective(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="2")
    script.wait_for("holding")
    runner = node.tree()[-1]
    os.kill(runner, signal.SIGCONT)
    events = script.end()
    assert script.status == 11
    ineffective = next(event for event in events if event.name == "ineffective")
    assert str(runner) in ineffective.fields["reason"]
    healed = next(event for event in events if event.name == "healed")
    assert healed.fields["held"] == "0"
    assert healed.fields["escaped"].split(":")[0] == str(runner)
    assert all_in(node.tree(), "RS")
    assert main.is_running()


def test_resumed_and_stopped_again_during_the_hold_is_seen(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="2.5")
    script.wait_for("holding")
    os.kill(main.pid, signal.SIGCONT)
    time.sleep(0.8)  # several samples of the script
    os.kill(main.pid, signal.SIGSTOP)
    script.end()
    assert script.status == 11
    assert main.status() != psutil.STATUS_STOPPED


def test_signal_goes_to_the_recorded_process_only(node: Node, main: psutil.Process) -> None:
    """`signal` itself, which every kill goes through: a pid with another start time is another process."""
    tick = Path(f"/proc/{main.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    lib = f". '{FAULTS}/lib.sh'"
    for items in (f"{main.pid}:{int(tick) + 1}", f"{main.pid}:", f"{main.pid}", "1:1 0:0 -1:-1 x:y"):
        subprocess.run([*node.shell, "-c", f"{lib}; signal STOP {items}"], check=True, timeout=10)
        assert state(main.pid) in "RS"
    subprocess.run([*node.shell, "-c", f"{lib}; signal STOP {main.pid}:{tick}"], check=True, timeout=10)
    until(lambda: state(main.pid) == "T", "stopped")
    main.resume()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_signal_heals_at_once(node: Node, main: psutil.Process, name: str) -> None:
    script = node.script("freeze.sh", hold="30")
    script.wait_for("holding")
    tree = node.tree()
    assert all_in(tree, "T")
    script.process.send_signal(getattr(signal, name))
    until(lambda: all_in(tree, "RS"), "everything runs again", timeout_s=2.0)
    events = script.end()
    assert script.status == 0
    assert next(event for event in events if event.name == "healing").fields["why"] == "signal"
    assert node.leases == []
    assert main.is_running()


def test_reader_gone_ends_neither_hold_nor_heal(node: Node, main: psutil.Process) -> None:
    script = node.script("freeze.sh", hold="2")
    struck = script.wait_for("struck")
    tree = node.tree()
    script.stop_reading()
    while uptime() < struck.t + 1.9:
        assert all_in(tree, "T")
        time.sleep(0.02)
    script.end()
    assert script.status == 0
    assert all_in(tree, "RS")
    assert [event.name for event in node.log("f1")][-2:] == ["healed", "dropped"]
    assert main.is_running()


def test_child_born_during_the_strike_is_stopped_too(node: Node) -> None:
    """A main that forks all the time: whatever it has made by the time it stands still must stand still."""
    home = node.home
    code = (
        "import os,subprocess,sys,time\n"
        "open(sys.argv[2]+'/exo.pid','w').write(str(os.getpid()))\n"
        "for _ in range(60):\n"
        " subprocess.Popen([sys.executable,'-S','-E','-c','import time;time.sleep(20)'])\n"
        " time.sleep(0.004)\n"
        "time.sleep(20)\n"
    )
    subprocess.Popen([sys.executable, "-S", "-c", code, f"{EXO_LIKE} /", str(home)])
    until(lambda: node.main_pid() != 0, "main is up")
    script = node.script("freeze.sh", hold="1.5")
    script.wait_for("struck")
    tree = node.tree()
    assert len(tree) > 1
    assert all_in(tree, "T")
    events = script.end()
    assert script.status == 0, events
    assert not any(state(pid) == "T" for pid in node.tree())  # it forks on, which is a state of its own


def test_bystanders_are_not_touched(node: Node, main: psutil.Process) -> None:
    """A process of the same looks beside the tree, and one that names the home, stay as they are."""
    sleeper = "import time;time.sleep(30)"
    lookalikes = [
        subprocess.Popen([sys.executable, "-c", sleeper, "spawn_main", "--multiprocessing-fork"]),
        subprocess.Popen([sys.executable, "-c", sleeper, f"{EXO_LIKE} {node.home}"]),
    ]
    script = node.script("freeze.sh", hold="1.5")
    script.wait_for("struck")
    assert all(state(one.pid) in "RS" for one in lookalikes)
    script.end()
    assert script.status == 0
    for one in lookalikes:
        assert one.poll() is None
        one.kill()
        one.wait()
    assert main.is_running()


def test_pid_in_the_pid_file_of_another_process_is_never_signalled(node: Node) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time;time.sleep(30)"])
    (node.home / "exo.pid").write_text(str(other.pid))
    for name, more in (("freeze.sh", {}), ("crash.sh", {"start": "true"}), ("runner-kill.sh", {"port": "50000"})):
        script = node.script(name, **({} if name == "runner-kill.sh" else {"hold": "0.1"}), **more)
        events = script.end()
        assert script.status == 10
        assert [event.name for event in events] == ["skipped"]
        assert state(other.pid) in "RS"
    other.kill()
    other.wait()


def test_senseless_pid_file_is_skipped(node: Node) -> None:
    for content in ("", "0", "1", "-1", "00", "12x", "1 2", "99999999999", "$(reboot)"):
        (node.home / "exo.pid").write_text(content)
        script = node.script("freeze.sh", hold="0.1", match=".")
        assert [event.name for event in script.end()] == ["skipped"], content
        assert script.status == 10, content


def test_process_stopped_by_somebody_else_is_left_stopped(node: Node, main: psutil.Process) -> None:
    runner = node.tree()[-1]
    os.kill(runner, signal.SIGSTOP)
    until(lambda: state(runner) == "T", "stopped")
    script = node.script("freeze.sh", hold="0.1")
    events = script.end()
    assert script.status == 10
    assert "already stopped" in events[-1].fields["reason"]
    assert state(runner) == "T"
    assert state(main.pid) in "RS"


def test_kill_that_does_nothing_is_ineffective(node: Node, main: psutil.Process) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "kill").write_text("#!/bin/sh\nexit 0\n")
    (shims / "kill").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = node.script("freeze.sh", hold="0.2")
    events = script.end()
    assert script.status == 11
    assert [event.name for event in events] == ["leased", "ineffective", "healing", "healed", "dropped"]
    assert node.leases == []
    assert main.is_running()


def test_at_waits_for_that_moment_of_the_node_clock(node: Node, main: psutil.Process) -> None:
    at = uptime() + 1.5
    script = node.script("freeze.sh", hold="0.1", at=f"{at:.2f}")
    struck = script.wait_for("struck")
    assert at - 0.02 <= struck.t <= at + 3.0
    script.end()
    assert main.is_running()
