"""The Darwin branch of the scripts, with commands of macOS on the PATH: perl's clock, ps for every look, pf."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.network import API_PORT, NODE4, PEER4, PEER6, SSH_PORT, ZENOH_PORT, Network, free_port
from tests.faults.node import Node, parse, state, until

VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10.
Pages active:                          99999.
Pages inactive:                           20.
Pages speculative:                         5.
Pages wired down:                        100.
"""


# The sh of macOS is a bash; the commands it calls are what differs.
pytestmark = pytest.mark.parametrize("node", ["bash"], indirect=True)


@pytest.fixture
def mac(node: Node) -> Node:
    shims = node.folder / "mac"
    shims.mkdir()
    commands = {
        "uname": "echo Darwin",
        "sysctl": '[ "$*" = "-n kern.bootsessionuuid" ] && echo 5F0C-BOOT',
        "vm_stat": f"cat <<'END'\n{VM_STAT}END",
        "pfctl": f'exec {sys.executable} {Path(__file__).with_name("pfctl.py")} "$@"',
        "nft": "echo 'nft: not on a Mac' >&2; exit 127",
    }
    for name, text in commands.items():
        (shims / name).write_text(f"#!/bin/sh\n{text}\n")
        (shims / name).chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    node.env["PFCTL_STATE"] = str(node.folder / "pf.json")
    stock = 'anchor "com.apple/*" all'
    pf(node, {"tokens": [], "anchor": "rig_f1", "rules": "", "text": "", "calls": [], "main": stock})
    return node


def pf(node: Node, value: dict[str, Any] | None = None) -> dict[str, Any]:
    file = Path(node.env["PFCTL_STATE"])
    if value is not None:
        file.write_text(json.dumps(value))
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("echo 'FileVault is Off.'", 11),
        ("echo 'FileVault is On.'", 10),
        ("echo 'FileVault is Off, but will be enabled after the next restart.'", 10),
        ("echo 'FileVault is Off.'; echo 'Encryption in progress: Percent completed = 9'", 10),
        ("echo 'fdesetup: no' >&2; exit 1", 10),
        ("exit 0", 10),
    ],
)
def test_a_mac_is_restarted_only_without_filevault(mac: Node, says: str, status: int) -> None:
    """11: it was asked to, and refused. 10: it was not even asked."""
    asked = mac.folder / "asked"
    for name, text in (("fdesetup", says), ("shutdown", f"touch '{asked}'; echo not today; exit 1")):
        (mac.folder / "mac" / name).write_text(f"#!/bin/sh\n{text}\n")
        (mac.folder / "mac" / name).chmod(0o755)
    script = mac.script("reboot.sh", start="false")
    last = script.end()[-1]
    assert (script.status, asked.exists()) == (status, status == 11)
    if status == 10:
        assert last.name == "skipped"
        assert "FileVault" in last.fields["reason"] or "fdesetup" in last.fields["reason"]
    assert mac.leases == []


def test_freeze(mac: Node) -> None:
    mac.start_exo()
    script = mac.script("freeze.sh", hold="0.8")
    struck = script.wait_for("struck")
    assert all(state(pid) == "T" for pid in mac.tree())
    events = script.end()
    assert script.status == 0, events
    assert all(state(pid) in "RS" for pid in mac.tree())
    assert len(struck.fields["pids"].split()) == 5
    assert "_" in struck.fields["main"]


def test_crash(mac: Node) -> None:
    main = mac.start_exo()
    tree = mac.tree()
    script = mac.script("crash.sh", hold="1.1", start=f"{mac.start_command()} &")
    script.wait_for("struck")
    assert all(state(pid) in "-Z" for pid in tree)
    events = script.end()
    assert script.status == 0, events
    assert state(mac.main_pid()) in "RS"
    assert mac.main_pid() != main.pid


def test_killed_freeze_is_healed(mac: Node) -> None:
    mac.start_exo()
    script = mac.script("freeze.sh", hold="60")
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    assert "boot_id=5F0C-BOOT\n" in (mac.rig_dir / "leases" / "f1").read_text()
    assert mac.heal().status == 0
    assert all(state(pid) in "RS" for pid in mac.tree())
    assert mac.leases == []


