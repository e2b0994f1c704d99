"""partition.sh with the kernel's packet filter, between two network namespaces."""

from __future__ import annotations

import re
import signal
import time

import pytest

from tests.faults.network import API_PORT, NODE4, PEER4, PEER6, SSH_PORT, ZENOH_PORT, Network
from tests.faults.node import Node, Script, parse, until


def rig_tables(network: Network) -> list[str]:
    return [line for line in network.nft("list", "tables").splitlines() if "rig_" in line]


def cut(node: Node, network: Network, **values: str) -> Script:
    return node.script("partition.sh", **({"hold": "30", "peers": network.peers} | values))


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_new_and_established_connections_of_both_families_are_cut(node: Node, network: Network, direction: str) -> None:
    """And those that were established go on afterwards."""
    four = network.connect(network.node_ns, PEER4, API_PORT)
    six = network.connect(network.node_ns, f"{PEER6}%vnode", ZENOH_PORT)
    assert (four.ask(), six.ask()) == ("echo", "echo")
    script = cut(node, network, direction=direction)
    struck = script.wait_for("struck")
    assert (four.ask(), six.ask()) == ("silent", "silent")
    assert not network.reaches(PEER4, API_PORT)
    assert not network.reaches(f"{PEER6}%vnode", ZENOH_PORT)
    script.process.send_signal(signal.SIGTERM)
    until(lambda: not rig_tables(network), "the rule is gone", timeout_s=4)
    script.end()
    assert script.status == 0
    assert (struck.fields["cut"], struck.fields["unproved"]) == ("ipv4 ipv6", "")
    assert int(struck.fields["packets"]) > 0
    until(lambda: four.ask() == "echo", "IPv4 goes on", timeout_s=8)
    until(lambda: six.ask() == "echo", "IPv6 goes on", timeout_s=8)


def test_heals_by_itself_after_the_hold_without_a_reader(node: Node, network: Network) -> None:
    script = cut(node, network, hold="2.5")
    script.wait_for("struck")
    assert rig_tables(network) == ["table inet rig_f1"]
    script.stop_reading()
    script.end()
    assert script.status == 0
    events = {event.name: event for event in node.log("f1")}
    assert 2.49 <= events["healed"].t - events["struck"].t <= 5.0
    assert events["healed"].fields["reopened"] == "1"
    assert network.reaches(PEER4, API_PORT)
    assert network.reaches(f"{PEER6}%vnode", ZENOH_PORT)
    assert rig_tables(network) == []
    assert node.leases == []
    assert not list(node.rig_dir.glob("filter-*"))


def test_the_controllers_ssh_passes_and_nothing_else_of_it(node: Node, network: Network) -> None:
    """The controller runs on the very peer that is cut off: its SSH goes on, its requests do not."""
    network.serve(network.node_ns, f"4:{SSH_PORT}", f"4:{API_PORT}")
    ssh = network.connect(network.peer_ns, NODE4, SSH_PORT)
    api = network.connect(network.peer_ns, NODE4, API_PORT)
    assert (ssh.ask(), api.ask()) == ("echo", "echo")
    node.env["SSH_CONNECTION"] = f"{PEER4} 50000 {NODE4} {SSH_PORT}"
    script = cut(node, network)
    struck = script.wait_for("struck")
    assert (ssh.ask(), api.ask()) == ("echo", "silent")
    assert network.reaches(NODE4, SSH_PORT, network.peer_ns)
    assert not network.reaches(NODE4, API_PORT, network.peer_ns)
    assert struck.fields["clients_cut"] == "1"
    script.process.send_signal(signal.SIGTERM)
    script.end()
    assert script.status == 0


def test_clients_are_cut_by_choice(node: Node, network: Network) -> None:
    network.serve(network.node_ns, f"4:{API_PORT}", f"4:{SSH_PORT}")
    script = cut(node, network, peers=f"{PEER6}%vnode", clients=PEER4, api_port=str(API_PORT))
    struck = script.wait_for("struck")
    assert not network.reaches(NODE4, API_PORT, network.peer_ns)
    assert network.reaches(NODE4, SSH_PORT, network.peer_ns)
    assert struck.fields["clients_cut"] == "1"
    assert struck.fields["cut"] == "ipv6"
    script.process.send_signal(signal.SIGINT)
    script.end()
    assert network.reaches(NODE4, API_PORT, network.peer_ns)


