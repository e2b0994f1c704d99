"""pf's rules as nftables. Pure: text in the language of nft comes out.

pf looks for a state first; a packet that has one passes without a rule. Otherwise every rule is asked in turn and the
last that matches decides, a `quick` one at once; without a match the packet passes and no state is kept. Here a rule
that matches notes its number in the packet's mark; at the end the mark decides, and that rule counts the packet.

States are sets of (addresses, protocol, ports): `forward4` as the first packet went, `back4` the other way, and the
same for IPv6. A state that was made in the middle of a TCP connection does not know the window scale that both sides
agreed on at its beginning, and the connection stalls: such connections are in `stalled4` and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rig.lab.mac.pf.evaluation import Evaluated
from rig.lab.mac.pf.statements import FilterRule, Network, Side

TABLE = "inet pf"
KEY = "{ip} saddr . {ip} daddr . meta l4proto . th sport . th dport"
BACK = "{ip} daddr . {ip} saddr . meta l4proto . th dport . th sport"
FAMILIES: dict[str, int] = {"ip": 4, "ip6": 6}
HOOKS = {"in": "input", "out": "output"}
SYN = "tcp flags & (syn | ack) == syn"
STATE_TIMEOUT = "1d"  # as pf's for an established connection


def declare() -> str:
    """The table with its sets and base chains, as far as they are not there already."""
    lines = [f"add table {TABLE}"]
    for ip, family in FAMILIES.items():
        for name in ("forward", "back", "stalled"):
            key = KEY.format(ip=ip)
            lines.append(
                f"add set {TABLE} {name}{family} {{ typeof {key}; flags dynamic,timeout; timeout {STATE_TIMEOUT}; }}"
            )
    for direction, hook in HOOKS.items():
        lines.append(f"add chain {TABLE} {direction} {{ type filter hook {hook} priority -310; policy accept; }}")
        lines.append(f"add chain {TABLE} pipe_{direction} {{ type filter hook {hook} priority -305; policy accept; }}")
    lines.append(f"add chain {TABLE} decide")
    return "\n".join(lines) + "\n"


def translate(
    rules: Sequence[Evaluated],
    *,
    skipped: Sequence[str],
    pipes: Mapping[int, Sequence[str]],
    old_chains: Sequence[str],
) -> str:
    """One transaction that puts these rules in force in place of the ones before; states stay.

    `skipped`: interfaces that are not filtered. `pipes`: what each pipe does to a packet, as nft statements.
    `old_chains`: the rules' own chains that are there now.
    """
    lines = [declare().rstrip(), f"flush table {TABLE}"]
    lines += [f"delete chain {TABLE} {name}" for name in old_chains]
    deciding = [each for each in rules if each.rule.action != "dummynet"]
    lines += [f"add chain {TABLE} r{each.number}" for each in deciding]
    for direction in HOOKS:
        lines += _base(direction, deciding, skipped)
        lines += _pipes(direction, [each for each in rules if each.rule.action == "dummynet"], pipes)
    if deciding:
        verdicts = ", ".join(f"{each.number} : goto r{each.number}" for each in deciding)
        lines.append(f"add rule {TABLE} decide meta mark vmap {{ {verdicts} }}")
    for each in deciding:
        lines += _decision(each)
    return "\n".join(lines) + "\n"


def rule_chains(rules: Sequence[Evaluated]) -> list[str]:
    return [f"r{each.number}" for each in rules if each.rule.action != "dummynet"]


def _base(direction: str, rules: Sequence[Evaluated], skipped: Sequence[str]) -> list[str]:
    start = f"add rule {TABLE} {direction}"
    lines = [f'{start} {_name(direction)} "{name}" accept' for name in skipped]
    for ip, family in FAMILIES.items():
        key = KEY.format(ip=ip)
        lines.append(f"{start} {key} @stalled{family} drop")
        lines += [f"{start} {key} @{name}{family} accept" for name in ("forward", "back")]
    for each in rules:
        if each.rule.direction in {None, direction}:
            then = f"meta mark set {each.number}" + (" goto decide" if each.rule.quick else "")
            lines += [f"{start} {match}{then}" for match in matches(each.rule, direction, each.tables)]
    return [*lines, f"{start} goto decide"]


def _pipes(direction: str, rules: Sequence[Evaluated], pipes: Mapping[int, Sequence[str]]) -> list[str]:
    start = f"add rule {TABLE} pipe_{direction}"
    lines: list[str] = []
    for each in rules:
        if each.rule.direction in {None, direction}:
            for match in matches(each.rule, direction, each.tables):
                lines.append(f'{start} {match}counter comment "r{each.number}"')
                lines += [f"{start} {match}{effect}" for effect in pipes.get(each.rule.pipe, ())]
                lines += [f"{start} {match}accept"] if each.rule.quick else []
    return lines


def _decision(each: Evaluated) -> list[str]:
    start = f"add rule {TABLE} r{each.number}"
    if each.rule.action == "block":
        return [f"{start} counter {'reject' if each.rule.returns else 'drop'}"]
    lines = [f"{start} counter meta mark set 0"]
    if each.rule.keep_state:
        for ip, family in FAMILIES.items():
            key, back = KEY.format(ip=ip), BACK.format(ip=ip)
            middle = f"{start} meta l4proto tcp tcp flags & (syn | ack) != syn"
            lines.append(f"{middle} add @stalled{family} {{ {key} }} add @stalled{family} {{ {back} }} drop")
            ports = f"{start} meta l4proto {{ tcp, udp }}"
            lines.append(f"{ports} add @forward{family} {{ {key} }} add @back{family} {{ {back} }}")
    return [*lines, f"{start} accept"]


def matches(rule: FilterRule, direction: str, tables: Mapping[str, tuple[Network, ...]]) -> list[str]:
    """The packets of a rule as nft expressions, any of which may match; each ends in a blank or is empty."""
    found: list[str] = []
    for family in (4, 6):
        if rule.family not in {None, family}:
            continue
        sides = [_address(rule.source, "saddr", family, tables), _address(rule.destination, "daddr", family, tables)]
        if None in sides:
            continue
        address = f"meta nfproto ipv{family} " + "".join(each for each in sides if each)
        names = [f'{_name(direction)} "{name}" ' for name in rule.interfaces] or [""]
        found += [f"{name}{address}{transport}" for name in names for transport in _transports(rule)]
    return found


def _name(direction: str) -> str:
    return "iifname" if direction == "in" else "oifname"


def _address(side: Side, word: str, family: int, tables: Mapping[str, tuple[Network, ...]]) -> str | None:
    """Empty when any address will do, None when none of this family does."""
    if side.any_address:
        return ""
    networks = tables.get(side.table, ()) if side.table else side.networks
    texts = sorted({str(each) for each in networks if each.version == family})
    if not texts:
        return "" if side.negated else None
    ip = "ip" if family == 4 else "ip6"
    return f"{ip} {word} {'!= ' if side.negated else ''}{{ {', '.join(texts)} }} "


def _transports(rule: FilterRule) -> list[str]:
    """Protocol, ports and flags. Flags concern TCP alone: without a protocol, other packets match as they are."""
    ports = _ports(rule.source, "sport") + _ports(rule.destination, "dport")
    if rule.protocols:
        return [
            f"meta l4proto {'ipv6-icmp' if name == 'icmp6' else name} {ports}"
            + (f"{SYN} " if rule.syn_only and name == "tcp" else "")
            for name in rule.protocols
        ]
    return [f"meta l4proto tcp {SYN} ", "meta l4proto != tcp "] if rule.syn_only else [""]


def _ports(side: Side, word: str) -> str:
    if not side.ports:
        return ""
    ranges = [str(low) if low == high else f"{low}-{high}" for low, high in side.ports]
    return f"th {word} {{ {', '.join(ranges)} }} "
