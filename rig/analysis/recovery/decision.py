"""A recovery as a whole: one fault, one model, from the attempts and views around it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from rig.analysis.intake.attempts import NOBODY, Bools, Recent, Rows
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.faults import CRASHES, HEAL_IS_STRIKE, Fault, Window, strike_of
from rig.analysis.recovery.judged import judged_of
from rig.analysis.recovery.outage import Outage, Success, Trials, longest_wait, outage
from rig.analysis.recovery.serving import Serving, compare
from rig.analysis.recovery.trials import stalled_long, touched, trials_of
from rig.journal.records import FaultKind

Class: TypeAlias = Literal["survived", "replaced", "unaffected", "not recovered", "censored", "unknown"]
"""`unknown`: it recovered, but whether by the same instance cannot be told."""
Group: TypeAlias = Literal["survived", "replaced"]
MUCH_LONGER: Final = 3.0
"""A model without a failure was affected all the same when a request waited this many times longer than the longest
wait in the calm before the strike, and longer than `sustained`."""


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What one fault did to one model. Durations in seconds; None where it did not come to that."""

    fault: int
    fault_kind: FaultKind
    model: str
    recovery_class: Class
    group: Group | None  # in which medians it counts, also when it never ended
    strike_t: float
    heal_t: float | None
    until_t: float  # next strike, unwedging, or the end of the journal: nothing later was looked at
    time_to_serve_s: float | None
    serve_from_strike_s: float | None
    sustained_s: float | None
    sustained_from_strike_s: float | None
    at_least_s: float  # from heal to `until_t`: the bound of what did not end
    outage_s: float
    silence_s: float
    resolution_s: float
    error_s: float  # of strike and heal, by the clocks
    failures: int
    late_failures: int
    instance_before: str | None
    instance_after: str | None
    unwedged: bool
    unwedge_cost_s: float | None  # from the rig's intervention to the first success after it
    span_end_t: float  # until when failures are this fault's

    @property
    def affected(self) -> bool:
        return self.recovery_class != "unaffected"


def decide(
    fault: Fault, model: str, attempts: Recent, context: Context, *, entries: Collection[str], until_t: float
) -> tuple[Recovery, Bools]:
    """Judge an effective fault. `attempts` of the model reach back before the strike and on to `until_t` at least.

    Returns the recovery, and a mask of the attempts: the failures that are this fault's.
    """
    strike_t, heal_t, quiet_s = strike_of(fault), fault.heal_t, context.settings.sustained_s
    restarts = context.restarts(fault)
    seen_t = until_t if restarts is None else min(until_t, restarts.from_t)
    rows = attempts.rows
    alone = _alone(fault, context)
    tried = rows.where(rows.part_through(slice(None), alone)) if alone else rows
    trials = trials_of(tried, context, fault, strike_t, alone or entries)
    patience_s = max(quiet_s, MUCH_LONGER * _calm_wait(tried, strike_t, 2 * quiet_s))
    judge = partial(
        outage,
        strike_t=strike_t,
        heal_t=seen_t if heal_t is None else heal_t,
        until_t=seen_t,
        quiet_s=quiet_s,
        patience_s=patience_s,
    )
    found = _outage_of(trials, judge, seen_t, quiet_s)
    end_t = seen_t if found.sustained is None else found.sustained.ended_t
    if alone:  # which process serves is known from the fault itself
        serving = Serving("new" if fault.kind in CRASHES else "same", None, None)
    else:
        serving = _serving(fault, model, attempts, context, found, min(end_t + quiet_s, seen_t))
    overdue = heal_t is not None and seen_t - heal_t >= context.settings.settle_s
    recovery_class = _class(found, serving, hopeless=overdue or restarts is not None)
    span_end_t, caught_up_t = _reach(fault, context, recovery_class, end_t if found.sustained else until_t, until_t)
    served_t = found.served.ended_t if found.served else None
    sustained_t = found.sustained.ended_t if found.sustained else None
    from_t = strike_t if heal_t is None else heal_t
    recovery = Recovery(
        fault=fault.number,
        fault_kind=fault.kind,
        model=model,
        recovery_class=recovery_class,
        group=_group(recovery_class, serving),
        strike_t=strike_t,
        heal_t=heal_t,
        until_t=seen_t,
        time_to_serve_s=_since(from_t, served_t),
        serve_from_strike_s=_since(strike_t, served_t),
        sustained_s=_since(from_t, sustained_t),
        sustained_from_strike_s=_since(strike_t, sustained_t),
        at_least_s=max(seen_t - from_t, 0.0),
        outage_s=_outage_s(found, recovery_class, strike_t, seen_t),
        silence_s=found.silence_s,
        resolution_s=found.resolution_s,
        error_s=fault.struck_error_s + (0.0 if fault.kind in HEAL_IS_STRIKE else fault.healed_error_s),
        failures=found.failures,
        late_failures=found.late_failures,
        instance_before=serving.before,
        instance_after=serving.after,
        unwedged=restarts is not None,
        unwedge_cost_s=None if restarts is None else _unwedge_cost(restarts, trials),
        span_end_t=span_end_t,
    )
    return recovery, _own_failures(fault, rows, context, span_end_t, caught_up_t)


