"""A node's packet filter: chains of rules over flows, with counters. Pure: who changes it and who asks it are
elsewhere.

As in nftables, every base chain of a hook is asked in order of priority; a drop in any is final, an accept ends its
chain only. As in pf, a rule that is not `quick` can be overruled by a later one of its chain.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Hook: TypeAlias = Literal["in", "out"]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of a TCP connection. Addresses without a zone."""

    source: str
    source_port: int
    destination: str
    destination_port: int

    def reversed(self) -> Flow:
        return Flow(self.destination, self.destination_port, self.source, self.source_port)


def network(text: str) -> Network:
    """An address or prefix, a zone (`%eth0`) allowed and ignored. Raises ValueError."""
    return ipaddress.ip_network(text.partition("%")[0], strict=False)


@dataclass(frozen=True)
class Match:
    """What a rule applies to; an empty field matches everything. Networks match by family as well."""

    sources: tuple[Network, ...] = ()
    destinations: tuple[Network, ...] = ()
    source_ports: frozenset[int] = frozenset()
    destination_ports: frozenset[int] = frozenset()
    interfaces: frozenset[str] = frozenset()
    family: Literal[4, 6] | None = None
    tcp: bool = True  # False: a rule for another protocol, which no flow of ours is

    def covers(self, flow: Flow, interface: str) -> bool:
        return (
            self.tcp
            and (not self.source_ports or flow.source_port in self.source_ports)
            and (not self.destination_ports or flow.destination_port in self.destination_ports)
            and (not self.interfaces or interface in self.interfaces)
            and (self.family is None or self.family == (6 if ":" in flow.source else 4))
            and _within(flow.source, self.sources)
            and _within(flow.destination, self.destinations)
        )


def _within(address: str, networks: tuple[Network, ...]) -> bool:
    if not networks:
        return True
    parsed = ipaddress.ip_address(address)
    return any(parsed.version == each.version and parsed in each for each in networks)


@dataclass
class Rule:
    """`verdict` None only counts. `quick` ends the chain at a match (always so in nftables)."""

    match: Match
    verdict: Literal["drop", "accept"] | None
    text: str
    quick: bool = True
    packets: int = 0


@dataclass
class Chain:
    name: str
    hook: Hook
    priority: int = 0
    policy: Literal["drop", "accept"] = "accept"
    rules: list[Rule] = field(default_factory=list[Rule])

    def verdict(self, flow: Flow, interface: str) -> Literal["drop", "accept"]:
        """Counts one packet on the rule that decides (and on those that only count)."""
        decided = self.policy
        deciding: Rule | None = None
        for rule in self.rules:
            if not rule.match.covers(flow, interface):
                continue
            if rule.verdict is None:
                rule.packets += 1
                continue
            decided, deciding = rule.verdict, rule
            if rule.quick:
                break
        if deciding is not None:
            deciding.packets += 1
        return decided


@dataclass
class PacketFilter:
    """All chains of a node, by owner: an nftables table, or a pf anchor. `changed` is called after every change."""

    interface: str
    chains: dict[str, list[Chain]] = field(default_factory=dict[str, list[Chain]])
    enabled: bool = True
    changed: list[Callable[[str], None]] = field(default_factory=list[Callable[[str], None]])
    removed_packets: int = 0  # what the rules that the last change removed had dropped

    def idle(self) -> bool:
        """Whether everything passes without a look: the usual case, asked for every chunk."""
        return not self.chains or not self.enabled

    def passes(self, hook: Hook, flow: Flow) -> bool:
        if self.idle():
            return True
        chains = sorted(
            (chain for chains in self.chains.values() for chain in chains if chain.hook == hook),
            key=lambda chain: chain.priority,
        )
        return all(chain.verdict(flow, self.interface) == "accept" for chain in chains)

    def replace(self, owner: str, chains: list[Chain] | None, command: str) -> None:
        """Set or (None) remove all chains of an owner, and tell the listeners which command it was."""
        self.removed_packets = self.dropped_packets(owner)
        if chains is None:
            self.chains.pop(owner, None)
        else:
            self.chains[owner] = chains
        self.tell(command)

    def enable(self, *, enabled: bool, command: str) -> None:
        """Rules are listed while the filter is not enabled, but enforce nothing (pf)."""
        self.enabled = enabled
        self.removed_packets = 0
        self.tell(command)

    def tell(self, command: str) -> None:
        for listener in self.changed:
            listener(command)

    def rules(self) -> list[str]:
        return [
            f"{owner} {chain.hook}: {rule.text}"
            for owner, chains in sorted(self.chains.items())
            for chain in chains
            for rule in chain.rules
        ]

    def dropped_packets(self, owner: str) -> int:
        return sum(
            rule.packets for chain in self.chains.get(owner, []) for rule in chain.rules if rule.verdict == "drop"
        )