def test_killed_script_is_healed_from_its_lease(node: Node, network: Network) -> None:
    script = cut(node, network)
    script.wait_for("struck")
    script.process.kill()
    script.process.wait()
    assert not network.reaches(PEER4, API_PORT)
    heal = node.heal("all")
    assert heal.status == 0, heal.said
    assert rig_tables(network) == []
    assert network.reaches(PEER4, API_PORT)
    assert network.reaches(f"{PEER6}%vnode", ZENOH_PORT)
    assert node.leases == []
    assert [event.name for event in parse(heal.said)] == ["healing", "healed", "dropped"]


def test_foreign_rules_survive(node: Node, network: Network) -> None:
    network.nft("add", "table", "inet", "firewall")
    network.nft("add", "chain", "inet", "firewall", "input", "{ type filter hook input priority 0; policy accept; }")
    network.nft("add", "rule", "inet", "firewall", "input", "tcp", "dport", "9", "drop")
    before = network.nft("list", "ruleset")
    script = cut(node, network, hold="0.1")
    script.end()
    assert script.status == 0
    assert network.nft("list", "ruleset") == before


def test_table_of_our_kind_without_a_lease_is_not_ours(node: Node, network: Network) -> None:
    network.nft("add", "table", "inet", "rig_other")
    script = cut(node, network)
    events = script.end()
    assert script.status == 10
    assert "rig_other" in events[-1].fields["reason"]
    assert rig_tables(network) == ["table inet rig_other"]
    assert node.heal("all").status == 0
    assert rig_tables(network) == ["table inet rig_other"]


def test_packet_filter_that_does_nothing_is_ineffective(node: Node, network: Network) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "nft").write_text('#!/bin/sh\n[ "$2" != table ] || echo "table inet $4"\nexit 0\n')
    (shims / "nft").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = cut(node, network, hold="0.1")
    events = script.end()
    assert script.status == 11
    ineffective = next(event for event in events if event.name == "ineffective")
    assert "ipv4 still answers" in ineffective.fields["reason"]
    assert "ipv6 still answers" in ineffective.fields["reason"]
    assert node.leases == []


def test_silence_of_another_cause_is_no_proof(node: Node, network: Network) -> None:
    """The peer falls silent by itself at that moment, while the filter does nothing."""
    shims = node.folder / "shims"
    shims.mkdir()
    down = f"ip -n {network.peer_ns} link set vpeer down"
    (shims / "nft").write_text(f'#!/bin/sh\n[ "$1" != -f ] || {down}\nexit 0\n')
    (shims / "nft").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = cut(node, network, hold="0.1")
    events = script.end()
    assert script.status == 11
    assert "counted no packets" in next(e for e in events if e.name == "ineffective").fields["reason"]


def test_rule_removed_during_the_hold_is_ineffective(node: Node, network: Network) -> None:
    script = cut(node, network, hold="5")
    script.wait_for("struck")
    network.nft("delete", "table", "inet", "rig_f1")
    events = script.end()
    assert script.status == 11
    assert (
        "did not last: table inet rig_f1 is not there"
        in next(e for e in events if e.name == "ineffective").fields["reason"]
    )
    assert node.leases == []


def test_peers_that_do_not_answer_cannot_be_proved_cut(node: Node, network: Network) -> None:
    script = cut(node, network, ports="1")
    events = script.end()
    assert script.status == 10
    assert "could not be proved" in events[-1].fields["reason"]
    assert rig_tables(network) == []


def test_family_without_a_listening_socket_is_said_to_be_unproved(node: Node, network: Network) -> None:
    script = cut(node, network, ports=str(API_PORT))
    struck = script.wait_for("struck")
    assert (struck.fields["cut"], struck.fields["unproved"]) == ("ipv4", "ipv6")
    assert not network.reaches(f"{PEER6}%vnode", ZENOH_PORT)
    script.process.send_signal(signal.SIGTERM)
    script.end()
    assert script.status == 0


