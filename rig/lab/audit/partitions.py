"""A partition: the rules stood exactly in the window, on that node alone, against every address of the other side, and
they dropped something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rig.lab.audit.cluster import ClusterAccount, Rules
from rig.lab.audit.findings import Findings
from rig.lab.audit.lives import moment
from rig.lab.audit.rigs import RigAccount

if TYPE_CHECKING:
    from rig.lab.audit.strikes import Strike

SLACK_S = 0.05
HEAL_LIMIT_S = 2.0
Points = list[tuple[str, str]]


def check_partition(rig: RigAccount, cluster: ClusterAccount, findings: Findings, strike: Strike) -> Points:
    struck_t, healed_t = strike.marks["struck"], strike.healed_t
    stood = standing(cluster.filters.get(strike.node, []), strike.table)
    if stood is None:
        return [(f"table {strike.table}", f"{strike.node} never had it")]
    loaded, removed = stood
    points = _moment("struck", struck_t, loaded.t, strike.error_s + cluster.resolution_s(struck_t))
    findings.spread("partition: strike, journal and ledger").add(struck_t - loaded.t)
    points += _rules(rig, strike, loaded)
    if healed_t is None:
        return points + _sampled(cluster, strike, loaded.t, None)
    if removed is None:
        return [*points, (f"healed at {healed_t:.3f}", f"the rules of {strike.table} still stand")]
    points += _moment("healed", healed_t, removed.t, strike.error_s + cluster.resolution_s(healed_t))
    findings.spread("partition: heal, journal and ledger").add(healed_t - removed.t)
    real_s = removed.t - loaded.t
    findings.spread("partition: hold, journal and ledger").add(real_s - (healed_t - struck_t))
    findings.spread("partition: hold, planned and real").add(real_s - strike.hold_s)
    if not strike.early and real_s < strike.hold_s - SLACK_S - strike.error_s:
        points.append((f"held {strike.hold_s:g} s", f"{real_s:.3f} s"))
    if real_s > strike.hold_s + HEAL_LIMIT_S:
        points.append((f"healed within {strike.hold_s:g} s and {HEAL_LIMIT_S:g}", f"after {real_s:.3f} s"))
    return points + _sampled(cluster, strike, loaded.t, removed.t) + _packets(strike, removed)


def standing(changes: list[Rules], table: str) -> tuple[Rules, Rules | None] | None:
    """The change that brought the rules of a table, and the one that took them away."""
    loaded: Rules | None = None
    for change in changes:
        present = any(names(rule, table) for rule in change.rules)
        if present and loaded is None:
            loaded = change
        elif loaded is not None and not present:
            return loaded, change
    return None if loaded is None else (loaded, None)


def names(rule: str, table: str) -> bool:
    """Whether a rule is of that table: `inet NAME in: …`."""
    return bool(table) and table in rule.partition(":")[0].split()


def _moment(name: str, told_t: float, real_t: float, tolerance_s: float) -> Points:
    if abs(told_t - real_t) <= tolerance_s + SLACK_S:
        return []
    return [(f"{name} at {told_t:.3f}", f"the rules changed at {real_t:.3f}")]


def _rules(rig: RigAccount, strike: Strike, loaded: Rules) -> Points:
    """Each address of each node on the other side is dropped, on every way that is cut."""
    points: Points = []
    for other in strike.others:
        for address in rig.info.inventory["nodes"][other]["addresses"]:
            bare = str(address).partition("%")[0]
            for way in strike.ways:
                if not any(_drops(rule, bare, way) for rule in loaded.rules if names(rule, strike.table)):
                    points.append((f"cut off from {other}", f"no rule drops {bare} {way}"))
    return points


def _drops(rule: str, address: str, way: str) -> bool:
    head, _, text = rule.partition(": ")
    return head.endswith(f" {way}") and address in text.split() and text.split()[-1] in ("drop", "block")


def _sampled(cluster: ClusterAccount, strike: Strike, from_t: float, to_t: float | None) -> Points:
    """The sampler saw them come and go, too, and saw data held back or nothing that tried to pass."""
    stood = standing(cluster.networks.get(strike.node, []), strike.table)
    if stood is None:
        return [(f"table {strike.table}", "the sampler never saw it")]
    points: Points = []
    for name, real_t, seen in (("loaded", from_t, stood[0]), ("removed", to_t, stood[1])):
        if real_t is None:
            continue
        if seen is None or not real_t - SLACK_S <= seen.t <= real_t + cluster.resolution_s(real_t) + SLACK_S:
            points.append(
                (f"rules {name} at {real_t:.3f}", f"the sampler saw it at {moment(None if seen is None else seen.t)}")
            )
    return points


def _packets(strike: Strike, removed: Rules) -> Points:
    """What the rig counted just before the removal had been dropped, and not less than what proved the strike."""
    proved, counted = strike.packets("struck"), strike.packets("healed")
    if 0 < proved <= counted <= removed.packets:
        return []
    return [(f"{proved}, then {counted} packets dropped", f"{removed.packets} packets dropped")]
