"""A virtual Mac's packet filter: what pf remembers, and its enforcement in the node's network namespace by nft.

As on a Mac: pf is enabled while somebody holds a token of `-E` (or after `-e`); `-d` voids everybody's tokens; loading
the main ruleset flushes every anchor that was filled at run time; nothing outlives a boot.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from rig.lab.mac.pf.evaluation import Evaluated, evaluation
from rig.lab.mac.pf.statements import FilterRule, LoadAnchor, Network, Ruleset
from rig.lab.mac.pf.translate import TABLE, rule_chains, translate

NFT_TIMEOUT_S = 10.0
FIRST_PID = 20_000  # of the pfctl that loaded an anchor first
FIRST_TOKEN = 11072160000000000001
RULE_CHAIN = re.compile(r"r(\d+)")


class PfError(Exception):
    """What pfctl prints before it ends with status 1."""


@dataclass(frozen=True)
class State:
    """One connection that pf passes without asking a rule; as its first packet went."""

    family: int
    source: str
    destination: str
    protocol: str
    source_port: int
    destination_port: int


@dataclass
class Firewall:
    """`nft(arguments, script)` runs nft in the node's network and returns its output; it raises PfError."""

    nft: Callable[[Sequence[str], str], str]
    main: Ruleset = field(default_factory=Ruleset)
    anchors: dict[str, Ruleset] = field(default_factory=dict[str, Ruleset])
    tokens: dict[str, str] = field(default_factory=dict[str, str])  # by token: who asked
    enabled: bool = False
    pipes: dict[int, list[str]] = field(default_factory=dict[int, list[str]])  # what each pipe does, for nft
    delaying: set[int] = field(default_factory=set[int])  # pipes that hold packets back
    removed_packets: int = 0  # blocked by the rules that the last change removed
    _next_token: int = FIRST_TOKEN
    _loads: int = 0
    _counts: dict[int, int] = field(default_factory=dict[int, int])  # by id() of a rule: packets before the last change
    _loaded: list[Evaluated] = field(default_factory=list[Evaluated])

    # ---- changes

    def load_main(self, ruleset: Ruleset, loads: Mapping[LoadAnchor, Ruleset]) -> None:
        """Every anchor goes, but those that the configuration itself loads."""
        self.main = ruleset
        self.anchors = {}
        for load, content in loads.items():
            self.anchors[load.name] = content
        self.enforce()

    def load_anchor(self, path: str, ruleset: Ruleset) -> None:
        """Options in an anchor's file have no effect: they belong to the main ruleset. Raises PfError."""
        ruleset.skipped = ()
        self._loads += 1
        ruleset.inserted_by = FIRST_PID + self._loads
        self.refuse_inward(ruleset, self.delaying)
        self.anchors[path] = ruleset
        self.enforce()

    def flush_anchor(self, path: str, *, tables: bool) -> None:
        old = self.anchors.pop(path, None)
        if old is not None and not tables and old.tables:
            self.anchors[path] = Ruleset(tables=old.tables)
        self.enforce()

    def flush_main(self) -> None:
        self.main = Ruleset()
        self.enforce()

    def set_table(self, path: str, name: str, networks: tuple[Network, ...]) -> None:
        self.anchors.setdefault(path, Ruleset()).tables[name] = networks
        self.enforce()

    def enable(self, *, token_for: str | None = None) -> str:
        """With `token_for`, a token that keeps pf enabled until it is given back."""
        self.enabled = True
        token = ""
        if token_for is not None:
            token = str(self._next_token)
            self._next_token += 1
            self.tokens[token] = token_for
        self.enforce()
        return token

    def release(self, token: str) -> None:
        """The last token given back disables pf. Raises PfError for one that is not held."""
        if token not in self.tokens:
            raise PfError("pfctl: pf not enabled or token not valid\n")
        del self.tokens[token]
        if not self.tokens:
            self.enabled = False
        self.enforce()

    def disable(self) -> None:
        self.enabled = False
        self.tokens.clear()
        self.enforce()

    # ---- enforcement

    @staticmethod
    def refuse_inward(ruleset: Ruleset, delaying: set[int]) -> None:
        """Packets are held back on their way out alone. Raises PfError for a rule that would do so to others."""
        for rule in ruleset.filters():
            if rule.action == "dummynet" and rule.direction != "out" and rule.pipe in delaying:
                raise PfError(f"not emulated: delay on the way in ({rule})\n")

    def in_force(self) -> list[Evaluated]:
        return evaluation(self.main, self.anchors) if self.enabled else []

    def enforce(self) -> None:
        """Put the rules that are in force now into the kernel; counts of rules that stay go on."""
        self._keep_counts()
        rules = self.in_force()
        still = {id(each.rule) for each in rules}
        gone = [each for each in self._loaded if id(each.rule) not in still and each.rule.action == "block"]
        self.removed_packets = sum(self._counts.get(id(each.rule), 0) for each in gone)
        if self.enabled:
            script = translate(rules, skipped=self.main.skipped, pipes=self.pipes, old_chains=rule_chains(self._loaded))
            self.nft(["-f", "-"], script)
        else:
            self.nft(["-f", "-"], f"add table {TABLE}\ndelete table {TABLE}\n")
        self._loaded = rules
        known = {id(rule) for ruleset in (self.main, *self.anchors.values()) for rule in ruleset.filters()}
        self._counts = {rule: count for rule, count in self._counts.items() if rule in known}

    def packets(self, rule: FilterRule) -> int:
        """Packets that a rule has decided since it was loaded."""
        return self._counts.get(id(rule), 0) + sum(count for each, count in self._kernel_counts() if each.rule is rule)

    def _keep_counts(self) -> None:
        for each, count in self._kernel_counts():
            self._counts[id(each.rule)] = self._counts.get(id(each.rule), 0) + count

    def _kernel_counts(self) -> list[tuple[Evaluated, int]]:
        if not self._loaded:
            return []
        by_number = {each.number: each for each in self._loaded}
        found: list[tuple[Evaluated, int]] = []
        for entry in self._json("table", *TABLE.split()):
            rule = entry.get("rule", {})
            number = RULE_CHAIN.fullmatch(str(rule.get("comment", rule.get("chain", ""))))
            counted = [each["counter"]["packets"] for each in rule.get("expr", []) if "counter" in each]
            if number and counted and int(number[1]) in by_number:
                found.append((by_number[int(number[1])], int(counted[0])))
        return found

    def _json(self, *words: str) -> list[dict[str, Any]]:
        text = self.nft(["-j", "list", *words], "")
        content = cast("dict[str, list[dict[str, Any]]]", msgspec.json.decode(text))
        return content["nftables"]

    # ---- states

    def states(self) -> list[State]:
        if not self.enabled:
            return []
        found: list[State] = []
        for family in (4, 6):
            for entry in self._json("set", *TABLE.split(), f"forward{family}"):
                for element in entry.get("set", {}).get("elem", []):
                    value = element["elem"]["val"] if "elem" in element else element
                    source, destination, protocol, sport, dport = value["concat"]
                    found.append(State(family, source, destination, str(protocol), int(sport), int(dport)))
        return found

    def kill(self, states: Sequence[State]) -> None:
        lines: list[str] = []
        for state in states:
            there = f"{state.source} . {state.destination} . {state.protocol} . {state.source_port}"
            back = f"{state.destination} . {state.source} . {state.protocol} . {state.destination_port}"
            lines.append(f"delete element {TABLE} forward{state.family} {{ {there} . {state.destination_port} }}")
            lines.append(f"delete element {TABLE} back{state.family} {{ {back} . {state.source_port} }}")
        if lines:
            self.nft(["-f", "-"], "\n".join(lines) + "\n")


def kernel_nft(arguments: Sequence[str], script: str) -> str:
    """nft in the network namespace of this process. Raises PfError."""
    try:
        done = subprocess.run(
            ["/usr/sbin/nft", *arguments],
            input=script,
            capture_output=True,
            text=True,
            timeout=NFT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PfError(f"pfctl: the emulation's nft: {error}\n") from error
    if done.returncode != 0:
        raise PfError(f"pfctl: the emulation's nft: {done.stderr}\n")
    return done.stdout
