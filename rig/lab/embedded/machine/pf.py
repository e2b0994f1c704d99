"""The `pfctl` command of an emulated macOS node: the forms that node scripts use, and nothing else.

Rules live in anchors `com.apple/rig_NAME`, which the stock main ruleset reaches by its wildcard. They enforce nothing
until pf is enabled (`-E`, which gives a counted token). What node scripts do not need is an error, never silently
accepted. The grammar is that of the virtual Macs, which enforce all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rig.lab.embedded.machine.nft import PACKET_BYTES, CommandError, ReadFile
from rig.lab.embedded.machine.packet_filter import Chain, Hook, Match, Network, PacketFilter, Rule
from rig.lab.mac.pf.grammar import parse
from rig.lab.mac.pf.statements import FilterRule
from rig.lab.mac.pf.words import PfSyntaxError

PARENT = "com.apple"
ANCHOR = re.compile(rf"{re.escape(PARENT)}/rig_\w+", re.ASCII)
MAIN_RULES = 'scrub-anchor "com.apple/*" all fragment reassemble\nanchor "com.apple/*" all\n'
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
            case ["-s", "rules" | "info" | "References" as what]:
                return self._show(what)
            case ["-E"]:
                return self._enable(command)
            case ["-X", token]:
                return self._release(token, command)
            case ["-q", "-a", "com.apple", "-s", "Anchors"]:
                return "".join(f"  {anchor}\n" for anchor in sorted(self.filter.chains))
            case ["-q", "-a", anchor, *rest] if ANCHOR.fullmatch(anchor):
                return self._anchor(anchor, rest, read_file, command)
            case ["-k", _] | ["-k", _, "-k", _]:
                return "killed 0 states from 1 sources and 1 destinations\n"  # the default rule keeps no state
            case _:
                raise CommandError(f"pfctl: not emulated: {command}")

    def _show(self, what: str) -> str:
        status = "Enabled" if self.tokens else "Disabled"
        return {
            "rules": MAIN_RULES,
            "info": f"Status: {status} for 0 days 00:00:00           Debug: Urgent\n",
            "References": "TOKENS:\n" + "".join(f"{token}\n" for token in sorted(self.tokens)),
        }[what]

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

    def _anchor(self, anchor: str, rest: list[str], read_file: ReadFile, command: str) -> str:
        match rest:
            case ["-s", "rules"]:
                return "".join(f"{rule.text}\n" for rule in self._rules(anchor))
            case ["-s", "rules", "-v"]:
                return "".join(_verbose(rule) for rule in self._rules(anchor))
            case ["-n", "-f", path]:
                parse_rules(read_file(path))
                return ""
            case ["-f", path]:
                self.filter.replace(anchor, _chains(anchor, parse_rules(read_file(path))), command)
                return ""
            case ["-F", "all"]:
                self.filter.replace(anchor, None, command)
                return ""
            case _:
                raise CommandError(f"pfctl: not emulated: {command}")

    def _rules(self, anchor: str) -> list[Rule]:
        """Each rule once, in its order, although most are in the chains of both hooks."""
        seen: dict[int, Rule] = {}
        for chain in self.filter.chains.get(anchor, []):
            for rule in chain.rules:
                seen.setdefault(id(rule), rule)
        return list(seen.values())


def _verbose(rule: Rule) -> str:
    return (
        f"{rule.text}\n  [ Evaluations: {rule.packets:<9} Packets: {rule.packets:<9} "
        f"Bytes: {rule.packets * PACKET_BYTES:<11} States: 0     ]\n"
    )


def _chains(anchor: str, rules: list[tuple[tuple[Hook, ...], Rule]]) -> list[Chain]:
    directions: tuple[Hook, ...] = ("in", "out")
    return [
        Chain(name=anchor, hook=hook, rules=[rule for hooks, rule in rules if hook in hooks]) for hook in directions
    ]


def parse_rules(text: str) -> list[tuple[tuple[Hook, ...], Rule]]:
    """Rules with the hooks they apply to. Raises CommandError naming the line, or the rule that cannot be enforced."""
    try:
        ruleset = parse(text)
    except PfSyntaxError as error:
        raise CommandError(f"stdin:{error.line}: syntax error: {error.reason}") from error
    if ruleset.skipped or ruleset.loads or len(ruleset.filters()) != len(ruleset.rules):
        raise CommandError("pfctl: not emulated: 1 statement that is no rule")
    return [_rule(rule, ruleset.tables) for rule in ruleset.filters()]


def _rule(rule: FilterRule, tables: dict[str, tuple[Network, ...]]) -> tuple[tuple[Hook, ...], Rule]:
    sides = (rule.source, rule.destination)
    ranges = any(low != high for side in sides for low, high in side.ports)
    negated = any(side.negated for side in sides)
    if rule.returns or rule.keep_state or rule.pipe or ranges or negated or rule.protocols not in {(), ("tcp",)}:
        raise CommandError(f"pfctl: not emulated: 1 rule: {rule}")
    sources, destinations = (tables[side.table] if side.table else side.networks for side in sides)
    if any(side.table and not tables[side.table] for side in sides):
        raise CommandError(f"pfctl: not emulated: 1 rule with an empty table: {rule}")
    match = Match(
        sources=sources,
        destinations=destinations,
        source_ports=frozenset(low for low, _ in rule.source.ports),
        destination_ports=frozenset(low for low, _ in rule.destination.ports),
        interfaces=frozenset(rule.interfaces),
        family=rule.family,
    )
    verdict = "drop" if rule.action == "block" else "accept"
    return HOOKS[rule.direction or ""], Rule(match=match, verdict=verdict, text=str(rule), quick=rule.quick)
