"""name-resolution.sh with the kernel's packet filter, between a node and resolvers in two network namespaces."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.network import API_PORT, NODE4, PEER4, PEER6, SSH_PORT, Network
from tests.faults.node import Node, parse, until

NFT = shutil.which("nft")
IPV6 = f"{PEER6}%vnode"
LOCAL, LOCAL6 = "224.0.0.251", "ff02::fb"

_ASK = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
asker = socket.socket(family, socket.SOCK_DGRAM)
if address.startswith("224."):
    asker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.99.0.1"))
asker.settimeout(0.6)
try:
    asker.sendto(b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6studio\\5local\\0\\0\\1\\0\\1", (address, port))
    print(len(asker.recv(4096)) > 20)
except OSError:
    print(False)
"""
_RESOLVE = "import socket; socket.getaddrinfo('studio.cluster.test', None, socket.AF_INET)"


class Names:
    """Which names the node is told."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def answers(self, address: str, port: int = 53) -> bool:
        return self.network.command(sys.executable, "-c", _ASK, address, str(port)) == "True\n"

    def resolve(self) -> bool:
        """By the system's own resolver."""
        command = [*self.network.enter_node, sys.executable, "-c", _RESOLVE]
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0

    def all_answer(self) -> list[bool]:
        asked = ((PEER4, 53), (IPV6, 53), (LOCAL, 5353), (f"{LOCAL6}%vnode", 5353))
        return [self.answers(address, port) for address, port in asked]

    def rules(self) -> list[str]:
        """The rig's, of nft and of iptables."""
        listings = (("nft", "list", "tables"), ("iptables", "-S"), ("ip6tables", "-S"))
        return [line for words in listings for line in self.network.command(*words).splitlines() if "rig" in line]


@pytest.fixture
def names(network: Network) -> Iterator[Names]:
    """`ip netns exec` puts the files of /etc/netns/NAME in the place of those in /etc."""
    folder = Path("/etc/netns") / network.node_ns
    folder.mkdir(parents=True)
    try:
        (folder / "resolv.conf").write_text(
            f"nameserver 127.0.0.53\nnameserver {PEER4}\nnameserver {IPV6}\noptions timeout:1 attempts:1\n"
        )
        network.serve_names()
        yield Names(network)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["nft", "iptables"])
def filtered(request: pytest.FixtureRequest, node: Node, network: Network) -> Node:
    """The node with nft, and without: nothing that can be executed is in its place then."""
    if request.param == "iptables":
        if shutil.which("iptables") is None:
            pytest.skip("install iptables (on Debian: iptables)")
        hide = f'mount --bind /dev/null {NFT} && exec "$@"'
        node.prefix = [*network.enter_node, "unshare", "--mount", "sh", "-c", hide, "sh"]
    return node


def test_names_do_not_resolve_and_all_else_passes(filtered: Node, network: Network, names: Names) -> None:
    assert names.all_answer() == [True] * 4
    assert names.resolve()
    network.serve(network.node_ns, f"4:{SSH_PORT}")
    ssh = network.connect(network.peer_ns, NODE4, SSH_PORT)
    assert ssh.ask() == "echo"
    script = filtered.script("name-resolution.sh", hold="30")
    struck = script.wait_for("struck")
    assert struck.fields["resolvers"] == f"{PEER4},dns {IPV6},dns"
    assert int(struck.fields["packets"]) > 0
    assert names.all_answer() == [False] * 4
    assert not names.resolve()
    assert names.rules() != []
    assert ssh.ask() == "echo"
    assert network.reaches(PEER4, API_PORT)
    script.process.send_signal(signal.SIGTERM)
    events = {event.name: event.fields for event in script.end()}
    assert script.status == 0
    assert events["healed"]["reopened"] == "1"
    assert names.all_answer() == [True] * 4
    assert names.resolve()
    assert names.rules() == []
    assert filtered.leases == []


def test_a_killed_script_is_healed_from_its_lease(node: Node, names: Names) -> None:
    script = node.script("name-resolution.sh", hold="30")
    script.wait_for("struck")
    script.process.kill()
    script.process.wait()
    assert names.all_answer() == [False] * 4
    heal = node.heal("all")
    assert heal.status == 0, heal.said
    assert [event.name for event in parse(heal.said)] == ["healing", "healed", "dropped"]
    assert parse(heal.said)[1].fields["reopened"] == "1"
    assert names.all_answer() == [True] * 4
    assert names.rules() == []
    assert node.leases == []


def test_the_hold_ends_by_itself_and_named_resolvers_are_taken(node: Node, names: Names) -> None:
    script = node.script("name-resolution.sh", hold="3", peers=IPV6)
    assert script.wait_for("struck").fields["resolvers"] == f"{IPV6},dns"
    assert (names.answers(PEER4), names.answers(IPV6)) == (True, False)
    events = {event.name: event for event in script.end()}
    assert script.status == 0, script.said
    assert 2.99 <= events["healed"].t - events["struck"].t <= 6.0
    assert names.answers(IPV6)


def test_rules_that_somebody_removes_in_the_hold_are_noticed(node: Node, network: Network, names: Names) -> None:
    script = node.script("name-resolution.sh", hold="4")
    script.wait_for("struck")
    network.nft("delete", "table", "inet", "rig_f1")
    events = {event.name: event.fields for event in script.end()}
    assert script.status == 11
    assert "names resolved again during the hold" in events["ineffective"]["reason"]
    assert names.answers(PEER4)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nameserver 127.0.0.1", "no resolver on another machine is known"),
        (f"nameserver {NODE4}", "no resolver answers"),
    ],
)
def test_without_a_resolver_that_answers_it_is_skipped(
    node: Node, network: Network, names: Names, line: str, reason: str
) -> None:
    conf = Path("/etc/netns") / network.node_ns / "resolv.conf"
    conf.write_text(f"{line}\n")
    events = node.script("name-resolution.sh", hold="1").end()
    assert [event.name for event in events] == ["skipped"]
    assert reason in events[0].fields["reason"]
    assert (names.rules(), node.leases) == ([], [])


def test_a_packet_filter_that_does_nothing_is_ineffective(node: Node, names: Names) -> None:
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "nft").write_text('#!/bin/sh\n[ "$2" != table ] || echo "table inet $4"\nexit 0\n')
    (shims / "nft").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = node.script("name-resolution.sh", hold="0.1")
    events = {event.name: event.fields for event in script.end()}
    assert script.status == 11
    assert f"still answers: {PEER4},dns" in events["ineffective"]["reason"]
    until(lambda: names.answers(PEER4), "the resolver answers")
    assert node.leases == []