def test_node_without_a_packet_filter_is_skipped(node: Node, network: Network) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "nft").write_text('#!/bin/sh\necho "Operation not permitted" >&2\nexit 1\n')
    (shims / "nft").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = cut(node, network)
    events = script.end()
    assert script.status == 10
    assert events[-1].fields["reason"] == "nft list tables: Operation not permitted"
    assert node.leases == []


def test_rule_that_cannot_be_removed_is_unhealed_and_keeps_the_lease(node: Node, network: Network) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "nft").write_text('#!/bin/sh\n[ "$1" != delete ] || exit 1\nexec /usr/sbin/nft "$@"\n')
    (shims / "nft").chmod(0o755)
    path = node.env["PATH"]
    node.env["PATH"] = f"{shims}:{path}"
    script = cut(node, network, hold="0.1")
    events = script.end()
    assert script.status == 12
    assert events[-1].name == "unhealed"
    assert "still there" in events[-1].fields["reason"]
    assert node.leases == ["f1"]
    node.env["PATH"] = path
    assert node.heal("all").status == 0
    assert rig_tables(network) == []
    assert node.leases == []


@pytest.mark.parametrize(
    "harm",
    [
        "flush table inet rig_f1",
        "flush chain inet rig_f1 input",
        "add table inet rig_f1 { flags dormant; }",
        "load anew",
        "flush ruleset",
    ],
)
def test_a_cut_that_does_not_last_is_ineffective_and_healed(node: Node, network: Network, harm: str) -> None:
    """Also where the table is there to the end: what counts is what it does."""
    script = cut(node, network, hold="3")
    script.wait_for("holding")
    if harm == "load anew":
        loaded_anew(network)
    else:
        network.nft(harm)
    events = script.end()
    assert script.status == 11, events
    assert "the cut did not last" in next(event for event in events if event.name == "ineffective").fields["reason"]
    assert [event.name for event in events][-3:] == ["healing", "healed", "dropped"]
    assert rig_tables(network) == []
    assert not list(node.rig_dir.glob(".made*"))


def loaded_anew(network: Network) -> None:
    """The same rules, but a moment without them: only the counters tell."""
    rules = re.sub(r"packets \d+ bytes \d+", "", network.nft("list", "table", "inet", "rig_f1"))
    network.nft(f"delete table inet rig_f1; {rules}")


def test_a_cut_around_which_packets_pass_again_is_ineffective(node: Node, network: Network) -> None:
    """The rules are whole; the way to the peer is another."""
    script = cut(node, network, hold="4", direction="out")
    script.wait_for("holding")
    network.command("ip", "addr", "add", PEER4, "dev", "lo")
    network.serve(network.node_ns, f"4:{API_PORT}")
    events = script.end()
    assert script.status == 11, events
    assert f"{PEER4},{API_PORT} answers" in next(e for e in events if e.name == "ineffective").fields["reason"]


def test_two_faults_at_once_are_undone_apart(node: Node, network: Network) -> None:
    script = cut(node, network, hold="60", peers=PEER4)
    script.wait_for("holding")
    second = cut(node, network, id="f2", hold="0.1", peers=f"{PEER6}%vnode", also="1")
    second.end()
    assert second.status == 0, second.said
    assert rig_tables(network) == ["table inet rig_f1"]
    assert not network.reaches(PEER4, API_PORT)
    script.process.send_signal(signal.SIGTERM)
    assert [event.name for event in script.end()][-2:] == ["healed", "dropped"]
    assert script.status == 0


def test_other_side_cut_as_well_is_healed_but_not_reopened(node: Node, network: Network) -> None:
    script = cut(node, network, hold="4")
    script.wait_for("struck")
    other = "table inet theirs { chain i { type filter hook input priority -300; ip saddr 10.99.0.1 drop; }; }"
    network.nft_on_peer(other)
    begun = time.monotonic()
    events = script.end()
    assert script.status == 0
    assert next(event for event in events if event.name == "healed").fields["reopened"] == "0"
    assert time.monotonic() - begun < 15.0
    assert rig_tables(network) == []