def test_runner_kill(mac: Node) -> None:
    ports = [free_port(), free_port()]
    main = mac.start_exo(2, *ports)
    script = mac.script("runner-kill.sh", port=str(ports[0]), others=str(ports[1]))
    events = script.end()
    assert script.status == 0, events
    assert sum(state(child.pid) in "RS" for child in main.children()) == 2


def test_inspect(mac: Node) -> None:
    main = mac.start_exo()
    said = mac.inspect()
    facts = dict(said)
    assert facts["os"] == "Darwin"
    assert facts["main_pid"] == str(main.pid)
    assert len([value for key, value in said if key == "proc"]) == 5
    assert facts["mem_available"] == str(35 * 16384)
    assert facts["mem_wired"] == str(100 * 16384)
    assert facts["have_filter"].endswith("/mac/pfctl")


def test_partition(mac: Node, network: Network) -> None:
    network.serve(network.node_ns, f"4:{SSH_PORT}")
    ssh = network.connect(network.peer_ns, NODE4, SSH_PORT)
    four = network.connect(network.node_ns, PEER4, API_PORT)
    assert (ssh.ask(), four.ask()) == ("echo", "echo")
    mac.env["SSH_CONNECTION"] = f"{PEER4} 50000 {NODE4} {SSH_PORT}"
    script = mac.script("partition.sh", hold="60", peers=network.peers)
    struck = script.wait_for("struck")
    assert (ssh.ask(), four.ask()) == ("echo", "silent")
    assert not network.reaches(f"{PEER6}%vnode", ZENOH_PORT)
    assert struck.fields["anchor"] == "com.apple/rig_f1"
    assert struck.fields["cut"] == "ipv4 ipv6"
    assert int(struck.fields["packets"]) > 0
    script.process.send_signal(signal.SIGTERM)
    events = script.end()
    assert script.status == 0, events
    healed = next(event for event in events if event.name == "healed")
    assert healed.fields["token_returned"] == "1"
    assert network.reaches(PEER4, API_PORT)
    assert (pf(mac)["tokens"], pf(mac)["rules"]) == ([], "")
    assert not list(mac.rig_dir.glob(".made*"))


def test_killed_partition_is_healed_and_returns_its_own_token(mac: Node, network: Network) -> None:
    pf(mac, pf(mac) | {"tokens": [77]})
    script = mac.script("partition.sh", hold="60", peers=network.peers)
    script.wait_for("struck")
    script.process.kill()
    script.process.wait()
    assert not network.reaches(PEER4, API_PORT)
    heal = mac.heal()
    assert heal.status == 0, heal.said
    assert (pf(mac)["tokens"], pf(mac)["rules"]) == ([77], "")
    until(lambda: network.reaches(PEER4, API_PORT), "open again")


def test_the_token_is_noted_before_the_rules_are_loaded(mac: Node, network: Network) -> None:
    """Loading fails, once pf was enabled: the token comes back all the same."""
    (mac.folder / "mac" / "pfctl").write_text(
        f'#!/bin/sh\n[ "$4" != -f ] || {{ cp "{mac.rig_dir}/.made.rig_f1" "{mac.folder}/seen"; exit 1; }}\n'
        f'exec {sys.executable} {Path(__file__).with_name("pfctl.py")} "$@"\n'
    )
    script = mac.script("partition.sh", hold="60", peers=network.peers)
    events = script.end()
    assert script.status == 10, events
    seen = (mac.folder / "seen").read_text()
    assert "token=9" in seen
    assert pf(mac)["tokens"] == []
    assert mac.leases == []


def test_rules_of_somebody_else_in_the_anchor_are_left_alone(mac: Node, network: Network) -> None:
    pf(mac, pf(mac) | {"anchor": "rig_other", "rules": "pass quick on lo0 all no state"})
    script = mac.script("partition.sh", hold="1", peers=network.peers)
    events = script.end()
    assert script.status == 10
    assert "no lease names them" in events[-1].fields["reason"]
    assert mac.heal().status == 0
    assert pf(mac)["rules"] != ""
    assert not [call for call in pf(mac)["calls"] if "-F" in call or "-E" in call]


def test_anchor_that_is_not_referenced(mac: Node, network: Network) -> None:
    pf(mac, pf(mac) | {"main": 'anchor "org.other/*" all'})
    script = mac.script("partition.sh", hold="1", peers=network.peers)
    events = script.end()
    assert script.status == 10
    assert "not referenced" in events[-1].fields["reason"]
    assert [event.name for event in parse(script.said)] == ["skipped"]
