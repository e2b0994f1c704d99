"""The `pfctl` command of an emulated macOS node: the forms that node scripts use, and nothing else.

Rules live in the anchor `com.apple/rig`, which the stock main ruleset reaches by its wildcard. They enforce nothing
until pf is enabled (`-E`, which gives a counted token). What node scripts do not need is an error, never silently
accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from rig.embedded.machine.nft import PACKET_BYTES, CommandError, ReadFile
from rig.embedded.machine.packet_filter import Chain, Hook, Match, Network, PacketFilter, Rule, network

ANCHOR = "com.apple/rig"
MAIN_RULES = 'scrub-anchor "com.apple/*" all fragment reassemble\nanchor "com.apple/*" all\n'
TABLE = re.compile(r"table\s+<(\w+)>\s+persist\s+\{([^}]*)\}")
HOOKS: dict[str, tuple[Hook, ...]] = {"in": ("in",), "out": ("out",), "": ("in", "out")}


@dataclass
class Pf:
    filter: PacketFilter
    tokens: set[str] = field(default_factory=set[str])
    _next_token: int = 11072160000000000001

    def run(self, arguments: list[str], read_file: ReadFile) -> str:
        """Output of one command. Raises CommandError."""
        command = "pfctl " + " ".join(arguments)
        match arguments:
            case ["-s", "rules"]:
                return MAIN_RULES
            case ["-s", "info"]:
                return (
                    f"Status: {'Enabled' if self.tokens else 'Disabled'} for 0 days 00:00:00           Debug: Urgent\n"
                )
            case ["-E"]:
                return self._enable(command)
            case ["-X", token]:
                return self._release(token, command)
            case ["-q", "-a", anchor, *rest] if anchor == ANCHOR:
                return self._anchor(rest, read_file, command)
            case ["-k", _] | ["-k", _, "-k", _]:
                return "killed 0 states from 1 sources and 1 destinations\n"  # the default rule keeps no state
            case _:
                raise CommandError(f"pfctl: not emulated: {command}")

    def _enable(self, command: str) -> str:
        token = str(self._next_token)
        self._next_token += 1
        self.tokens.add(token)
        self.filter.enable(enabled=True, command=command)
        return f"pf enabled\nToken : {token}\n"

    def _release(self, token: str, command: str) -> str:
        if token not in self.tokens:
            raise CommandError(f"pfctl: DIOCSTOPREF: no such token {token}")
        self.tokens.discard(token)
        self.filter.enable(enabled=bool(self.tokens), command=command)
        return "disable request successful.\n"

    def _anchor(self, rest: list[str], read_file: ReadFile, command: str) -> str:
        match rest:
            case ["-s", "rules"]:
                return "".join(f"{rule.text}\n" for rule in self._rules())
            case ["-s", "rules", "-v"]:
                return "".join(_verbose(rule) for rule in self._rules())
            case ["-n", "-f", path]:
                parse_rules(read_file(path))
                return ""
            case ["-f", path]:
                self.filter.replace(ANCHOR, _chains(parse_rules(read_file(path))), command)
                return ""
            case ["-F", "all"]:
                self.filter.replace(ANCHOR, None, command)
                return ""
            case _:
                raise CommandError(f"pfctl: not emulated: {command}")

    def _rules(self) -> list[Rule]:
        """Each rule once, in its order, although most are in the chains of both hooks."""
        seen: dict[int, Rule] = {}
        for chain in self.filter.chains.get(ANCHOR, []):
            for rule in chain.rules:
                seen.setdefault(id(rule), rule)
        return list(seen.values())


def _verbose(rule: Rule) -> str:
    return (
        f"{rule.text}\n  [ Evaluations: {rule.packets:<9} Packets: {rule.packets:<9} "
        f"Bytes: {rule.packets * PACKET_BYTES:<11} States: 0     ]\n"
    )


def _chains(rules: list[tuple[tuple[Hook, ...], Rule]]) -> list[Chain]:
    directions: tuple[Hook, ...] = ("in", "out")
    return [
        Chain(name=ANCHOR, hook=hook, rules=[rule for hooks, rule in rules if hook in hooks]) for hook in directions
    ]


def parse_rules(text: str) -> list[tuple[tuple[Hook, ...], Rule]]:
    """Rules with the hooks they apply to. Raises CommandError naming the line."""
    tables: dict[str, tuple[Network, ...]] = {}
    rules: list[tuple[tuple[Hook, ...], Rule]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        try:
            if table := TABLE.fullmatch(line):
                tables[table[1]] = tuple(network(word) for word in re.split(r"[\s,]+", table[2].strip()) if word)
            else:
                rules.append(_rule(line, tables))
        except ValueError as error:
            raise CommandError(f"stdin:{number}: syntax error: {line} ({error})") from error
    return rules


@dataclass
class _Words:
    rest: list[str]

    def take(self, *options: str) -> str:
        """The next word if it is one of `options`, else an empty string."""
        if self.rest and self.rest[0] in options:
            return self.rest.pop(0)
        return ""

    def take_all(self, *words: str) -> bool:
        if self.rest[: len(words)] == list(words):
            del self.rest[: len(words)]
            return True
        return False

    def word(self) -> str:
        if not self.rest:
            raise ValueError("unexpected end of the line")
        return self.rest.pop(0)


def _rule(line: str, tables: dict[str, tuple[Network, ...]]) -> tuple[tuple[Hook, ...], Rule]:
    words = _Words(line.split())
    verdict: Literal["accept", "drop"] = "drop" if words.take("pass", "block") == "block" else "accept"
    if verdict == "accept" and not line.startswith("pass "):
        raise ValueError("a rule begins with pass or block")
    words.take("drop")
    hooks = HOOKS[words.take("in", "out")]
    quick = bool(words.take("quick"))
    interfaces = frozenset({words.word()}) if words.take("on") else frozenset[str]()
    family = words.take("inet", "inet6")
    if words.take("proto") and words.word() != "tcp":
        raise ValueError("only tcp is emulated")
    sources: tuple[Network, ...] = ()
    destinations: tuple[Network, ...] = ()
    source_ports = destination_ports = frozenset[int]()
    if not words.take("all"):
        if words.take("from") == "":
            raise ValueError("expected all or from")
        sources, source_ports = _side(words, tables)
        if words.take("to") == "":
            raise ValueError("expected to")
        destinations, destination_ports = _side(words, tables)
    words.take_all("flags", "any")
    words.take_all("no", "state")
    if words.rest:
        raise ValueError(f"not emulated: {' '.join(words.rest)}")
    match = Match(
        sources=sources,
        destinations=destinations,
        source_ports=source_ports,
        destination_ports=destination_ports,
        interfaces=interfaces,
        family={"inet": 4, "inet6": 6}.get(family),  # pyright: ignore[reportArgumentType] (a literal 4, 6 or None)
    )
    return hooks, Rule(match=match, verdict=verdict, text=line, quick=quick)


def _side(words: _Words, tables: dict[str, tuple[Network, ...]]) -> tuple[tuple[Network, ...], frozenset[int]]:
    """Addresses and ports of one side: `any`, a table, or an address; then perhaps `port N`."""
    word = words.word()
    networks: tuple[Network, ...]
    if word == "any":
        networks = ()
    elif word.startswith("<"):
        name = word.strip("<>")
        if name not in tables:
            raise ValueError(f"no table {word}")
        networks = tables[name]
    else:
        networks = (network(word),)
    ports = frozenset({int(words.word())}) if words.take("port") else frozenset[int]()
    return networks, ports
