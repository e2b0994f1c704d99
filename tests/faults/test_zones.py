"""Who a process is does not depend on the time zone of who looks. (In the Darwin branch `ps` reads the starts.)"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Node, Script, state, until

EST = "EST5"
LSTART = re.compile(r"[A-Z][a-z]{2}_[A-Z][a-z]{2}_\d+_\d\d:\d\d:\d\d_\d{4}_UTC")

pytestmark = pytest.mark.parametrize("node", ["bash"], indirect=True)


@pytest.fixture
def mac(node: Node) -> Node:
    """Its `ps` is in the zone that stands in the file `zone`, where TZ is not set."""
    shims = node.folder / "mac"
    shims.mkdir()
    (shims / "zone").write_text("UTC0")
    commands = {
        "uname": "echo Darwin",
        "sysctl": "echo 5F0C-BOOT",
        "ps": f'TZ=${{TZ-$(cat "{shims}/zone")}} exec /bin/ps "$@"',
    }
    for name, text in commands.items():
        (shims / name).write_text(f"#!/bin/sh\n{text}\n")
        (shims / name).chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    node.start_exo()
    return node


def held(mac: Node) -> Script:
    script = mac.script("freeze.sh", hold="60")
    script.wait_for("holding")
    assert all(state(pid) == "T" for pid in mac.tree())
    return script


def kill(script: Script) -> None:
    script.process.kill()
    script.process.wait()


def lease(mac: Node) -> Path:
    return mac.rig_dir / "leases" / "f1"


def local(text: str, away: timedelta) -> str:
    """Its starts as earlier versions wrote them: local time, without the zone."""

    def moved(found: re.Match[str]) -> str:
        at = datetime.strptime(f"{found[0]}+0000", "%a_%b_%d_%H:%M:%S_%Y_UTC%z") + away
        return at.strftime(f"%a_%b_{at.day}_%H:%M:%S_%Y")

    return LSTART.sub(moved, text)


@pytest.mark.parametrize(("session", "healer"), [(EST, None), (None, EST), (EST, "XYZ-5:45")])
def test_a_healer_in_another_zone_resumes_what_was_frozen(mac: Node, session: str | None, healer: str | None) -> None:
    mac.env |= {"TZ": session} if session else {}
    kill(held(mac))
    mac.env.pop("TZ", None)
    mac.env |= {"TZ": healer} if healer else {}
    heal = mac.heal()
    assert [state(pid) for pid in mac.tree() if state(pid) not in "RS"] == []
    assert (heal.status, mac.leases) == (0, [])


def test_a_live_script_is_asked_by_a_healer_in_another_zone(mac: Node) -> None:
    mac.env["TZ"] = EST
    script = held(mac)
    del mac.env["TZ"]
    assert dict(mac.inspect(what="leases"))["lease"].endswith("|1|1")
    heal = mac.heal("f1")
    assert (heal.status, script.process.wait(10), "by=script" in heal.said) == (0, 0, True)
    assert all(state(pid) in "RS" for pid in mac.tree())


def test_the_zone_of_the_machine_changes_during_the_hold(mac: Node) -> None:
    script = held(mac)
    (mac.folder / "mac" / "zone").write_text(EST)
    script.process.send_signal(signal.SIGTERM)
    events = script.end()
    assert [state(pid) for pid in mac.tree() if state(pid) not in "RS"] == []
    assert (script.status, [event.name for event in events if event.name == "ineffective"]) == (0, [])


def test_the_same_process_has_the_same_start_in_every_zone(mac: Node) -> None:
    before = mac.inspect(what="tree")
    mac.env["TZ"] = EST
    after = mac.inspect(what="tree")
    assert dict(before)["main_start"] == dict(after)["main_start"]
    identities = [[value.split("|")[0:3:2] for key, value in said if key == "proc"] for said in (before, after)]
    assert identities[0] == identities[1]


@pytest.mark.parametrize("away", [timedelta(hours=-5), timedelta(hours=5, minutes=45), timedelta(hours=14)])
def test_a_lease_of_an_earlier_version_is_healed(mac: Node, away: timedelta) -> None:
    kill(held(mac))
    old = local(lease(mac).read_text(), away)
    assert "_UTC" not in old
    lease(mac).write_text(old)
    heal = mac.heal()
    assert [state(pid) for pid in mac.tree() if state(pid) not in "RS"] == []
    assert (heal.status, mac.leases) == (0, [])


def test_a_live_script_of_an_earlier_version_is_known(mac: Node) -> None:
    script = held(mac)
    lease(mac).write_text(local(lease(mac).read_text(), timedelta(hours=-5)))
    assert dict(mac.inspect(what="leases"))["lease"].endswith("|1|1")
    assert mac.heal("f1").status == 0
    assert script.process.wait(10) == 0


def test_a_start_that_no_zone_explains_is_somebody_elses(mac: Node) -> None:
    kill(held(mac))
    bystander = subprocess.Popen([sys.executable, "-c", "import time;time.sleep(60)"])
    os.kill(bystander.pid, signal.SIGSTOP)
    until(lambda: state(bystander.pid) == "T", "stopped")
    begun = datetime.fromtimestamp(psutil.Process(bystander.pid).create_time(), UTC)
    text = lease(mac).read_text()
    for away in (timedelta(minutes=7), timedelta(hours=15)):
        at = begun + away
        item = f"{bystander.pid}:{at.strftime(f'%a_%b_{at.day}_%H:%M:%S_%Y')}"
        lease(mac).write_text(re.sub(r"(?m)^pids=", f"pids={item} ", text))
        assert mac.heal().status == 0
        assert state(bystander.pid) == "T"
    bystander.kill()
    bystander.wait()


def test_one_garbled_pid_does_not_hide_the_others(mac: Node) -> None:
    """`ps -p` answers for none of a list in which one is no number."""
    kill(held(mac))
    lease(mac).write_text(re.sub(r"(?m)^pids=", "pids=x:1 ", lease(mac).read_text()))
    heal = mac.heal()
    assert [state(pid) for pid in mac.tree() if state(pid) not in "RS"] == []
    assert (heal.status, mac.leases) == (12, ["f1"])
    assert "pids=x:1" in heal.said
