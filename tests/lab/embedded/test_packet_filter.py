"""The packet-filter commands of a node: what node scripts use, enforced; anything else refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.lab.embedded.machine.nft import CommandError, Nft, ReadFile
from rig.lab.embedded.machine.packet_filter import Flow, PacketFilter
from rig.lab.embedded.machine.pf import Pf

RULES = """table inet rig_f1 {
	chain input {
		type filter hook input priority -300; policy accept;
		iifname "lo" accept
		ip saddr 10.77.0.250 tcp dport 22 accept
		ip saddr 10.77.0.2 counter drop
		ip6 saddr fe80::77:2 counter drop
	}
	chain output {
		type filter hook output priority -300; policy accept;
		oifname "lo" accept
		ip daddr 10.77.0.2 counter drop
	}
	chain forward {
		type filter hook forward priority -300; policy accept;
		ip saddr 10.77.0.2 counter drop
	}
}
"""
PF_RULES = """table <peers> persist { 10.77.0.2 fe80::77:2%eth0 }
pass quick on lo0 all no state
pass in quick proto tcp from 10.77.0.250 to any port 22 flags any no state
pass out quick proto tcp from any port 22 to 10.77.0.250 flags any no state
block drop quick inet from <peers> to any
block drop quick inet6 from <peers> to any
block drop quick inet from any to <peers>
"""
FROM_PEER = Flow("10.77.0.2", 40000, "10.77.0.1", 52414)
FROM_OTHER = Flow("10.77.0.3", 40000, "10.77.0.1", 52414)
FROM_PEER_V6 = Flow("fe80::77:2", 40000, "fe80::77:1", 52414)
FROM_CONTROLLER = Flow("10.77.0.250", 40000, "10.77.0.1", 22)


@pytest.fixture
def read_file(tmp_path: Path) -> ReadFile:
    (tmp_path / "rules").write_text(RULES)
    (tmp_path / "pf").write_text(PF_RULES)
    return ReadFile(str(tmp_path))


def test_nft_rules_drop_what_they_name_and_nothing_else(read_file: ReadFile) -> None:
    packet_filter = PacketFilter("eth0")
    nft = Nft(packet_filter)
    assert packet_filter.passes("in", FROM_PEER)
    assert nft.run(["-f", "rules"], read_file) == ""
    assert nft.run(["list", "tables"], read_file) == "table inet rig_f1\n"
    assert not packet_filter.passes("in", FROM_PEER)
    assert not packet_filter.passes("in", FROM_PEER_V6)
    assert not packet_filter.passes("out", FROM_PEER.reversed())
    assert packet_filter.passes("out", FROM_PEER_V6.reversed())  # the table cuts that family one way only
    assert packet_filter.passes("in", FROM_OTHER)
    assert packet_filter.passes("in", FROM_CONTROLLER)


def test_nft_counts_packets_of_each_rule(read_file: ReadFile) -> None:
    packet_filter = PacketFilter("eth0")
    nft = Nft(packet_filter)
    nft.run(["-f", "rules"], read_file)
    for _ in range(3):
        packet_filter.passes("in", FROM_PEER)
    packet_filter.passes("in", FROM_OTHER)
    listing = nft.run(["list", "table", "inet", "rig_f1"], read_file)
    assert "ip saddr 10.77.0.2 counter packets 3 bytes 180 drop" in listing
    assert "ip6 saddr fe80::77:2 counter packets 0 bytes 0 drop" in listing
    assert packet_filter.dropped_packets("inet rig_f1") == 3


def test_deleting_a_table_touches_no_other(read_file: ReadFile, tmp_path: Path) -> None:
    packet_filter = PacketFilter("eth0")
    nft = Nft(packet_filter)
    (tmp_path / "foreign").write_text(RULES.replace("rig_f1", "somebody"))
    nft.run(["-f", "rules"], read_file)
    nft.run(["-f", "foreign"], read_file)
    nft.run(["delete", "table", "inet", "rig_f1"], read_file)
    assert nft.run(["list", "tables"], read_file) == "table inet somebody\n"
    assert not packet_filter.passes("in", FROM_PEER)
    nft.run(["delete", "table", "inet", "somebody"], read_file)
    assert packet_filter.passes("in", FROM_PEER)
    with pytest.raises(CommandError, match="No such file"):
        nft.run(["delete", "table", "inet", "somebody"], read_file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["flush", "ruleset"],
        ["list", "ruleset"],
        ["-f", "missing"],
        ["add", "table", "inet", "x"],
        [],
        ["-c", "-f", "rules"],
    ],
)
def test_nft_refuses_what_it_does_not_emulate(arguments: list[str], read_file: ReadFile) -> None:
    with pytest.raises(CommandError):
        Nft(PacketFilter("eth0")).run(arguments, read_file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("counter drop", "counter reject"),
        ("ip saddr 10.77.0.2", "ip saddr 10.77.0.2 ct state new"),
        ("ip6 saddr fe80::77:2", "ip6 saddr 10.77.0.2"),
        ("hook input", "hook prerouting"),
        ("table inet", "table bridge"),
        ("10.77.0.2", "not-an-address"),
        ("\t}\n}\n", ""),
    ],
)
def test_a_ruleset_is_refused_as_a_whole(old: str, new: str, tmp_path: Path) -> None:
    packet_filter = PacketFilter("eth0")
    text = RULES.replace(old, new)
    assert text != RULES
    (tmp_path / "rules").write_text(text)
    with pytest.raises(CommandError):
        Nft(packet_filter).run(["-f", "rules"], ReadFile(str(tmp_path)))
    assert packet_filter.rules() == []


def test_pf_enforces_nothing_until_it_is_enabled(read_file: ReadFile) -> None:
    packet_filter = PacketFilter("eth0", enabled=False)
    pf = Pf(packet_filter)
    load = ["-q", "-a", "com.apple/rig_f1", "-f", "pf"]
    pf.run(["-q", "-a", "com.apple/rig_f1", "-n", "-f", "pf"], read_file)
    assert packet_filter.rules() == []
    pf.run(load, read_file)
    assert packet_filter.passes("in", FROM_PEER)
    assert "Disabled" in pf.run(["-s", "info"], read_file)
    token = pf.run(["-E"], read_file).rpartition("Token : ")[2].strip()
    assert "Enabled" in pf.run(["-s", "info"], read_file)
    assert not packet_filter.passes("in", FROM_PEER)
    assert not packet_filter.passes("in", FROM_PEER_V6)
    assert not packet_filter.passes("out", FROM_PEER.reversed())
    assert packet_filter.passes("in", FROM_OTHER)
    assert packet_filter.passes("in", FROM_CONTROLLER)
    verbose = pf.run(["-q", "-a", "com.apple/rig_f1", "-s", "rules", "-v"], read_file)
    assert verbose.count("Packets: 1 ") == 4  # three drops, and the controller's pass
    pf.run(["-q", "-a", "com.apple/rig_f1", "-F", "all"], read_file)
    assert packet_filter.passes("in", FROM_PEER)
    pf.run(["-X", token], read_file)
    assert "Disabled" in pf.run(["-s", "info"], read_file)
    with pytest.raises(CommandError):
        pf.run(["-X", token], read_file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-d"],
        ["-f", "/etc/pf.conf"],
        ["-F", "all"],
        ["-q", "-a", "com.apple/other", "-F", "all"],
        ["-q", "-a", "com.apple/rig_f1", "-s"],
    ],
)
def test_pf_refuses_what_it_does_not_emulate(arguments: list[str], read_file: ReadFile) -> None:
    with pytest.raises(CommandError):
        Pf(PacketFilter("eth0")).run(arguments, read_file)


@pytest.mark.parametrize(
    "line", ["block return quick from any to any", "pass all keep state", "block drop proto udp all", "x"]
)
def test_pf_refuses_rules_it_does_not_emulate(line: str, tmp_path: Path) -> None:
    (tmp_path / "pf").write_text(f"{line}\n")
    packet_filter = PacketFilter("eth0")
    with pytest.raises(CommandError, match="1"):
        Pf(packet_filter).run(["-q", "-a", "com.apple/rig_f1", "-f", "pf"], ReadFile(str(tmp_path)))
    assert packet_filter.rules() == []