def _alone(fault: Fault, context: Context) -> frozenset[str]:
    """The nodes hit, where each node serves alone: what the others serve says nothing of their recovery."""
    if not judged_of(context.settings.target).nodes_serve_alone:
        return frozenset()
    return frozenset({*fault.processes_hit, *fault.clients_cut})


def _own_failures(fault: Fault, rows: Rows, context: Context, span_end_t: float, caught_up_t: float) -> Bools:
    """Those that stopped in the fault's reach, and are no other fault's already."""
    stopped_t, early_t = context.windows.stopped_t(rows), strike_of(fault) - fault.struck_error_s
    quiet_s = context.settings.sustained_s
    own = touched(rows, stopped_t, early_t, span_end_t, quiet_s)
    if fault.processes_hit:
        through = rows.part_through(slice(None), fault.processes_hit)
        own |= through & touched(rows, stopped_t, early_t, caught_up_t, quiet_s)
    return own & (rows.fault == NOBODY)


def _calm_wait(rows: Rows, strike_t: float, window_s: float) -> float:
    """The longest wait for a completion shortly before the strike; infinite where nothing was completed then."""
    good = rows.where(rows.ok & (rows.ended_t <= strike_t))
    calm = Trials(good.started_t, good.ended_t, np.full(len(good), np.nan), good.ok)
    waited_s, _ = longest_wait(calm, strike_t - window_s, strike_t)
    return waited_s or math.inf


def _outage_of(trials: Trials, judge: partial[Outage], seen_t: float, quiet_s: float) -> Outage:
    """The outage, without the failures that the next fault may have caused.

    A request that stalled shortly before the next strike, was in flight at it, and was ended by a deadline later, may
    have been stopped by either fault. It is this fault's if it stalled before the heal or within the outage that the
    other requests show.
    """
    doubtful = _straddling(trials, seen_t, quiet_s)
    shown = judge(trials.where(~doubtful))
    if not doubtful.any():
        return shown
    limit_t = seen_t if shown.failures else float(judge.keywords["heal_t"])
    if shown.sustained is not None:
        limit_t = shown.sustained.ended_t
    kept = ~doubtful | (trials.failed_t <= limit_t)
    return judge(trials.where(kept))


def _straddling(trials: Trials, next_t: float, sustained_s: float) -> Bools:
    rows = trials.rows
    assert rows is not None
    in_flight = rows.by_deadline & rows.lost & (rows.stalled_t < next_t) & (next_t <= rows.ended_t)
    return in_flight & ~stalled_long(rows, next_t, sustained_s) if in_flight.any() else in_flight


def _since(from_t: float, at_t: float | None) -> float | None:
    return None if at_t is None else at_t - from_t


def _outage_s(found: Outage, recovery_class: Class, strike_t: float, seen_t: float) -> float:
    """From the strike until it served for good; as long as it was watched where it did not."""
    if recovery_class == "unaffected":
        return 0.0
    return max((seen_t if found.restored_t is None else found.restored_t) - strike_t, 0.0)


