"""Faults of the machine: hogs, memory, disk; and exo stopped as its operator would."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Event, Node, Script, parse, state, until, uptime

MIB = 2**20


def hogs(event: Event) -> list[psutil.Process]:
    return [psutil.Process(int(item.split(":")[0])) for item in event.fields["pids"].split()]


def named(script: Script, name: str) -> Event:
    return next(event for event in script.end(timeout_s=60) if event.name == name)


def test_cpu_hog_works_and_ends(node: Node) -> None:
    script = node.script("cpu-hog.sh", hold="60", load="2")
    loops = hogs(script.wait_for("struck"))
    assert len(loops) == 2
    assert all(loop.ppid() == script.process.pid for loop in loops)
    until(lambda: sum(loop.cpu_times().user for loop in loops) > 0.3, "the loops use processor time")
    script.process.send_signal(signal.SIGTERM)
    events = script.end(timeout_s=60)
    assert script.status == 0
    assert [event.name for event in events] == ["leased", "struck", "holding", "healing", "healed", "dropped"]
    assert int(events[4].fields["cpu_ms"]) >= 200
    assert not any(loop.is_running() for loop in loops)
    assert node.leases == []


def test_memory_is_taken_and_given_back(node: Node) -> None:
    available = psutil.virtual_memory().available
    script = node.script("memory-pressure.sh", hold="1", leave=str(available - 512 * MIB), most=str(48 * MIB))
    struck = script.wait_for("struck")
    [hog] = hogs(struck)
    assert hog.memory_info().rss > 43 * MIB
    script.end(timeout_s=90)
    assert script.status == 0
    assert not hog.is_running()


def test_nothing_is_taken_where_too_little_is_left(node: Node) -> None:
    script = node.script("memory-pressure.sh", hold="1", leave=str(2**45))
    assert "are to be left" in named(script, "skipped").fields["reason"]
    assert script.status == 10
    script = node.script("disk-fill.sh", hold="1", leave=str(2**46))
    assert "are to be left" in named(script, "skipped").fields["reason"]
    assert node.leases == []


def test_disk_is_filled_to_a_mark_and_emptied(node: Node) -> None:
    script = node.script("disk-fill.sh", hold="1", leave="1048576", most=str(40 * MIB))
    struck = script.wait_for("struck")
    [file] = node.home.glob(".rig-fill-*")
    assert file.stat().st_blocks * 512 >= 40 * MIB
    assert int(struck.fields["bytes"]) >= 40 * MIB
    script.end()
    assert script.status == 0
    assert not file.exists()


def test_a_file_removed_during_the_hold_is_noticed(node: Node) -> None:
    script = node.script("disk-fill.sh", hold="3", leave="1048576", most=str(8 * MIB))
    script.wait_for("holding")
    next(node.home.glob(".rig-fill-*")).unlink()
    assert "removed" in named(script, "ineffective").fields["reason"]
    assert script.status == 11


def test_a_hog_killed_by_somebody_else_is_noticed(node: Node) -> None:
    script = node.script("cpu-hog.sh", hold="10", load="1")
    struck = script.wait_for("struck")
    hogs(struck)[0].kill()
    assert "no longer running" in named(script, "ineffective").fields["reason"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cpu-hog.sh", {"load": "1"}),
        ("memory-pressure.sh", {"leave": "1", "most": str(32 * MIB)}),
        ("disk-fill.sh", {"leave": "1", "most": str(8 * MIB)}),
    ],
)
def test_heal_undoes_what_a_killed_script_left(node: Node, name: str, values: dict[str, str]) -> None:
    script = node.script(name, hold="60", **values)
    script.wait_for("holding")
    struck = next(event for event in node.log("f1") if event.name == "struck")
    left = hogs(struck) if "pids" in struck.fields else []
    script.process.kill()
    script.process.wait()
    assert all(hog.is_running() for hog in left)
    assert node.heal("f1").status == 0
    assert all(state(hog.pid) in "-Z" for hog in left)
    assert list(node.home.glob(".rig-fill-*")) == []
    assert node.leases == []


def without_fallocate(node: Node, tmp_path: Path) -> None:
    """A command of this name that serves nobody comes first on the node's path."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "fallocate").write_text("#!/bin/sh\nexit 1\n")
    (fake / "fallocate").chmod(0o755)
    node.env["PATH"] = f"{fake}:{os.environ['PATH']}"


