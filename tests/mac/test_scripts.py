"""The stock node scripts on a Mac: their Darwin branch, on the Darwin that there is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hosts.hosts import Hosts, Script
from tests.mac.mac import ANCHOR, FAULTS, Tools

EXO = Path(__file__).with_name("fakeexo.pl")


@dataclass
class Node:
    """The Mac as the scripts see it: a stand-in for exo runs on it."""

    tools: Tools
    home: str

    @property
    def start(self) -> str:
        return f"perl {EXO} {self.home} </dev/null >/dev/null 2>&1 &"

    @property
    def rig_dir(self) -> str:
        return f"{self.home}/rig"

    def command(self, name: str, **keys: str) -> str:
        about = {"rig_dir": self.rig_dir, "home": self.home, "match": f"fakeexo[.]pl {self.home}"}
        fault = {"id": "m1", "run": "t", "owner": "tests"}
        given = about | ({} if name in {"heal.sh", "inspect.sh"} else fault) | keys
        words = " ".join(f"'{key}={value}'" for key, value in given.items())
        return f"sh {FAULTS}/{name} {words}"

    def strike(self, name: str, **keys: str) -> Script:
        script = Script(self.tools.start(self.command(name, **keys)))
        assert script.wait_for("struck"), script.said
        return script

    def facts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in self.tools.must(self.command("inspect.sh")).splitlines():
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
        return found

    def states(self) -> list[str]:
        return [proc.split("|")[3] for proc in self.facts().get("proc", [])]

    def leases(self) -> str:
        return self.tools.mac.run(f"ls {self.rig_dir}/leases").out


@pytest.fixture
def node(mac: Tools) -> Iterator[Node]:
    home = f"{mac.mac.folder}/exo"
    mac.must(f"rm -rf {home}; mkdir -p {home}/rig; chmod 700 {home}/rig")
    node = Node(mac, home)
    mac.must(node.start)
    mac.until(lambda: len(node.states()) == 4, "the stand-in runs with its children")
    yield node
    mac.must(node.command("heal.sh", what="all"), timeout_s=90)
    assert node.leases() == ""
    mac.must(f"ps -axww -o pid,command | awk '/[f]akeexo/ {{ print $1 }}' | xargs kill -KILL; rm -rf {home}")


def test_inspect(node: Node) -> None:
    facts = node.facts()
    assert facts["os"] == ["Darwin"]
    assert re.fullmatch(r"[0-9A-F-]{36}", facts["boot_id"][0])
    assert len(facts["proc"]) == 4
    assert facts["proc"][0].split("|")[0] == facts["main_pid"][0]
    assert int(facts["mem_available"][0]) > 2**20
    assert int(facts["mem_wired"][0]) >= 0
    assert int(facts["disk_free"][0]) > 2**20
    assert facts["sudo_filter"] == ["1"]
    assert facts["have_filter"] == ["/sbin/pfctl"] or facts["have_filter"][0].endswith("/pfctl")


def test_freeze(node: Node) -> None:
    script = node.strike("freeze.sh", hold="60")
    assert node.states() == ["T"] * 4
    node.tools.must(node.command("heal.sh", what="all"), timeout_s=90)
    assert script.end() == 0, script.said
    assert "T" not in node.states()


def test_crash(node: Node) -> None:
    before = node.facts()["main_pid"]
    script = node.strike("crash.sh", hold="1", start=node.start)
    assert script.end() == 0, script.said
    node.tools.until(lambda: len(node.states()) == 4, "runs again")
    assert node.facts()["main_pid"] != before


def test_a_killed_freeze_is_healed(node: Node) -> None:
    node.strike("freeze.sh", hold="60")
    node.tools.must(f"kill -KILL $(sed -n 's/^script_pid=//p' {node.rig_dir}/leases/m1)")
    assert node.states() == ["T"] * 4
    node.tools.must(node.command("heal.sh", what="all"), timeout_s=90)
    assert "T" not in node.states()


def test_a_freeze_of_a_session_in_another_zone_is_healed(node: Node) -> None:
    """The guard's shell has no TZ, as launchd starts it."""
    script = Script(node.tools.start(f"TZ=EST5 {node.command('freeze.sh', hold='60')}"))
    assert script.wait_for("struck"), script.said
    node.tools.must(f"kill -KILL $(sed -n 's/^script_pid=//p' {node.rig_dir}/leases/m1)")
    node.tools.must(f"unset TZ; {node.command('heal.sh', what='all')}", timeout_s=90)
    assert node.states()
    assert "T" not in node.states()


