"""What a pf configuration is made of, as far as it is emulated. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Protocol: TypeAlias = Literal["tcp", "udp", "icmp", "icmp6"]


@dataclass(frozen=True)
class Side:
    """One end of a packet. No networks and no table: any address. `ports` are ranges; none: any port."""

    networks: tuple[Network, ...] = ()
    table: str = ""
    negated: bool = False
    ports: tuple[tuple[int, int], ...] = ()

    @property
    def any_address(self) -> bool:
        return not self.networks and not self.table

    def __str__(self) -> str:
        if self.table:
            address = f"<{self.table}>"
        elif self.any_address:
            address = "any"
        else:
            words = [show(each) for each in self.networks]
            address = words[0] if len(words) == 1 else "{ " + " ".join(words) + " }"
        ports = [str(low) if low == high else f"{low}:{high}" for low, high in self.ports]
        port = "" if not ports else f" port = {ports[0]}" if len(ports) == 1 else " port { " + " ".join(ports) + " }"
        return ("! " if self.negated else "") + address + port


def show(network: Network) -> str:
    return str(network.network_address) if network.num_addresses == 1 else str(network)


ANY = Side()


@dataclass(frozen=True, kw_only=True)
class FilterRule:
    """`pass`, `block` or `dummynet`. `syn_only`: flags S/SA, which a pass rule that keeps state implies."""

    action: Literal["pass", "block", "dummynet"]
    returns: bool = False  # block return
    direction: Literal["in", "out"] | None = None
    quick: bool = False
    interfaces: tuple[str, ...] = ()
    family: Literal[4, 6] | None = None
    protocols: tuple[Protocol, ...] = ()
    source: Side = ANY
    destination: Side = ANY
    syn_only: bool = False
    keep_state: bool = False
    pipe: int = 0

    def __str__(self) -> str:
        """As `pfctl -s rules` prints it."""
        words: list[str] = [self.action]
        if self.action == "block":
            words.append("return" if self.returns else "drop")
        words += [self.direction] if self.direction else []
        words += ["quick"] if self.quick else []
        words += ["on", _several(self.interfaces)] if self.interfaces else []
        words += [f"inet{'6' if self.family == 6 else ''}"] if self.family else []
        words += ["proto", _several(self.protocols)] if self.protocols else []
        everything = self.source == ANY and self.destination == ANY
        words.append("all" if everything else f"from {self.source} to {self.destination}")
        if self.action == "pass":
            words.append("flags S/SA" if self.syn_only else "flags any" if "tcp" in self.protocols else "")
            words.append("keep state" if self.keep_state else "no state")
        if self.action == "dummynet":
            words.append(f"pipe {self.pipe}")
        return " ".join(word for word in words if word)


def _several(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else "{ " + " ".join(words) + " }"


@dataclass(frozen=True)
class AnchorCall:
    """`anchor "NAME"`: evaluates the rules of an anchor here; a name ending in `/*` those of all its children."""

    name: str
    kind: str = "anchor"  # or scrub-anchor, nat-anchor, rdr-anchor, dummynet-anchor

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}" all' + (" fragment reassemble" if self.kind == "scrub-anchor" else "")


@dataclass(frozen=True)
class LoadAnchor:
    name: str
    path: str


@dataclass
class Ruleset:
    """The content of one anchor, or of the main ruleset (which alone may skip interfaces)."""

    rules: list[FilterRule | AnchorCall] = field(default_factory=list[FilterRule | AnchorCall])
    tables: dict[str, tuple[Network, ...]] = field(default_factory=dict[str, tuple[Network, ...]])
    skipped: tuple[str, ...] = ()
    loads: list[LoadAnchor] = field(default_factory=list[LoadAnchor])
    inserted_by: int = 0  # pid of the pfctl that loaded it

    def filters(self) -> list[FilterRule]:
        return [rule for rule in self.rules if isinstance(rule, FilterRule)]