def _class(found: Outage, serving: Serving, *, hopeless: bool) -> Class:
    if found.quiet:
        return "unaffected"
    if found.sustained is None:
        return "not recovered" if hopeless else "censored"
    match serving.continuity:
        case "same":
            return "survived"
        case "new":
            return "replaced"
        case "unknown":
            return "unknown"


def _group(recovery_class: Class, serving: Serving) -> Group | None:
    """A model that did not recover belongs to the group of the instance that is listed now, old or new."""
    match recovery_class:
        case "survived" | "replaced":
            return recovery_class
        case "not recovered" if serving.continuity != "unknown":
            return "survived" if serving.continuity == "same" else "replaced"
        case _:
            return None


def _reach(fault: Fault, context: Context, recovery_class: Class, end_t: float, until_t: float) -> tuple[float, float]:
    """Up to when failures that stopped are this fault's; and up to when those through the nodes that it restarted are.

    That is until recovery and until the nodes have caught up; for a model that was not affected, until the heal. What
    the rig restarted after the fault is the rig's own.
    """
    strike_t, windows = strike_of(fault), context.windows
    restarts = context.restarts(fault)
    rescue_t = None if restarts is None else restarts.from_t
    hit_t = until_t if rescue_t is None else min(until_t, rescue_t)
    caught_up_t = max([strike_t, *(windows.rejoins.end_within(node, strike_t, hit_t) for node in fault.processes_hit)])
    whole_t = fault.heal_t if recovery_class == "unaffected" else None
    end_t = max(end_t, caught_up_t) if whole_t is None else whole_t
    stops = (context.faults.next_strike_t(fault), rescue_t)
    return windows.reach_end_t(end_t, *stops), windows.reach_end_t(caught_up_t, *stops)


def _unwedge_cost(restarts: Window, trials: Trials) -> float | None:
    ends = trials.ended_t[trials.good & (trials.started_t >= restarts.to_t)]
    return float(ends.min()) - restarts.from_t if len(ends) else None


def _serving(fault: Fault, model: str, attempts: Recent, context: Context, found: Outage, at_t: float) -> Serving:
    """`at_t` is when to look at the lists after the fault: late enough that every view has the new instance."""
    sightings, rejoins, strike_t = context.sightings, context.windows.rejoins, strike_of(fault)
    current = [node for node in sightings.nodes() if not rejoins.open_at(node, at_t)]
    before = sightings.instances(model, strike_t, sightings.nodes())
    after = sightings.instances(model, at_t, current)
    killed = fault.processes_hit if fault.kind in CRASHES else []
    gone = {node_id for node in killed if (node_id := sightings.node_id(node, strike_t)) is not None}
    workers = judged_of(context.settings.target).workers
    return compare(
        listed_before=None if before is None else frozenset(before),
        listed_after=None if after is None else frozenset(after),
        dead=frozenset(name for name, item in (before or {}).items() if workers(item).keys() & gone),
        served_before=_served_before(attempts, context, strike_t),
        served_after=_served_after(attempts, context, found.sustained),
    )


def _served_before(attempts: Recent, context: Context, strike_t: float) -> str | None:
    """The instance of the last success before the strike whose instance is known."""
    rows, served = attempts.rows, context.sightings.served
    for at in np.flatnonzero(rows.ok & (rows.ended_t < strike_t))[::-1].tolist():
        instance = served.get(attempts.response_id(at) or "")
        if instance is not None:
            return instance
    return None


def _served_after(attempts: Recent, context: Context, sustained: Success | None) -> str | None:
    """The instance of the first success at or after sustained recovery, within its quiet time."""
    if sustained is None:
        return None
    rows, served = attempts.rows, context.sightings.served
    first = int(np.searchsorted(rows.ended_t, sustained.ended_t))
    last_t = sustained.ended_t + context.settings.sustained_s
    for at in range(first, len(rows)):
        if rows.ended_t[at] > last_t:
            return None
        instance = served.get(attempts.response_id(at) or "") if rows.ok[at] else None
        if instance is not None:
            return instance
    return None
