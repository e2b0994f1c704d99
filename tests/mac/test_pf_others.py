"""What disturbs everybody on a Mac, and what needs both ends of a connection: on virtual Macs only."""

from __future__ import annotations

import pytest

from tests.hosts.hosts import API_PORT, EXO_PORT, Hosts, run, until
from tests.mac.mac import ANCHOR, Tools

FOREIGN = "com.apple/org.foreign"


@pytest.fixture
def foreign(mac: Tools) -> str:
    """Somebody else's rules and token."""
    mac.enforce("block drop quick proto udp from any to 192.0.2.9\n", FOREIGN)
    return mac.enable()


def test_d_voids_everybodys_tokens(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.enable()
    mac.must("pfctl -d")
    assert not mac.enabled()
    assert mac.mac.run(f"pfctl -X {foreign}").status != 0


def test_loading_the_main_ruleset_flushes_what_others_loaded(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.must("pfctl -q -f /etc/pf.conf")
    assert mac.must(f"pfctl -q -a {FOREIGN} -s rules") == ""
    assert 'anchor "com.apple/*"' in mac.must("pfctl -q -s rules")


def test_flushing_the_root_cuts_every_anchor_off(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.enforce(f"block drop quick from any to {mac.mac.peer.address}\n")
    assert not mac.reaches()
    mac.must("pfctl -q -F all")
    assert mac.reaches()
    mac.must("pfctl -q -f /etc/pf.conf")


def test_set_skip_in_the_main_ruleset(macs: Hosts, mac: Tools, foreign: str) -> None:
    path = f"{mac.mac.folder}/main.conf"
    mac.must(f"(echo 'set skip on en0'; cat /etc/pf.conf) >{path}; pfctl -q -f {path}")
    mac.enforce(f"block drop quick from any to {mac.mac.peer.address}\n")
    assert mac.reaches()
    mac.must("pfctl -q -f /etc/pf.conf")


@pytest.mark.parametrize(
    ("options", "lives"),
    [("flags any no state", True), ("no state", True), ("", False), ("flags any keep state", False)],
)
def test_a_pass_for_a_live_connection(macs: Hosts, mac: Tools, foreign: str, options: str, lives: bool) -> None:  # noqa: FBT001
    """A pass rule that keeps state takes a connection from its first packet, or makes a state that it stalls on."""
    controller = f"10.77.{macs.layout.subnet}.250"
    session = macs.session("node-1")
    mac.enforce(
        f"pass in quick proto tcp from {controller} to any port 22 {options}\n"
        f"pass out quick proto tcp from any port 22 to {controller} {options}\n"
        f"block drop quick from any to {controller}\nblock drop quick from {controller} to any\n"
    )
    assert session.answers(within_s=5 if lives else 1.5) == lives
    macs.close_but_servers()
    assert macs.ssh("node-1", "true", timeout_s=10).status == 0  # a new one is taken either way


def test_an_established_connection_without_state_is_cut_at_once(macs: Hosts, mac: Tools, foreign: str) -> None:
    echo = macs.connect_echo("node-1", macs.address("node-2"))
    mac.enforce(f"block drop quick from any to {mac.mac.peer.address}\n")
    assert not echo.answers()
    mac.must(f"pfctl -q -a {ANCHOR} -F all")
    assert echo.answers(within_s=10)


def test_one_with_a_state_lives_until_that_is_killed(macs: Hosts, mac: Tools, foreign: str) -> None:
    peer = mac.mac.peer.address
    mac.enforce(f"pass out proto tcp from any to {peer} keep state\n", "com.apple/aaa.rig")
    echo = macs.connect_echo("node-1", peer)
    mac.enforce(f"block drop quick from any to {peer}\n")
    assert echo.answers(within_s=5)
    mac.must(f"pfctl -k {peer}")  # states that began there: none
    assert echo.answers(within_s=5)
    mac.must(f"pfctl -k 0.0.0.0/0 -k {peer}")
    assert not echo.answers()


def test_directions(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.enforce(f"block drop in quick proto tcp from {mac.mac.peer.address} to any port {API_PORT}\n")
    assert not macs.reaches("node-2", macs.address("node-1"), API_PORT)
    assert mac.reaches()
    assert macs.reaches("node-2", macs.address("node-1", "ethernet6"), EXO_PORT)


def test_dummynet_loses(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.must("dnctl pipe 41 config plr 1")
    mac.enforce(f"dummynet out quick proto tcp from any to {mac.mac.peer.address} pipe 41\n")
    assert not mac.reaches()
    assert counted(mac) > 0
    mac.must("dnctl pipe 41 config plr 0")
    assert mac.reaches()
    mac.must(f"pfctl -q -a {ANCHOR} -F all; dnctl pipe 41 delete")
    assert mac.must("dnctl list") == ""


def test_dummynet_delays_what_the_rule_names_and_nothing_else(macs: Hosts, mac: Tools, foreign: str) -> None:
    """Packets to one peer, of both families; another peer is not waited for. Nothing is lost when the pipe goes."""
    macs.serve_echo("node-3")
    peer4, peer6 = macs.address("node-2"), macs.address("node-2", "ethernet6")
    held, held6 = macs.connect_echo("node-1", peer4), macs.connect_echo("node-1", peer6)
    free = macs.connect_echo("node-1", macs.address("node-3"))
    rules = [f"dummynet out quick proto tcp from any to {peer.partition('%')[0]} pipe 41\n" for peer in (peer4, peer6)]
    mac.must("dnctl pipe 41 config delay 3000")
    mac.enforce("".join(rules))
    assert not held.answers(within_s=1)
    assert not held6.answers(within_s=1)
    assert free.answers()
    assert held.answers(within_s=20)
    assert held6.answers(within_s=20)
    assert counted(mac) > 0
    mac.must(f"pfctl -q -a {ANCHOR} -F all; dnctl pipe 41 delete")
    assert held.answers(within_s=2)
    assert held6.answers(within_s=2)
    assert "pipe41" not in run([*macs.in_network("node-1"), "nft", "list", "ruleset"]).out
    assert "pipe41" not in run([*macs.in_network("node-1"), "ip", "link"]).out


def test_a_delay_on_the_way_in_is_refused(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.must("dnctl pipe 41 config delay 200")
    assert mac.load(f"dummynet in quick proto tcp from {mac.mac.peer.address} to any pipe 41\n").status != 0
    assert mac.load(f"dummynet quick proto tcp from {mac.mac.peer.address} to any pipe 41\n").status != 0
    mac.must("dnctl pipe 41 config plr 0")
    mac.enforce(f"dummynet in quick proto tcp from {mac.mac.peer.address} to any pipe 41\n")
    assert mac.mac.run("dnctl pipe 41 config delay 200").status != 0
    mac.must(f"pfctl -q -a {ANCHOR} -F all; dnctl pipe 41 delete")


def counted(mac: Tools) -> int:
    words = mac.must(f"pfctl -q -a {ANCHOR} -s dummynet -v").split()
    return int(words[words.index("Packets:") + 1])


def test_nothing_outlives_a_boot(macs: Hosts, mac: Tools, foreign: str) -> None:
    mac.enforce("block drop quick proto udp from any to 192.0.2.8\n")
    before = mac.must("sysctl -n kern.bootsessionuuid")
    assert mac.mac.run("shutdown -r now").status in {0, -9}
    until(lambda: boot_of(macs) not in {"", before}, "boots")
    assert not mac.enabled()
    assert mac.must(f"pfctl -q -a {ANCHOR} -s rules") == ""
    assert 'anchor "com.apple/*"' in mac.must("pfctl -q -s rules")
    until(lambda: macs.reaches("node-2", macs.address("node-1"), API_PORT), "launchd has started exo")


def boot_of(macs: Hosts) -> str:
    done = macs.ssh("node-1", "sysctl -n kern.bootsessionuuid", timeout_s=5)
    return done.out if done.status == 0 else ""


def test_launchd_starts_exo_once(macs: Hosts) -> None:
    """None of the mains that began was told that another one runs already."""
    for node in macs.layout.nodes:
        assert "already running" not in (macs.node_folder(node) / "exo.out").read_text()
