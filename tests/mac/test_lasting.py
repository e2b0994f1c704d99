"""Faults of the network on a virtual Mac that somebody disturbs, and two at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.hosts import API_PORT, Hosts, Script
from tests.mac.mac import FAULTS

NODE, PEER, OTHER = "node-1", "node-2", "node-3"
ANCHOR = "com.apple/rig_f1"


@pytest.fixture
def hosts(macs: Hosts) -> Iterator[Hosts]:
    """With the stock pf before, and nothing left after."""
    macs.inside(NODE, "pfctl -d; pfctl -q -f /etc/pf.conf")
    yield macs
    macs.inside(NODE, "pfctl -d; pfctl -q -f /etc/pf.conf")
    rig_dir = macs.inventory.nodes[NODE].rig_dir
    left = macs.inside(NODE, f"ls {rig_dir}/leases; ls -A {rig_dir} | grep made; dnctl list").out
    macs.ssh(NODE, f"sh {FAULTS}/heal.sh what=all rig_dir={rig_dir}")  # for the tests that follow
    assert left == ""


def strike(hosts: Hosts, script: str, peer: str, **keys: str) -> Script:
    started = hosts.script(NODE, script, folder=FAULTS, peers=hosts.address(peer), ports=f"{API_PORT}", **keys)
    assert started.wait_for("holding"), started.said
    return started


def test_two_faults_at_once_are_undone_apart(hosts: Hosts) -> None:
    """The second has an anchor of its own: the first one's rules stand when it comes and when it goes."""
    tokens = hosts.inside(NODE, "pfctl -q -s References").out
    first = strike(hosts, "partition.sh", OTHER, id="f1", hold="60")
    rules = hosts.inside(NODE, f"pfctl -q -a {ANCHOR} -s rules").out
    assert "block drop quick" in rules
    second = strike(hosts, "shape.sh", PEER, id="f2", hold="1", effect="delay", amount="100", also="1")
    assert hosts.inside(NODE, f"pfctl -q -a {ANCHOR} -s rules").out == rules
    assert (second.end(), second.ended_as()) == (0, "healed"), second.said
    assert hosts.inside(NODE, f"pfctl -q -a {ANCHOR} -s rules").out == rules
    assert not hosts.reaches(NODE, hosts.address(OTHER), API_PORT)
    heal = f"sh {FAULTS}/heal.sh what=f1 rig_dir={hosts.inventory.nodes[NODE].rig_dir}"
    assert hosts.ssh(NODE, heal).status == 0
    assert (first.end(), first.ended_as()) == (0, "healed"), first.said
    assert hosts.inside(NODE, "pfctl -q -s References").out == tokens
    assert "rig_" not in hosts.inside(NODE, "pfctl -q -s Anchors").out


@pytest.mark.parametrize(
    "harm",
    [
        "pfctl -d",
        "pfctl -d; pfctl -E",
        f"pfctl -q -a {ANCHOR} -F rules",
        f"pfctl -q -a {ANCHOR} -s rules >/tmp/anew; pfctl -q -a {ANCHOR} -f /tmp/anew",
        f"pfctl -q -a {ANCHOR} -s rules | grep -v block >/tmp/anew; pfctl -q -a {ANCHOR} -f /tmp/anew",
        "pfctl -q -F rules",
        "pfctl -q -f /etc/pf.conf",
    ],
)
def test_a_cut_that_does_not_last_is_ineffective_and_healed(hosts: Hosts, harm: str) -> None:
    script = strike(hosts, "partition.sh", PEER, id="f1", hold="8")
    hosts.inside(NODE, harm)
    assert script.end() == 11, script.said
    assert "the cut did not last" in script.fields("ineffective")["reason"]
    assert script.fields("healed"), script.said
    assert hosts.reaches(NODE, hosts.address(PEER), API_PORT)


@pytest.mark.parametrize("harm", ["dnctl pipe 7190 delete", "dnctl pipe 7190 config plr 0.01", "pfctl -d"])
def test_a_loss_that_does_not_last_is_ineffective_and_healed(hosts: Hosts, harm: str) -> None:
    script = strike(hosts, "shape.sh", PEER, id="f1", hold="8", effect="loss", amount="30")
    hosts.inside(NODE, harm)
    assert script.end() == 11, script.said
    assert "the effect did not last" in script.fields("ineffective")["reason"]
    assert script.fields("healed"), script.said
