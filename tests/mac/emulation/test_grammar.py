"""pf's rules as text: what is understood, how it is printed, in which order it is evaluated, what nft gets."""

from __future__ import annotations

import pytest

from rig.lab.mac.pf.evaluation import evaluation
from rig.lab.mac.pf.grammar import parse
from rig.lab.mac.pf.statements import AnchorCall, FilterRule, Ruleset
from rig.lab.mac.pf.translate import matches
from rig.lab.mac.pf.words import PfSyntaxError


def rule(text: str) -> FilterRule:
    found = parse(text).rules
    assert len(found) == 1
    assert isinstance(found[0], FilterRule)
    return found[0]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("block drop quick on en5 all", "block drop quick on en5 all"),
        ("block all", "block drop all"),
        ("block return in from any to 10.0.0.0/8", "block return in from any to 10.0.0.0/8"),
        ("pass out", "pass out all flags S/SA keep state"),
        ("pass quick on lo0 all no state", "pass quick on lo0 all no state"),
        (
            "pass in quick proto tcp from 10.0.0.9 to any port 22 flags any no state",
            "pass in quick proto tcp from 10.0.0.9 to any port = 22 flags any no state",
        ),
        ("pass proto { tcp, udp } to port ssh", "error"),
        (
            "pass proto { tcp, udp } to any port ssh",
            "pass proto { tcp udp } from any to any port = 22 flags S/SA keep state",
        ),
        ("block from ! fe80::1%en5 to any", "block drop from ! fe80::1 to any"),
        (
            "dummynet out quick proto tcp from any to 10.0.0.2 pipe 41",
            "dummynet out quick proto tcp from any to 10.0.0.2 pipe 41",
        ),
        ("block proto tcp to any port 5:7 # why", "block drop proto tcp from any to any port = 5:7"),
    ],
)
def test_printed_as_pfctl_does(text: str, printed: str) -> None:
    if printed == "error":
        with pytest.raises(PfSyntaxError):
            parse(text)
    else:
        assert str(rule(text)) == printed


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\nblock foo", 2),
        ("block all\npass to $nobody", 2),
        ("anchor x\nset skip on lo0", 2),
        ("block \\\nall \\\nx", 1),
        ("block all keep state", 1),
        ("pass all flags S/S", 1),
        ("table <a> persist { host.example }", 1),
        ("block from any to any port 99999", 1),
        ("block all\n\npass all \\", 3),
    ],
)
def test_errors_name_the_line(text: str, line: int) -> None:
    with pytest.raises(PfSyntaxError) as caught:
        parse(text)
    assert caught.value.line == line


def test_macros_tables_and_options() -> None:
    ruleset = parse(
        'me = "10.0.0.1"\ntable <t> persist { $me, fe80::/10 }\nset skip on { lo0 en1 }\nblock from <t> to <u>\n'
    )
    assert [str(each) for each in ruleset.tables["t"]] == ["10.0.0.1/32", "fe80::/10"]
    assert ruleset.tables["u"] == ()
    assert ruleset.skipped == ("lo0", "en1")


def test_evaluation_goes_through_what_is_called() -> None:
    main = Ruleset(rules=[AnchorCall("com.apple/*")])
    anchors = {
        name: parse(f"block on {number}\n")
        for number, name in enumerate(["com.apple/z", "com.apple/a", "com.apple/a/below", "rig", "com.apple"])
    }
    found = [(each.anchor, each.rule.interfaces) for each in evaluation(main, anchors)]
    assert found == [("com.apple/a", ("1",)), ("com.apple/z", ("0",))]
    anchors["com.apple/a"].rules.append(AnchorCall("below"))
    assert [each.anchor for each in evaluation(main, anchors)] == ["com.apple/a", "com.apple/a/below", "com.apple/z"]


def test_dummynet_rules_belong_to_their_own_call() -> None:
    anchors = {"a": parse("dummynet out all pipe 1\nblock all\n")}
    both = Ruleset(rules=[AnchorCall("a", "dummynet-anchor"), AnchorCall("a")])
    assert [each.rule.action for each in evaluation(both, anchors)] == ["dummynet", "block"]
    assert [each.rule.action for each in evaluation(Ruleset(rules=[AnchorCall("a")]), anchors)] == ["block"]


@pytest.mark.parametrize(
    ("text", "direction", "expected"),
    [
        ("block inet6 from any to <t>", "out", ["meta nfproto ipv6 ip6 daddr { fe80::1/128 } "]),
        ("block inet from <none> to any", "in", []),
        ("block on en0 from 10.0.0.1 to any", "in", ['iifname "en0" meta nfproto ipv4 ip saddr { 10.0.0.1/32 } ']),
        (
            "pass inet proto tcp from any to any port 22",
            "out",
            ["meta nfproto ipv4 meta l4proto tcp th dport { 22 } tcp flags & (syn | ack) == syn "],
        ),
        (
            "pass inet",
            "in",
            [
                "meta nfproto ipv4 meta l4proto tcp tcp flags & (syn | ack) == syn ",
                "meta nfproto ipv4 meta l4proto != tcp ",
            ],
        ),
        ("pass inet all no state", "in", ["meta nfproto ipv4 "]),
    ],
)
def test_matches(text: str, direction: str, expected: list[str]) -> None:
    ruleset = parse(f"table <t> {{ fe80::1 10.0.0.5 }}\ntable <none> persist\n{text}\n")
    assert matches(ruleset.filters()[0], direction, ruleset.tables) == expected
