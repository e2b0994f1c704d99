"""The `nft` command of an emulated Linux node: the forms that node scripts use, and nothing else.

Supported: `nft list tables`, `nft [-a] list table inet NAME` (without handles), `nft delete table inet NAME`, `nft -f
FILE` where the file declares tables of the family inet with filter chains on input, output and forward. A rule is made
of `iifname|oifname "NAME"`, `ip|ip6 saddr|daddr ADDRESS`, `tcp dport|sport PORT`, `counter`, and ends in `accept` or
`drop`. Anything else is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from rig.lab.embedded.machine.packet_filter import Chain, Hook, Match, Network, PacketFilter, Rule, network

TOKEN = re.compile(r'"[^"\n]*"|[{};]|\n|[^\s{};"]+')
PACKET_BYTES = 60  # what is counted is mostly first packets and retransmissions
HOOKS: dict[str, Hook | None] = {"input": "in", "output": "out", "forward": None}  # nodes do not forward


class CommandError(Exception):
    """What the command prints on stderr."""


@dataclass
class Nft:
    """`owner` in the filter is the table's name, with the family: `inet rig_x`."""

    filter: PacketFilter
    printed: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, arguments: list[str], read_file: ReadFile) -> str:
        """Output of one command. Raises CommandError."""
        command = "nft " + " ".join(arguments)
        match arguments:
            case ["list", "tables"]:
                return "".join(f"table {name}\n" for name in sorted(self.filter.chains))
            case ["list", "table", "inet", name] | ["-a", "list", "table", "inet", name]:
                return self._list(f"inet {name}")
            case ["delete", "table", "inet", name]:
                owner = f"inet {name}"
                self._must_exist(owner)
                self.filter.replace(owner, None, command)
                return ""
            case ["-f", path]:
                tables = parse_ruleset(read_file(path))
                for owner in tables:
                    if owner in self.filter.chains:
                        raise CommandError(f"Error: table {owner} exists already; adding to it is not emulated")
                for owner, chains in tables.items():
                    self.filter.replace(owner, chains, command)
                return ""
            case _:
                raise CommandError(f"Error: not emulated: {command}")

    def _must_exist(self, owner: str) -> None:
        if owner not in self.filter.chains:
            raise CommandError(f"Error: No such file or directory\n{owner}")

    def _list(self, owner: str) -> str:
        self._must_exist(owner)
        lines = [f"table {owner} {{"]
        for chain in self.filter.chains[owner]:
            hook = {"in": "input", "out": "output"}[chain.hook]
            lines.append(f"\tchain {chain.name} {{")
            lines.append(f"\t\ttype filter hook {hook} priority {chain.priority}; policy {chain.policy};")
            for rule in chain.rules:
                counter = f"counter packets {rule.packets} bytes {rule.packets * PACKET_BYTES}"
                lines.append("\t\t" + re.sub(r"\bcounter\b", counter, rule.text))
            lines.append("\t}")
        return "\n".join([*lines, "}", ""])


class ReadFile:
    """Reads a file named on the command line; raises CommandError when it cannot be read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, path: str) -> str:
        try:
            return (Path(self.folder) / path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"Error: Could not open file {path}: {error}") from error


class _Tokens:
    def __init__(self, text: str) -> None:
        stripped = "\n".join(line.partition("#")[0] for line in text.splitlines())
        self.items = TOKEN.findall(stripped)
        self.position = 0

    def skip_ends(self) -> None:
        while self.position < len(self.items) and self.items[self.position] in {"\n", ";"}:
            self.position += 1

    def peek(self) -> str:
        return self.items[self.position] if self.position < len(self.items) else ""

    def next(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expect(self, *wanted: str) -> None:
        for want in wanted:
            token = self.next()
            if token != want:
                raise CommandError(f"Error: syntax error, expected {want}, not {token or 'end of file'!r}")

    def statement(self) -> list[str]:
        """Tokens up to a line's end, a semicolon or a closing brace."""
        taken: list[str] = []
        while self.peek() not in {"\n", ";", "}", ""}:
            taken.append(self.next())
        return taken


def parse_ruleset(text: str) -> dict[str, list[Chain]]:
    """Tables by `inet NAME`. Raises CommandError at the first thing that is not emulated."""
    tokens = _Tokens(text)
    tables: dict[str, list[Chain]] = {}
    tokens.skip_ends()
    while tokens.peek():
        tokens.expect("table", "inet")
        name = tokens.next()
        tokens.expect("{")
        chains: list[Chain] = []
        tokens.skip_ends()
        while tokens.peek() == "chain":
            chain = _chain(tokens)
            if chain is not None:
                chains.append(chain)
            tokens.skip_ends()
        tokens.expect("}")
        tables[f"inet {name}"] = chains
        tokens.skip_ends()
    return tables


def _chain(tokens: _Tokens) -> Chain | None:
    """One chain; None for one on the forward hook, whose rules are checked all the same."""
    tokens.expect("chain")
    name = tokens.next()
    tokens.expect("{")
    tokens.skip_ends()
    match tokens.statement():
        case ["type", "filter", "hook", hook_name, "priority", priority] if hook_name in HOOKS:
            hook = HOOKS[hook_name]
        case other:
            raise CommandError(f"Error: not emulated: {' '.join(other)}")
    chain = Chain(name=name, hook=hook or "in", priority=_number(priority))
    tokens.skip_ends()
    while tokens.peek() != "}":
        words = tokens.statement()
        match words:
            case ["policy", "accept"]:
                pass
            case ["policy", "drop"]:
                chain.policy = "drop"
            case []:
                raise CommandError("Error: syntax error, unexpected end of file")
            case _:
                chain.rules.append(parse_rule(words))
        tokens.skip_ends()
    tokens.expect("}")
    return None if hook is None else chain


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CommandError(f"Error: not a number: {text}") from error


def parse_rule(words: list[str]) -> Rule:
    """One rule from its words. Raises CommandError."""
    text = " ".join(words)
    sources: tuple[Network, ...] = ()
    destinations: tuple[Network, ...] = ()
    source_ports: frozenset[int] = frozenset()
    destination_ports: frozenset[int] = frozenset()
    interfaces: frozenset[str] = frozenset()
    rest = words
    while True:
        match rest:
            case ["iifname" | "oifname", quoted, *rest]:
                interfaces = frozenset({quoted.strip('"')})
            case ["ip" | "ip6" as family, "saddr", address, *rest]:
                sources = (_address(family, address),)
            case ["ip" | "ip6" as family, "daddr", address, *rest]:
                destinations = (_address(family, address),)
            case ["tcp", "dport", port, *rest]:
                destination_ports = frozenset({_number(port)})
            case ["tcp", "sport", port, *rest]:
                source_ports = frozenset({_number(port)})
            case ["counter", *rest]:
                pass
            case ["accept" | "drop" as verdict]:
                match = Match(
                    sources=sources,
                    destinations=destinations,
                    source_ports=source_ports,
                    destination_ports=destination_ports,
                    interfaces=interfaces,
                )
                return Rule(match=match, verdict="drop" if verdict == "drop" else "accept", text=text)
            case _:
                raise CommandError(f"Error: not emulated: {text}")


def _address(family: str, text: str) -> Network:
    try:
        parsed = network(text)
    except ValueError as error:
        raise CommandError(f"Error: Could not resolve hostname: {text}") from error
    if (parsed.version == 6) != (family == "ip6") or "%" in text:
        raise CommandError(f"Error: {text} is no address of the family {family}")
    return parsed
