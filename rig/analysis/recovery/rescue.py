"""What the rig's own unwedging after a fault did to one model: it restarts nodes, so it is a strike of its own.

The failures that it caused belong to no fault and to no calm weather. Where a model had recovered by itself, or the
fault had not affected it, they are the unwedging's until the model serves again for good and the restarted nodes have
caught up. Where the model had not recovered, they are the unwedging's until the next strike.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rig.analysis.intake.attempts import NOBODY, Bools, Recent
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.recovery.outage import outage
from rig.analysis.recovery.trials import touched, trials_of


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """What one unwedging did to one model. All moments are on the run's clock."""

    fault: int  # after which the rig stepped in
    model: str
    from_t: float  # of the first restart
    restored_t: float  # when the model served again for good; else the end of the watch
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
) -> tuple[Rescue, Bools] | None:
    """None where the rig did not step in; else the rescue, and a mask of the attempts: the failures that it caused.

    `recovery` is what the fault itself did, if it took effect. It is decided, and its failures are marked, before:
    what had stopped before the restart is the fault's.
    """
    restarts = context.restarts(fault)
    if restarts is None:
        return None
    from_t, done_t = restarts.from_t, restarts.to_t
    rows, quiet_s = attempts.rows, context.settings.sustained_s
    trials = trials_of(rows, context, None, from_t, entries)
    after = outage(trials, strike_t=from_t, heal_t=done_t, until_t=until_t, quiet_s=quiet_s)
    served = after.sustained or (after.served if after.quiet else None)
    restored_t = until_t if served is None else served.ended_t
    own = recovery is not None and recovery.sustained_s is None and recovery.affected
    nodes = {record.node for record in context.unwedged[fault.number]}
    caught_up = [context.windows.rejoins.end_within(node, from_t, until_t) for node in nodes]
    end_t = until_t if own else max(restored_t, *caught_up)
    span_end_t = context.windows.reach_end_t(end_t, context.faults.next_strike_t(fault))
    which = touched(rows, context.windows.stopped_t(rows), from_t, span_end_t, quiet_s)
    found = Rescue(
        fault=fault.number, model=model, from_t=from_t, restored_t=min(restored_t, until_t), span_end_t=span_end_t
    )
    return found, (rows.fault == NOBODY) & which
