"""The stock partition script on nodes with networks of their own: real addresses, real nftables, real SSH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hosts.hosts import API_PORT, EXO_PORT, Hosts, Script, until

FAULTS = Path(__file__).parent.parent.parent / "faults"
Partition = Callable[..., Script]
CONTROLLER = 250


@pytest.fixture
def partition(hosts: Hosts) -> Iterator[Partition]:
    """Strike node-1 and wait until it is proved; healed at the end, and proved gone."""
    scripts: list[Script] = []

    def strike(**keys: str) -> Script:
        script = hosts.script("node-1", "partition.sh", folder=FAULTS, **({"hold": "60"} | keys))
        scripts.append(script)
        assert script.wait_for("struck"), script.said
        return script

    yield strike
    healed = hosts.ssh("node-1", f"sh {FAULTS}/heal.sh what=all rig_dir={hosts.inventory.nodes['node-1'].rig_dir}")
    assert healed.status == 0, healed
    assert scripts
    assert all(script.end() == 0 for script in scripts), [script.said for script in scripts]
    assert "rig_" not in hosts.inside("node-1", "nft list tables").out
    until(lambda: hosts.reaches("node-1", hosts.address("node-2"), API_PORT), "open again")


def test_whole(hosts: Hosts, partition: Partition) -> None:
    session = hosts.session("node-1")
    hosts.serve_echo("node-2")
    four = hosts.connect_echo("node-1", hosts.address("node-2"))
    six = hosts.connect_echo("node-1", hosts.address("node-2", "ethernet6"))
    script = partition(peers=f"{hosts.addresses('node-2')} {hosts.addresses('node-3')}")
    assert script.fields("struck")["cut"] == "ipv4 ipv6"
    assert int(script.fields("struck")["packets"]) > 0
    assert not four.answers()
    assert not six.answers()
    for peer in ("node-2", "node-3"):
        for kind in ("ethernet4", "ethernet6", "thunderbolt4"):
            port = EXO_PORT if kind.endswith("6") else API_PORT
            assert not hosts.reaches("node-1", hosts.address(peer, kind), port), (peer, kind)
            assert not hosts.reaches(peer, hosts.address("node-1", kind), port), (peer, kind)
    assert hosts.reaches("node-2", hosts.address("node-3"), API_PORT)
    assert session.answers(within_s=5)  # the controller's, established before
    assert hosts.ssh("node-1", "true").status == 0  # and a new one


def test_by_peer(hosts: Hosts, partition: Partition) -> None:
    partition(peers=hosts.addresses("node-2"))
    assert not hosts.reaches("node-1", hosts.address("node-2"), API_PORT)
    assert hosts.reaches("node-1", hosts.address("node-3"), API_PORT)
    assert hosts.reaches("node-3", hosts.address("node-1", "ethernet6"), EXO_PORT)


def test_by_interface(hosts: Hosts, partition: Partition) -> None:
    """The cable that stands for Thunderbolt is cut, Ethernet is not."""
    script = partition(peers=f"{hosts.addresses('node-2')} {hosts.addresses('node-3')}", interface="tb0")
    assert script.fields("struck")["cut"] == "ipv4 ipv6"
    assert not hosts.reaches("node-1", hosts.address("node-2", "thunderbolt4"), API_PORT)
    assert not hosts.reaches("node-3", hosts.address("node-1", "thunderbolt6"), EXO_PORT)
    assert hosts.reaches("node-1", hosts.address("node-2"), API_PORT)
    assert hosts.reaches("node-3", hosts.address("node-1", "ethernet6"), EXO_PORT)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_one_way(hosts: Hosts, partition: Partition, direction: str) -> None:
    """Packets go one way: what the node receives and sends is counted at its card, beside its packet filter."""
    partition(peers=hosts.addresses("node-2"), direction=direction)
    table = "table inet seen { chain c { type filter hook %s priority %d; ip %s %s tcp dport %d counter; }; }"
    peer, own = hosts.address("node-2"), hosts.address("node-1")
    # What node-1 sends arrives at node-2 unless the way out is cut, and the other way round.
    there = table % ("input", -400, "saddr", own, API_PORT)
    back = table % ("output", -100, "daddr", peer, API_PORT)
    assert hosts.inside("node-2", f"/usr/sbin/nft '{there}'").status == 0
    assert hosts.inside("node-1", f"/usr/sbin/nft '{back}'").status == 0
    try:
        assert not hosts.reaches("node-1", peer, API_PORT)
        arrived = "packets 0 " not in hosts.inside("node-2", "/usr/sbin/nft list table inet seen").out
        left = "packets 0 " not in hosts.inside("node-1", "/usr/sbin/nft list table inet seen").out
    finally:
        for node in ("node-1", "node-2"):
            assert hosts.inside(node, "/usr/sbin/nft delete table inet seen").status == 0
    assert (arrived, left) == ((True, True) if direction == "in" else (False, False))


def test_clients_by_choice(hosts: Hosts, partition: Partition) -> None:
    """The API path of the controller is cut when asked for, and its SSH is not."""
    controller = f"10.77.{hosts.layout.subnet}.{CONTROLLER}"
    script = partition(peers=hosts.addresses("node-2"), clients=controller, api_port=str(API_PORT))
    assert script.fields("struck")["clients_cut"] == "1"
    probe = f"import socket; socket.create_connection(('{hosts.address('node-1')}', {API_PORT}), 0.7)"
    assert hosts.controller_python(probe).status != 0
    assert hosts.ssh("node-1", "true").status == 0


def test_clients_pass_otherwise(hosts: Hosts, partition: Partition) -> None:
    partition(peers=hosts.addresses("node-2"))
    probe = f"import socket; socket.create_connection(('{hosts.address('node-1')}', {API_PORT}), 5)"
    assert hosts.controller_python(probe).status == 0
