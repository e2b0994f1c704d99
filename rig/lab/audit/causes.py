"""The other way round: whatever was stopped, killed, started or filtered on a node, somebody must have done it and said
so: the rig in its journal, or the cluster itself in its ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rig.faults.plan.kind import Effect
from rig.faults.plan.registry import KINDS
from rig.lab.audit.cluster import ClusterAccount
from rig.lab.audit.findings import Compared, Findings
from rig.lab.audit.lives import BUSY_S, Life, moment
from rig.lab.audit.partitions import names
from rig.lab.audit.rigs import RigAccount
from rig.lab.audit.strikes import Strike, strikes

SCRIPT_LIMIT_S = 60.0  # what a script that nobody watches any more takes at most
NOBODY = "nobody says so"


@dataclass(frozen=True)
class Cause:
    """What the journal says was done to a node in [from, to]. `pids` None: any process of it; `table` for rules."""

    name: str
    node: str
    from_t: float
    to_t: float
    acts: frozenset[str]  # stop, kill, start, rules
    pids: frozenset[int] | None = None
    table: str = ""

    def covers(self, act: str, node: str, pid: int, from_t: float, to_t: float) -> bool:
        return (
            act in self.acts
            and node == self.node
            and (self.pids is None or pid in self.pids)
            and self.from_t <= from_t
            and to_t <= self.to_t
        )


ACTS: dict[Effect, frozenset[str]] = {
    "tree-killed": frozenset({"stop", "kill", "start"}),
    "tree-ended": frozenset({"start"}),  # it is asked; every process ends by itself
    "tree-stopped": frozenset({"stop"}),
    "process-killed": frozenset({"kill"}),
    "paths-cut": frozenset({"rules"}),
    "paths-shaped": frozenset({"rules"}),  # a delay is an anchor on a Mac; a queue on Linux, which is no rule
    "restarted": frozenset({"kill", "start"}),
    "elsewhere": frozenset(),
}
"""By what a kind of fault does."""


def causes(rig: RigAccount, cluster: ClusterAccount) -> list[Cause]:
    found: list[Cause] = []
    for strike in strikes(rig):
        found += _of_strike(strike, cluster)
    for one in rig.unwedged:
        acts = frozenset({"start"} if one.act == "start" else {"stop", "kill", "start"})
        to_t = one.ended_t + (SCRIPT_LIMIT_S if one.cut_short else 0.0)
        found.append(Cause(f"unwedging after fault {one.fault}", one.node, one.started_t, to_t, acts))
    return found


def _of_strike(strike: Strike, cluster: ClusterAccount) -> list[Cause]:
    if not strike.marks:
        return []
    from_t = min(strike.marks.values()) - strike.error_s
    last = max(strike.marks.values())
    to_t = last + strike.error_s + (BUSY_S + cluster.resolution_s(last) if strike.healed_t is not None else 3600.0)
    effect = KINDS[strike.kind].effect if strike.kind in KINDS else "elsewhere"
    acts = ACTS[effect]
    touched = None if effect == "restarted" else frozenset(strike.touched)  # a restart ends everything
    hit = Cause(strike.about, strike.node, from_t, to_t, acts - {"start"}, touched, strike.table)
    if "start" not in acts:
        return [hit]
    born = None if touched is None else frozenset({strike.new_main} if strike.new_main else set[int]())
    return [hit, Cause(strike.about, strike.node, from_t, to_t, frozenset({"start"}), born)]


def compare_causes(rig: RigAccount, cluster: ClusterAccount, findings: Findings) -> None:
    known = causes(rig, cluster)

    def cause(act: str, life: Life, from_t: float, to_t: float) -> str | None:
        return next((each.name for each in known if each.covers(act, life.node, life.pid, from_t, to_t)), None)

    for life in sorted(cluster.lives.all(), key=lambda life: life.first_t):
        _stops(cluster, life, findings.row("cluster: processes in state T"), cause)
        _end(cluster, life, findings.row("cluster: processes that ended"), cause)
        if life.role == "main":
            _start(life, findings.row("cluster: main processes that began"), cause)
    _filters(cluster, known, findings.row("cluster: packet-filter rules"))


Find = Callable[[str, Life, float, float], str | None]


def _stops(cluster: ClusterAccount, life: Life, row: Compared, cause: Find) -> None:
    for since_t, until_t in life.stops():
        seen_t = since_t if until_t is None else until_t
        earliest_over_t = max(since_t, seen_t - cluster.resolution_s(seen_t) - BUSY_S)
        if cause("stop", life, since_t, earliest_over_t) is not None:
            row.agree()
        else:
            row.differ(life.name, NOBODY, f"in state T from {since_t:.3f} to {moment(until_t)}")


def _end(cluster: ClusterAccount, life: Life, row: Compared, cause: Find) -> None:
    death = life.death(cluster.looks)
    if death is None:
        if cluster.machine_ends:  # the machine says that it ends everything, and it is read to its last line
            row.differ(life.name, "-", "begun, and nobody saw its end")
        return
    machine_end = cluster.machine_ends.get(life.node)
    told = f"ended at {death[1]:.3f} with status {life.status}"
    own = [number for t, number in life.signals if t <= death[1] + BUSY_S]
    if machine_end is not None and death[1] >= machine_end - BUSY_S:
        row.explain("the cluster ended")
    elif life.status is not None and -life.status in own:
        row.explain("signalled by the cluster itself")
    elif life.status == -9:
        if cause("kill", life, *_within(death)) is None:
            row.differ(life.name, NOBODY, told)
        else:
            row.agree()
    elif life.role == "main" and life.stopping_t is not None:
        row.explain("exo ended by itself")
    elif life.role in ("runner", "tracker", "other") and life.status == 0:
        row.explain("ended by itself, with its main or its ring")
    else:
        row.differ(life.name, NOBODY, told)


def _within(death: tuple[float, float]) -> tuple[float, float]:
    """A death is explained by whoever acted at some time at which it may have been: its latest, told by a waiting
    parent, comes a moment after."""
    return death[1], death[0]


def _start(life: Life, row: Compared, cause: Find) -> None:
    if life.first_t < 0.0:
        row.explain("the cluster began")
    elif cause("start", life, life.first_t, life.first_t) is not None:
        row.agree()
    else:
        row.differ(life.name, NOBODY, f"began at {life.first_t:.3f}")
    if life.serving_t is None and life.ended_t is None and life.gone_seen_t is None:
        row.differ(life.name, "-", "it never said that it serves")


def _filters(cluster: ClusterAccount, known: list[Cause], row: Compared) -> None:
    for node, changes in [*cluster.filters.items(), *cluster.networks.items()]:
        for change in changes:
            rules = [rule for rule in change.rules if not _explained(known, node, rule, change.t)]
            if rules:
                row.differ(node, NOBODY, f"at {change.t:.3f}: {rules[0]}")
            else:
                row.agree()


def _explained(known: list[Cause], node: str, rule: str, t: float) -> bool:
    return any(
        "rules" in each.acts and each.node == node and names(rule, each.table) and each.from_t <= t <= each.to_t
        for each in known
    )