@pytest.mark.usefixtures("macs")  # not on the Mac of somebody
def test_the_zone_of_the_machine_changes_in_a_freeze(node: Node) -> None:
    """The script itself lives, and heals."""
    script = node.strike("freeze.sh", hold="60")
    before = node.tools.must("readlink /etc/localtime").strip()
    local = node.tools.must("ps -o lstart= -p 1")
    node.tools.must("ln -sf /usr/share/zoneinfo/Asia/Kathmandu /etc/localtime")
    try:
        assert node.tools.must("ps -o lstart= -p 1") != local
        node.tools.must(f"kill -TERM $(sed -n 's/^script_pid=//p' {node.rig_dir}/leases/m1)")
        assert script.end() == 0, script.said
        assert node.states()
        assert "T" not in node.states()
    finally:
        node.tools.must(f"ln -sf {before} /etc/localtime")


@pytest.mark.parametrize("killed", [False, True])
def test_partition(node: Node, killed: bool) -> None:  # noqa: FBT001
    """Cut, proved, healed; by heal.sh when the script was killed. pf is as before."""
    tools, peer = node.tools, node.tools.mac.peer
    was = tools.enabled()
    script = node.strike("partition.sh", hold="60", peers=peer.address, ports=str(peer.port))
    assert not tools.reaches()
    assert "block drop quick" in tools.must(f"pfctl -q -a {ANCHOR}_m1 -s rules")
    assert int(script.fields("struck")["packets"]) > 0
    if killed:
        tools.must(f"kill -KILL $(sed -n 's/^script_pid=//p' {node.rig_dir}/leases/m1)")
        script.end()
        assert not tools.reaches()
    tools.must(node.command("heal.sh", what="all"), timeout_s=90)
    if not killed:
        assert script.end() == 0, script.said
    assert tools.reaches()
    assert tools.enabled() == was
    assert tools.must(f"pfctl -q -a {ANCHOR}_m1 -s rules") == ""


# Answers whatever it is asked.
RESOLVER = """
import socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 53))
print("up", flush=True)
while True:
    query, sender = listener.recvfrom(4096)
    listener.sendto(query[:2] + b"\\x81\\x80" + query[4:], sender)
"""
SCUTIL = """#!/bin/sh
[ "$*" = --dns ] && cat <<END
DNS configuration

resolver #1
  search domain[0] : lan
  nameserver[0] : ADDRESS
  nameserver[1] : 127.0.0.1
  if_index : 6 (en0)

resolver #2
  domain   : local
  options  : mdns
END
"""


@pytest.fixture
def resolver(macs: Hosts) -> Iterator[str]:
    """The address of one, on another Mac."""
    command = [*macs.in_network("node-2"), sys.executable, "-c", RESOLVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        yield macs.address("node-2")
        server.kill()


@pytest.mark.parametrize("killed", [False, True])
def test_name_resolution(node: Node, resolver: str, killed: bool) -> None:  # noqa: FBT001
    """The resolvers that `scutil` names, and nothing else of those machines."""
    tools, was = node.tools, node.tools.enabled()
    tools.must(f"mkdir -p {node.home}/bin")
    tools.must(f"cat >{node.home}/bin/scutil <<'END OF FILE'\n{SCUTIL.replace('ADDRESS', resolver)}END OF FILE")
    tools.must(f"chmod 755 {node.home}/bin/scutil")
    script = Script(tools.start(f"PATH={node.home}/bin:$PATH {node.command('name-resolution.sh', hold='60')}"))
    assert script.wait_for("struck"), script.said
    assert script.fields("struck")["resolvers"] == f"{resolver},dns"
    assert int(script.fields("struck")["packets"]) > 0
    rules = tools.must(f"pfctl -q -a {ANCHOR}_m1 -s rules")
    assert f"proto udp from any to {resolver} port = 53" in rules.replace("domain", "53")
    assert "to 224.0.0.251 port = 5353" in rules.replace("mdns", "5353")
    assert tools.reaches()
    if killed:
        tools.must(f"kill -KILL $(sed -n 's/^script_pid=//p' {node.rig_dir}/leases/m1)")
        script.end()
    tools.must(node.command("heal.sh", what="all"), timeout_s=90)
    if not killed:
        assert script.end() == 0, script.said
        assert script.fields("healed")["reopened"] == "1"
    assert tools.enabled() == was
    assert tools.must(f"pfctl -q -a {ANCHOR}_m1 -s rules") == ""
