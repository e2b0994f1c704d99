"""partition.sh where nft is missing: the same cut by iptables and ip6tables."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.faults.network import API_PORT, NODE4, PEER4, PEER6, SSH_PORT, ZENOH_PORT, Network
from tests.faults.node import Node, until

NFT = shutil.which("nft")
HIDE = f'mount --bind /dev/null {NFT} && exec "$@"'
pytestmark = pytest.mark.skipif(shutil.which("iptables") is None, reason="install iptables (on Debian: iptables)")


@pytest.fixture
def bare(node: Node, network: Network) -> Node:
    """The node without nft: nothing that can be executed is in its place, for the scripts alone."""
    node.prefix = [*network.enter_node, "unshare", "--mount", "sh", "-c", HIDE, "sh"]
    return node


def listed(network: Network) -> str:
    """Both families' rules, without the counts."""
    return network.command("iptables", "-S") + network.command("ip6tables", "-S")


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_both_families_are_cut_and_opened_again(bare: Node, network: Network, direction: str) -> None:
    before = listed(network)
    four = network.connect(network.node_ns, PEER4, API_PORT)
    six = network.connect(network.node_ns, f"{PEER6}%vnode", ZENOH_PORT)
    assert (four.ask(), six.ask()) == ("echo", "echo")
    script = bare.script("partition.sh", hold="30", peers=network.peers, direction=direction)
    struck = script.wait_for("struck")
    assert struck.fields["table"] == "rig-f1"
    assert struck.fields["cut"] == "ipv4 ipv6"
    assert int(struck.fields["packets"]) > 0
    assert (four.ask(), six.ask()) == ("silent", "silent")
    assert ("-s 10.99.0.2/32 -j DROP" in listed(network)) == (direction != "out")
    assert ("-d 10.99.0.2/32 -j DROP" in listed(network)) == (direction != "in")
    script.process.send_signal(signal.SIGTERM)
    script.end()
    assert script.status == 0
    assert listed(network) == before
    until(lambda: four.ask() == "echo", "IPv4 goes on", timeout_s=8)
    until(lambda: six.ask() == "echo", "IPv6 goes on", timeout_s=8)


def test_the_controllers_ssh_passes_and_the_clients_path_is_cut_by_choice(bare: Node, network: Network) -> None:
    network.serve(network.node_ns, f"4:{SSH_PORT}", f"4:{API_PORT}")
    bare.env["SSH_CONNECTION"] = f"{PEER4} 50000 {NODE4} {SSH_PORT}"
    script = bare.script("partition.sh", hold="30", peers=f"{PEER6}%vnode", clients=PEER4, api_port=str(API_PORT))
    script.wait_for("struck")
    assert network.reaches(NODE4, SSH_PORT, network.peer_ns)
    assert not network.reaches(NODE4, API_PORT, network.peer_ns)
    script.process.send_signal(signal.SIGTERM)
    script.end()
    assert script.status == 0
    assert network.reaches(NODE4, API_PORT, network.peer_ns)


def test_a_killed_script_is_healed_from_its_lease_also_when_nft_is_there_by_then(bare: Node, network: Network) -> None:
    before = listed(network)
    script = bare.script("partition.sh", hold="60", peers=network.peers)
    script.wait_for("struck")
    script.process.kill()
    script.process.wait()
    bare.prefix = network.enter_node
    heal = bare.heal("all")
    assert heal.status == 0, heal.said
    assert listed(network) == before
    assert bare.leases == []


@pytest.mark.parametrize(
    "harm", ["iptables -D INPUT -j rig-f1", "ip6tables -D OUTPUT -j rig-f1", "iptables -F rig-f1", "iptables -Z rig-f1"]
)
def test_a_cut_that_does_not_last_is_ineffective_and_healed(bare: Node, network: Network, harm: str) -> None:
    before = listed(network)
    script = bare.script("partition.sh", hold="3", peers=network.peers)
    script.wait_for("holding")
    network.command(*harm.split())
    events = script.end()
    assert script.status == 11, events
    assert "the cut did not last" in next(event for event in events if event.name == "ineffective").fields["reason"]
    assert [event.name for event in events][-3:] == ["healing", "healed", "dropped"]
    assert listed(network) == before


def test_foreign_chains_survive_and_are_not_taken_for_ours(bare: Node, network: Network) -> None:
    network.command("iptables", "-N", "theirs")
    network.command("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "9", "-j", "theirs")
    before = listed(network)
    script = bare.script("partition.sh", hold="0.1", peers=network.peers)
    script.end()
    assert script.status == 0
    assert listed(network) == before
    network.command("ip6tables", "-N", "rig-other")
    before = listed(network)
    script = bare.script("partition.sh", hold="0.1", peers=network.peers)
    assert "rig-other" in script.end()[-1].fields["reason"]
    assert script.status == 10
    assert bare.heal("all").status == 0
    assert listed(network) == before