def test_a_writer_that_outlives_its_script_is_ended_with_it(node: Node, tmp_path: Path) -> None:
    """Where `fallocate` does not serve, writing takes a while; a writer that went on would fill the disk anew."""
    without_fallocate(node, tmp_path)
    script = node.script("disk-fill.sh", hold="60", leave="1048576", most=str(1024 * MIB))
    until(lambda: "\nhogs=\n" not in lease_text(node) and "\nhogs=" in lease_text(node), "the writer is in the lease")
    line = next(line for line in lease_text(node).splitlines() if line.startswith("hogs="))
    writer = psutil.Process(int(line.removeprefix("hogs=").partition(":")[0]))
    writer.suspend()
    script.process.kill()
    script.process.wait()
    assert node.heal("f1").status == 0
    assert state(writer.pid) in "-Z"
    assert list(node.home.glob(".rig-fill-*")) == []
    assert node.leases == []


def test_a_disk_is_filled_where_fallocate_does_not_serve(node: Node, tmp_path: Path) -> None:
    without_fallocate(node, tmp_path)
    script = node.script("disk-fill.sh", hold="1", leave="1048576", most=str(40 * MIB))
    assert int(script.wait_for("struck").fields["bytes"]) >= 40 * MIB
    script.end()
    assert (script.status, list(node.home.glob(".rig-fill-*"))) == (0, [])


def test_a_lease_names_only_files_of_its_own(node: Node, tmp_path: Path) -> None:
    """Fail closed: an edited lease does not make the heal remove a foreign file."""
    precious = tmp_path / "precious"
    precious.write_text("data")
    script = node.script("disk-fill.sh", hold="60", leave="1", most=str(4 * MIB))
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    lease = node.rig_dir / "leases" / "f1"
    ours = next(node.home.glob(".rig-fill-*"))
    lease.write_text(lease.read_text().replace(f"filled={ours}", f"filled={precious}"))
    assert node.heal("f1").status == 12
    assert precious.read_text() == "data"
    assert node.leases == ["f1"]
    lease.write_text(lease.read_text().replace(f"filled={precious}", f"filled={ours}"))
    assert node.heal("f1").status == 0


def test_hogs_end_by_themselves_when_everything_else_is_dead(node: Node) -> None:
    script = node.script("cpu-hog.sh", hold="0.1", load="1")
    [hog] = hogs(script.wait_for("struck"))
    os.kill(script.process.pid, signal.SIGSTOP)  # not even the script is there to end it
    until(lambda: state(hog.pid) in "-Z", "the loop's own alarm", timeout_s=30)
    os.kill(script.process.pid, signal.SIGCONT)
    script.end()


def test_graceful_stop_ends_exo_by_term_and_starts_it_again(node: Node, main: psutil.Process) -> None:
    tree = [main.pid, *(child.pid for child in main.children())]
    stop = f"kill -TERM {' '.join(map(str, tree))}"
    script = node.script("graceful-stop.sh", hold="0.5", start=f"{node.start_command()} &", stop=stop)
    script.wait_for("struck")
    assert all(state(pid) in "-Z" for pid in tree)
    healed = named(script, "healed")
    assert script.status == 0
    assert healed.fields["started"] == "1"
    assert int(healed.fields["new_main"].split(":")[0]) == node.main_pid() != main.pid


def test_what_does_not_stop_is_left_running(node: Node, main: psutil.Process) -> None:
    script = node.script("graceful-stop.sh", hold="0.5", start=f"{node.start_command()} &", stop="true")
    until(lambda: "phase=struck" in lease_text(node), "the stop was asked for")
    begun = time.monotonic()
    script.process.send_signal(signal.SIGTERM)  # rather than wait for its 30 s
    events = script.end(timeout_s=60)
    assert time.monotonic() - begun < 30
    assert "did not end" in next(event for event in events if event.name == "ineffective").fields["reason"]
    assert (script.status, main.is_running(), node.leases) == (11, True, [])


