"""Which failures are the model's, and which fault they belong to.

A failure of the model is a request or probe that did not complete, unless its own node was faulted, or it was sent to
a restarted node that had not caught up (both only while the fault leaves another entry node), or it is void, or it
belongs to an earlier fault, or it is a probe that met the rig's limit between two requests of the load for the same
model and node that were served (a queue of the rig's making). The moment of a failure is its end; if a deadline of the
rig's made the end, it is when progress stopped.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from rig.analysis.intake.attempts import NOBODY, Bools, Floats, Rows
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.faults import Fault
from rig.analysis.recovery.outage import Trials


def trials_of(rows: Rows, context: Context, fault: Fault | None, since_t: float, entries: Collection[str]) -> Trials:
    """The attempts of one model that ended after `since_t` (as early as the clocks allow), in the order of their ends.

    `fault` is the one that struck then (None: there was none); `entries` are all the nodes that requests are sent to.
    """
    early_t = since_t - (0.0 if fault is None else fault.struck_error_s)
    recent = rows.since(early_t)
    all_hit = fault is not None and set(entries) <= {*fault.processes_hit, *fault.clients_cut}
    bad = np.flatnonzero(~recent.ok)
    failed_t, counts = np.full(len(recent), np.nan), np.ones(len(recent), dtype=np.bool_)
    if len(bad):
        failures = recent.where(bad)
        failed_t[bad] = _moments(failures, context, since_t, early_t)
        counts[bad] = _count(recent, failures, context, all_hit=all_hit)
    return Trials(recent.started_t, recent.ended_t, failed_t, counts, recent)


def touched(rows: Rows, stopped_t: Floats, strike_t: float, span_end_t: float, sustained_s: float) -> Bools:
    """Mask of the failures that belong to a strike: they stopped within its reach and had not ended before it.

    A request that had stalled `sustained_s` before the strike and was ended by a deadline of the rig's does not belong
    to it.
    """
    going_on = (rows.ended_t >= strike_t) & (stopped_t <= span_end_t)
    return ~rows.ok & going_on & ~(rows.by_deadline & rows.lost & stalled_long(rows, strike_t, sustained_s))


def _moments(failures: Rows, context: Context, since_t: float, early_t: float) -> Floats:
    """When they failed. A request in flight at the strike that made no progress after it failed at the strike."""
    failed_t = failures.failed_t
    before = (failed_t < early_t) & stalled_long(failures, since_t, context.settings.sustained_s)
    return np.where((failed_t >= since_t) | before, failed_t, since_t)


def _count(recent: Rows, failures: Rows, context: Context, *, all_hit: bool) -> Bools:
    excused = (failures.fault != NOBODY) | context.voids(failures)
    excused |= _queued(recent, failures, context.settings.sustained_s / 3)
    if not all_hit:
        excused |= context.windows.own_node(failures) | context.windows.rejoining(failures)
    return ~excused


def stalled_long(rows: Rows, strike_t: float, sustained_s: float) -> Bools:
    """Mask of those that had stopped well before the strike. Requests that are not streamed show no progress: they are
    granted twice as long."""
    granted_s = np.where(rows.streamed, sustained_s, 2 * sustained_s)
    return rows.stalled_t < strike_t - granted_s


def _queued(recent: Rows, failures: Rows, near_s: float) -> Bools:
    """Probes that met the rig's limit although requests of the load sent through the same node shortly before and after
    them were served: a queue of probes, not a model that does not serve."""
    found = ~failures.loaded & failures.by_deadline
    if not found.any():
        return found
    served = recent.where(recent.ok & recent.loaded)
    for entry in {way.entry for way in failures.ways}:
        starts = np.sort(served.started_t[served.through(entry)])
        there = np.flatnonzero(found & failures.through(entry))
        sent_t = failures.started_t[there]
        after = np.searchsorted(starts, sent_t)
        around = np.concatenate(([-np.inf], starts, [np.inf]))
        found[there] = (sent_t - around[after] <= near_s) & (around[after + 1] - sent_t <= near_s)
    return found
