"""One row for each kind of fault: what became of the faults, and of the models after them; and rows of unwedgings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rig.analysis.recovery.decision import Class, Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.recovery.figures import Distribution, distribution
from rig.analysis.requests.tally import FaultCounts
from rig.journal.records import Unwedged


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of one group of recoveries, in seconds from the heal; time to serve also from the strike."""

    time_to_serve: Distribution
    serve_from_strike: Distribution
    sustained: Distribution


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """`planned` counts the faults that the run reached. Classes count pairs of fault and model.

    `times` has the groups `survived`, `replaced` and `affected` (all that were affected, including those whose instance
    is unknown and those that another fault cut short). A model that did not recover counts in every group to which it
    may belong.
    """

    kind: str
    planned: int
    effective: int
    skipped: int
    ineffective: int
    invalid: int
    unhealed: int
    classes: Mapping[Class, int]
    times: Mapping[str, Times]
    outage: Distribution
    silence: Distribution
    resolution_worst_s: float | None
    unwedged: int
    exposed: int
    error: int
    lost: int
    lost_own_node: int


CLASSES: tuple[Class, ...] = ("survived", "replaced", "unaffected", "not recovered", "censored", "unknown")


def kind_rows(
    kinds: Sequence[str], faults: Sequence[Fault], recoveries: Sequence[Recovery], counts: Mapping[int, FaultCounts]
) -> list[KindRow]:
    """Rows for the kinds of the plan, in its order, then for other kinds that were struck."""
    names = dict.fromkeys([*kinds, *(fault.kind for fault in faults)])
    return [
        _row(
            kind,
            [fault for fault in faults if fault.kind == kind],
            [recovery for recovery in recoveries if recovery.fault_kind == kind],
            counts,
        )
        for kind in names
    ]


def _row(
    kind: str, faults: Sequence[Fault], recoveries: Sequence[Recovery], counts: Mapping[int, FaultCounts]
) -> KindRow:
    affected = [recovery for recovery in recoveries if recovery.affected]
    hurt = [counts[fault.number] for fault in faults if fault.number in counts]
    return KindRow(
        kind=kind,
        planned=len(faults),
        effective=sum(fault.effective for fault in faults),
        skipped=sum(fault.skipped for fault in faults),
        ineffective=sum(fault.ineffective for fault in faults),
        invalid=sum(fault.invalid for fault in faults),
        unhealed=sum(fault.unhealed for fault in faults),
        classes={name: sum(r.recovery_class == name for r in recoveries) for name in CLASSES},
        times={
            "survived": times([r for r in affected if _belongs(r, "survived")]),
            "replaced": times([r for r in affected if _belongs(r, "replaced")]),
            "affected": times(affected),
        },
        outage=distribution(
            [r.outage_s for r in affected if r.sustained_s is not None],
            [r.outage_s for r in affected if r.sustained_s is None],
        ),
        silence=distribution([r.silence_s for r in affected]),
        resolution_worst_s=max((r.resolution_s for r in affected), default=None),
        unwedged=sum(r.unwedged for r in recoveries),
        exposed=sum(count.exposed for count in hurt),
        error=sum(count.error for count in hurt),
        lost=sum(count.lost for count in hurt),
        lost_own_node=sum(count.lost_own_node for count in hurt),
    )


@dataclass(frozen=True, kw_only=True)
class UnwedgingRow:
    """What the rig restarted after one fault, and what that did to requests: it is neither a fault nor calm weather."""

    fault: int
    from_t: float  # the first restart
    to_t: float  # all were started again
    nodes: Sequence[str]
    exposed: int
    error: int
    lost: int
    lost_own_node: int


def unwedging_rows(unwedged: Sequence[Unwedged], counts: Mapping[int, FaultCounts]) -> list[UnwedgingRow]:
    """In the order in which the rig stepped in."""
    by_fault: dict[int, list[Unwedged]] = {}
    for record in unwedged:
        by_fault.setdefault(record.fault, []).append(record)
    return [
        UnwedgingRow(
            fault=fault,
            from_t=min(record.started_t for record in restarts),
            to_t=max(record.ended_t for record in restarts),
            nodes=sorted({record.node for record in restarts}),
            exposed=count.exposed,
            error=count.error,
            lost=count.lost,
            lost_own_node=count.lost_own_node,
        )
        for fault, restarts in by_fault.items()
        for count in (counts.get(fault) or FaultCounts(),)
    ]


def _belongs(recovery: Recovery, group: str) -> bool:
    if recovery.group is not None:
        return recovery.group == group
    return recovery.recovery_class == "not recovered"


def times(recoveries: Sequence[Recovery]) -> Times:
    """A model that served, but never for good, has a time to serve and no sustained recovery."""
    return Times(
        time_to_serve=_of([(r.time_to_serve_s, r.at_least_s) for r in recoveries]),
        serve_from_strike=_of([(r.serve_from_strike_s, r.until_t - r.strike_t) for r in recoveries]),
        sustained=_of([(r.sustained_s, r.at_least_s) for r in recoveries]),
    )


def _of(pairs: Sequence[tuple[float | None, float]]) -> Distribution:
    ended = [value for value, _ in pairs if value is not None]
    return distribution(ended, [bound for value, bound in pairs if value is None])
