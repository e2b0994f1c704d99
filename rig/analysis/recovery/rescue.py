"""What the rig's own unwedging after a fault did to one model: it restarts nodes, so it is a strike of its own.

What it cut is no fault's and no calm weather's. A model that had recovered by itself, or was not touched by the fault,
is the unwedging's until it serves again for good and what was restarted has caught up. One that had not recovered did
not come back by itself at all: what fails there is the unwedging's until the next strike.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rig.analysis.intake.attempts import NOBODY, Recent, unwedged_after
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.recovery.outage import outage
from rig.analysis.recovery.trials import touched, trials_of


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """One unwedging's doing to one model. All moments are on the run's clock."""

    fault: int  # after which the rig stepped in
    model: str
    from_t: float  # of the first restart
    restored_t: float  # it served again for good; else as long as it was watched
    span_end_t: float  # failures that stopped up to here are the unwedging's


def rescue(
    fault: Fault,
    model: str,
    attempts: Recent,
    context: Context,
    recovery: Recovery | None,
    *,
    entries: Collection[str],
    until_t: float,
) -> Rescue | None:
    """None where the rig did not step in. `recovery` is what the fault itself did, if it took effect: decided before,
    since what had stopped before the restart is the fault's. Marks the failures that are the unwedging's.
    """
    records = context.unwedged.get(fault.number)
    if not records:
        return None
    from_t, done_t = min(one.started_t for one in records), max(one.ended_t for one in records)
    rows, quiet_s = attempts.rows, context.settings.sustained_s
    trials = trials_of(rows, context, None, from_t, entries)
    found = outage(trials, strike_t=from_t, heal_t=done_t, until_t=until_t, quiet_s=quiet_s)
    served = found.sustained or (found.served if found.quiet else None)
    restored_t = until_t if served is None else served.ended_t
    own = recovery is not None and recovery.sustained_s is None and recovery.affected
    caught_up = [context.windows.rejoins.end_within(one.node, from_t, until_t) for one in records]
    end_t = until_t if own else max(restored_t, *caught_up)
    span_end_t = context.windows.reach_end_t(end_t, context.faults.next_strike_t(fault))
    which = touched(rows, context.windows.stopped_t(rows), from_t, span_end_t, quiet_s)
    attempts.mark((rows.fault == NOBODY) & which, unwedged_after(fault.number))
    return Rescue(
        fault=fault.number, model=model, from_t=from_t, restored_t=min(restored_t, until_t), span_end_t=span_end_t
    )
