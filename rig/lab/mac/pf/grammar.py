"""pf.conf as macOS's pfctl takes it, as far as it is emulated. Pure.

Whatever is not in this grammar is a syntax error, valid pf or not: a rule is enforced as pf would, or refused.
"""

from __future__ import annotations

import ipaddress
from typing import Literal

from rig.lab.mac.pf.statements import (
    ANY,
    AnchorCall,
    FilterRule,
    LoadAnchor,
    Network,
    Protocol,
    Ruleset,
    Side,
)
from rig.lab.mac.pf.words import Line, lines

PROTOCOLS: dict[str, Protocol] = {"tcp": "tcp", "udp": "udp", "icmp": "icmp", "icmp6": "icmp6", "ipv6-icmp": "icmp6"}
PORTS = {"ssh": 22, "domain": 53, "http": 80, "https": 443}
OPTIONS = frozenset({"block-policy", "state-policy", "fingerprints", "loginterface", "ruleset-optimization"})
OTHER_ANCHORS = frozenset({"scrub-anchor", "nat-anchor", "rdr-anchor", "dummynet-anchor"})
# pf wants its kinds of statements in this order.
ORDER = {"set": 1, "scrub-anchor": 2, "nat-anchor": 3, "rdr-anchor": 3, "dummynet": 4, "dummynet-anchor": 4}
FILTERING = 5


def parse(text: str) -> Ruleset:
    """Raises PfSyntaxError naming the line."""
    found = Ruleset()
    reached = 0
    for line in lines(text):
        kind = line.word("a statement")
        order = ORDER.get(kind, FILTERING)
        if kind not in {"table", "load"}:
            if order < reached:
                text = "rules must be in order: options, normalization, queueing, translation, dummynet, filtering"
                raise line.error(text)
            reached = order
        _statement(kind, line, found)
        line.end()
    return found


def _statement(kind: str, line: Line, found: Ruleset) -> None:
    match kind:
        case "table":
            name, networks = _table(line)
            found.tables[name] = networks
        case "set":
            found.skipped += _option(line)
        case "load":
            if not line.take("anchor"):
                raise line.error("expected anchor")
            name = line.quoted("the anchor's name")
            if not line.take("from"):
                raise line.error("expected from")
            found.loads.append(LoadAnchor(name, line.quoted("a file")))
        case "anchor":
            found.rules.append(AnchorCall(line.quoted("the anchor's name")))
            line.take("all")
        case _ if kind in OTHER_ANCHORS:
            found.rules.append(AnchorCall(line.quoted("the anchor's name"), kind))
            line.take("all")
        case "pass" | "block" | "dummynet":
            rule = _rule(kind, line)
            for side in (rule.source, rule.destination):
                if side.table and side.table not in found.tables:
                    found.tables[side.table] = ()  # pf makes an empty table of a name it does not know
            found.rules.append(rule)
        case _:
            raise line.error(f"unexpected {kind}")


def _table(line: Line) -> tuple[str, tuple[Network, ...]]:
    name = line.word("<NAME>")
    if not name.startswith("<"):
        raise line.error("expected <NAME>")
    while line.take("persist", "const", "counters"):
        pass
    words = line.several("an address") if line.next == "{" and line.words[1:2] != ["}"] else []
    if not words and line.take("{"):
        line.take("}")
    return name.strip("<>"), tuple(network(word, line) for word in words)


def _option(line: Line) -> tuple[str, ...]:
    option = line.word("an option")
    if option == "skip":
        if not line.take("on"):
            raise line.error("expected on")
        return tuple(line.several("an interface"))
    if option not in OPTIONS:
        raise line.error(f"unexpected {option}")
    line.word("a value")
    return ()