def lease_text(node: Node) -> str:
    try:
        return (node.rig_dir / "leases" / "f1").read_text()
    except FileNotFoundError:
        return ""


def test_a_reboot_that_does_not_come_is_ineffective(node: Node, main: psutil.Process, tmp_path: Path) -> None:
    """`shutdown` replaced by one that refuses."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "shutdown").write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    (fake / "shutdown").chmod(0o755)
    node.env["PATH"] = f"{fake}:{os.environ['PATH']}"
    script = node.script("reboot.sh", start="false")
    assert named(script, "ineffective").fields["reason"] == "shutdown: not today"
    assert (script.status, node.leases, main.is_running()) == (11, [], True)


def restart_that_does_not_come(node: Node, tmp_path: Path) -> tuple[Script, Path]:
    """The script that asked for it and waits, and its lease."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "shutdown").write_text("#!/bin/sh\nexit 0\n")
    (fake / "shutdown").chmod(0o755)
    node.env["PATH"] = f"{fake}:{os.environ['PATH']}"
    script = node.script("reboot.sh", start=f"{node.start_command()} &")
    script.wait_for("striking")
    return script, node.rig_dir / "leases" / "f1"


def ended(lease: Path, ago_s: float) -> None:
    lease.write_text(re.sub(r"deadline=.*", f"deadline={uptime() - ago_s:.3f}", lease.read_text()))


def test_a_restart_that_may_still_come_keeps_its_lease(node: Node, main: psutil.Process, tmp_path: Path) -> None:
    """It was asked for and its script is dead: without the lease nobody would start exo after the boot."""
    script, lease = restart_that_does_not_come(node, tmp_path)
    live = node.heal("f1")
    assert (live.status, script.process.poll(), node.leases) == (12, None, ["f1"])
    script.process.kill()
    script.process.wait()
    dead = node.heal("all")
    assert "may still come" in next(event for event in parse(dead.said) if event.name == "unhealed").fields["reason"]
    ended(lease, 20)
    assert (node.heal("expired").status, node.leases) == (0, ["f1"])
    later = node.script("freeze.sh", hold="1", id="f2")
    assert "in force" in named(later, "skipped").fields["reason"]
    ended(lease, 60)
    assert (node.heal("expired").status, node.leases) == (0, [])
    assert main.is_running()


def test_a_script_that_is_stopped_knows_of_no_restart(node: Node, main: psutil.Process, tmp_path: Path) -> None:
    """One that works waits for two minutes; nobody waits for ever for one that does not."""
    script, lease = restart_that_does_not_come(node, tmp_path)
    ended(lease, 60)
    assert (node.heal("f1").status, script.process.poll(), node.leases) == (12, None, ["f1"])
    script.process.send_signal(signal.SIGSTOP)
    until(lambda: state(script.process.pid) == "T", "it is stopped")
    assert (node.heal("f1").status, node.leases) == (0, [])
    assert main.is_running()


def test_after_a_reboot_exo_is_started_and_the_lease_dropped(node: Node, tmp_path: Path) -> None:
    """The next boot is another value of RIG_EMULATED_BOOT, as an emulated machine sets it."""
    main = node.start_exo()
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "shutdown").write_text("#!/bin/sh\nexit 0\n")
    (fake / "shutdown").chmod(0o755)
    node.env |= {"PATH": f"{fake}:{os.environ['PATH']}", "RIG_EMULATED_BOOT": "boot-1"}
    script = node.script("reboot.sh", start=f"{node.start_command()} &")
    script.wait_for("striking")
    script.process.send_signal(signal.SIGTERM)  # as a machine on its way down sends it: the lease must outlive it
    until(lambda: "phase=struck" in lease_text(node), "the lease stands")
    script.process.kill()
    script.process.wait()
    for process in [*main.children(), main]:
        process.kill()
    main.wait()
    node.env["RIG_EMULATED_BOOT"] = "boot-2"
    heal = node.heal("expired")
    assert heal.status == 0
    healed = next(event for event in node.log("f1") if event.name == "healed")
    assert (healed.fields["rebooted"], healed.fields["new_boot"]) == ("1", "boot-2")
    assert node.main_pid() != main.pid
    assert node.leases == []
