"""What pf does with rules: every line of this is counted on by the partition, or is a mistake that must show."""

from __future__ import annotations

import pytest

from tests.mac.mac import ANCHOR, Tools


def block(mac: Tools, options: str = "") -> str:
    return f"block drop quick {options} from any to {mac.mac.peer.address}\n"


def test_the_stock_ruleset_calls_our_anchor(mac: Tools) -> None:
    rules = mac.must("pfctl -s rules 2>/dev/null").splitlines()
    assert any(rule.startswith('anchor "com.apple/*"') for rule in rules), rules


def test_rules_enforce_nothing_while_pf_is_disabled(mac: Tools) -> None:
    if mac.enabled():  # somebody else's: nothing to see here then but that ours are listed
        assert mac.must(f"pfctl -q -a {ANCHOR} -s rules") == ""
        return
    mac.enforce(block(mac))
    assert "block drop quick" in mac.must(f"pfctl -q -a {ANCHOR} -s rules")
    assert mac.reaches()
    mac.enable()
    assert not mac.reaches()


def test_block_counts_and_flush_opens(mac: Tools) -> None:
    mac.enable()
    mac.enforce(block(mac))
    assert not mac.reaches()
    verbose = mac.must(f"pfctl -q -a {ANCHOR} -s rules -v").split()
    assert int(verbose[verbose.index("Packets:") + 1]) > 0
    mac.must(f"pfctl -q -a {ANCHOR} -F all")
    assert mac.must(f"pfctl -q -a {ANCHOR} -s rules") == ""
    assert mac.reaches()


@pytest.mark.parametrize("anchor", ["rig", "com.apple/rig/below"])
def test_an_anchor_that_nothing_calls(mac: Tools, anchor: str) -> None:
    mac.enable()
    mac.enforce(block(mac), anchor)
    assert "block" in mac.must(f"pfctl -q -a {anchor} -s rules")
    assert mac.reaches()
    mac.must(f"pfctl -q -a {anchor} -F all")


def test_tokens_are_counted(mac: Tools) -> None:
    was = mac.enabled()
    first, second = mac.enable(), mac.enable()
    assert first != second
    mac.must(f"pfctl -X {first}")
    assert mac.enabled()
    mac.must(f"pfctl -X {second}")
    assert mac.enabled() == was
    assert mac.mac.run(f"pfctl -X {second}").status != 0


def test_interface_names(mac: Tools) -> None:
    """A group (en, utun) is no interface, and a name that is another one's is none either."""
    mac.enable()
    interface = mac.mac.peer.interface
    for name in (interface.rstrip("0123456789"), "utun", "en99"):
        mac.enforce(block(mac, f"on {name}"))
        assert mac.reaches(), name
    mac.enforce(block(mac, f"on {interface}"))
    assert not mac.reaches()


def test_families(mac: Tools) -> None:
    mac.enable()
    mac.enforce("block drop quick inet6 all\n" if ":" not in mac.mac.peer.address else "block drop quick inet all\n")
    assert mac.reaches()


def test_tables(mac: Tools) -> None:
    mac.enable()
    other = f"fe80::1c2b%{mac.mac.peer.interface}"
    mac.enforce(f"table <peers> persist {{ 192.0.2.1 {other} }}\nblock drop quick from any to <peers>\n")
    assert mac.reaches()
    mac.must(f"pfctl -q -a {ANCHOR} -t peers -T add {mac.mac.peer.address}")
    assert not mac.reaches()
    assert mac.mac.peer.address in mac.must(f"pfctl -q -a {ANCHOR} -t peers -T show")
    mac.must(f"pfctl -q -a {ANCHOR} -t peers -T delete {mac.mac.peer.address}")
    assert mac.reaches()


def test_the_last_match_decides_unless_one_is_quick(mac: Tools) -> None:
    mac.enable()
    peer = mac.mac.peer.address
    mac.enforce(f"block drop from any to {peer}\npass from any to {peer} no state\n")
    assert mac.reaches()
    mac.enforce(f"pass from any to {peer} no state\nblock drop from any to {peer}\n")
    assert not mac.reaches()
    mac.enforce(f"block drop quick from any to {peer}\npass quick from any to {peer} no state\n")
    assert not mac.reaches()
    mac.enforce(f"pass quick from any to {peer} no state\nblock drop quick from any to {peer}\n")
    assert mac.reaches()


def test_anchors_are_called_in_alphabetical_order(mac: Tools) -> None:
    mac.enable()
    passing = f"pass quick from any to {mac.mac.peer.address} no state\n"
    mac.enforce(block(mac))
    mac.enforce(passing, "com.apple/zzz.rig")
    assert not mac.reaches()
    mac.enforce(passing, "com.apple/aaa.rig")
    assert mac.reaches()


def test_options_in_an_anchor_have_no_effect(mac: Tools) -> None:
    """`set skip` belongs to the main ruleset: the block on that interface holds."""
    mac.enable()
    interface = mac.mac.peer.interface
    done = mac.load(f"set skip on {interface}\n{block(mac, f'on {interface}')}")
    assert done.status != 0 or not mac.reaches()


@pytest.mark.parametrize(
    "rules",
    [
        "block drop quick frm any to any\n",
        "block drop quick from any to any port\n",
        "block drop quick proto nosuch all\n",
        "block drop quick from 1.2.3.4.5 to any\n",
        "block drop quick from any to any port 22\n",
        "pass quick all flags\n",
        "drop all\n",
        "iptables -A INPUT -j DROP\n",
        "table peers { 10.0.0.1 }\n",
        "anchor\n",
        "pass quick all; block all\n",
        "block drop quick from any to { 10.0.0.1\n",
    ],
)
def test_syntax_errors_load_nothing(mac: Tools, rules: str) -> None:
    assert mac.load(rules).status != 0
    assert mac.must(f"pfctl -q -a {ANCHOR} -s rules") == ""


def test_a_check_loads_nothing(mac: Tools) -> None:
    path = f"{mac.mac.folder}/check.conf"
    mac.must(f"echo 'block drop quick all' >{path}; pfctl -q -a {ANCHOR} -n -f {path}")
    assert mac.must(f"pfctl -q -a {ANCHOR} -s rules") == ""


def test_states_pass_what_a_block_would_stop(mac: Tools) -> None:
    """Made by a pass rule that keeps state, listed, killed."""
    mac.enable()
    peer = mac.mac.peer
    mac.enforce(f"pass out quick proto tcp from any to {peer.address} keep state\n")
    assert mac.reaches()
    assert peer.address in mac.must("pfctl -s states 2>/dev/null")
    mac.must(f"pfctl -k 0.0.0.0/0 -k {peer.address}")
    listed = mac.must("pfctl -s states 2>/dev/null")
    assert f"{peer.address}:{peer.port}" not in listed


def test_ours_is_untouched_by_loading_anothers(mac: Tools) -> None:
    mac.enable()
    mac.enforce(block(mac))
    mac.enforce("pass quick on lo0 all no state\n", "com.apple/zzz.rig")
    mac.must("pfctl -q -a com.apple/zzz.rig -F all")
    assert not mac.reaches()