def _rule(kind: Literal["pass", "block", "dummynet"], line: Line) -> FilterRule:
    returns = kind == "block" and line.take("drop", "return") == "return"
    direction: Literal["in", "out"] | None = None
    if word := line.take("in", "out"):
        direction = "in" if word == "in" else "out"
    line.take("log")
    quick = bool(line.take("quick"))
    interfaces = tuple(line.several("an interface")) if line.take("on") else ()
    family: Literal[4, 6] | None = None
    if word := line.take("inet", "inet6"):
        family = 4 if word == "inet" else 6
    protocols: tuple[Protocol, ...] = ()
    if line.take("proto"):
        protocols = tuple(_protocol(word, line) for word in line.several("a protocol"))
    source = destination = ANY
    if not line.take("all"):
        source = _side(line) if line.take("from") else ANY
        destination = _side(line) if line.take("to") else ANY
    if (source.ports or destination.ports) and not set(protocols) <= {"tcp", "udp"}:
        raise line.error("port only applies to tcp/udp")
    if (source.ports or destination.ports) and not protocols:
        raise line.error("port only applies to tcp/udp")
    syn_only, keep_state, pipe = _filter_options(kind, line)
    return FilterRule(
        action=kind,
        returns=returns,
        direction=direction,
        quick=quick,
        interfaces=interfaces,
        family=family,
        protocols=protocols,
        source=source,
        destination=destination,
        syn_only=syn_only,
        keep_state=keep_state,
        pipe=pipe,
    )


def _filter_options(kind: str, line: Line) -> tuple[bool, bool, int]:
    """(SYN packets only, keeps state, pipe). A pass rule keeps state unless told not to; one that does takes
    connections only from their first packet unless told otherwise.
    """
    flags, state, pipe = "", "", 0
    while line.words:
        if line.take("flags"):
            flags = line.word("flags")
            if flags not in {"any", "S/SA"}:
                raise line.error(f"flags {flags} are not emulated")
        elif line.take_all("keep", "state"):
            state = "keep"
        elif line.take_all("no", "state"):
            state = "no"
        elif line.take("label"):
            line.quoted("a label")
        elif kind == "dummynet" and line.take("pipe"):
            pipe = _number(line.word("a pipe"), 65535, line)
        else:
            raise line.error(f"unexpected {line.next}")
    if kind == "dummynet" and not pipe:
        raise line.error("expected pipe")
    if kind == "block" and state == "keep":
        raise line.error("keep state on block rules doesn't make sense")
    keeps = kind == "pass" and state != "no"
    return (flags == "S/SA" or (keeps and flags == "")), keeps, pipe


def _protocol(word: str, line: Line) -> Protocol:
    if word not in PROTOCOLS:
        raise line.error(f"unknown protocol {word}")
    return PROTOCOLS[word]


def _side(line: Line) -> Side:
    negated = bool(line.take("!"))
    table = ""
    networks: tuple[Network, ...] = ()
    if line.next.startswith("<") and len(line.next) > 1:
        table = line.word("a table").strip("<>")
    elif not line.take("any"):
        networks = tuple(network(word, line) for word in line.several("an address"))
    ports = tuple(_ports(line)) if line.take("port") else ()
    return Side(networks=networks, table=table, negated=negated, ports=ports)


def _ports(line: Line) -> list[tuple[int, int]]:
    line.take("=")
    found: list[tuple[int, int]] = []
    for word in line.several("a port"):
        low, colon, high = word.partition(":")
        first = _port(low, line)
        found.append((first, _port(high, line) if colon else first))
    return found


def _port(word: str, line: Line) -> int:
    return PORTS[word] if word in PORTS else _number(word, 65535, line)


def _number(word: str, most: int, line: Line) -> int:
    if not word.isdigit() or int(word) > most:
        raise line.error(f"{word} is no number up to {most}")
    return int(word)


def network(word: str, line: Line) -> Network:
    """An address or prefix. The zone of a link-local address is read and, as in a pf table, not matched on."""
    bare, _, prefix = word.partition("/")
    try:
        return ipaddress.ip_network(bare.partition("%")[0] + (f"/{prefix}" if prefix else ""), strict=False)
    except ValueError as error:
        raise line.error(f"no address that can be used here: {word}") from error
