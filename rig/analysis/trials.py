"""Which failures are the model's, and which fault they belong to.

A failure of the model is a request or probe that did not complete, except: one whose own node was faulted, one sent to
a restarted node that had not caught up (both only while the fault leaves another entry node), one that is void, one
that belongs to an earlier fault, and a probe that met the rig's limit between two loaded requests of the same model and
node that were served (a queue of the rig's making). Its moment is its end; where a deadline of the rig's made the end,
the moment its progress stopped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

from rig.analysis.attempts import Attempt
from rig.analysis.context import Context
from rig.analysis.faults import Fault, strike_of
from rig.analysis.outage import Trial


def trials_of(
    attempts: Collection[Attempt], context: Context, fault: Fault | None, since_t: float, entries: Collection[str]
) -> list[Trial]:
    """The attempts of one model that ended after `since_t` (as early as the clocks allow), in the order of their ends.

    `fault` is the one that struck then (None: there was none); `entries` are all the nodes that requests are sent to.
    """
    early_t = since_t - (0.0 if fault is None else fault.struck_error_s)
    recent = [attempt for attempt in attempts if attempt.ended_t >= early_t]
    all_hit = fault is not None and set(entries) <= {*fault.processes_hit, *fault.clients_cut}
    loaded = _Loaded(recent, context.settings.sustained_s / 3)
    return [
        Trial(attempt.started_t, attempt.ended_t, attempt=attempt)
        if attempt.ok
        else Trial(
            attempt.started_t,
            attempt.ended_t,
            _moment(attempt, context, since_t, early_t),
            _counts(attempt, context, loaded, all_hit=all_hit),
            attempt,
        )
        for attempt in recent
    ]


def touches(attempt: Attempt, fault: Fault, span_end_t: float, sustained_s: float) -> bool:
    """Whether a failure belongs to the fault: between its progress stopping and its end the fault was going on.

    One that had stalled `sustained_s` before the strike, and was ended by a deadline of the rig's, does not.
    """
    strike_t = strike_of(fault)
    if attempt.ended_t < strike_t - fault.struck_error_s or attempt.stalled_t > span_end_t:
        return False
    return not (attempt.by_deadline and attempt.outcome == "lost" and stalled_long(attempt, strike_t, sustained_s))


def _moment(attempt: Attempt, context: Context, since_t: float, early_t: float) -> float:
    """When it failed. What was going on at the strike and shows no progress after it failed at the strike."""
    failed_t = attempt.failed_t
    if failed_t >= since_t:
        return failed_t
    if failed_t < early_t and stalled_long(attempt, since_t, context.settings.sustained_s):
        return failed_t
    return since_t


def _counts(attempt: Attempt, context: Context, loaded: _Loaded, *, all_hit: bool) -> bool:
    if attempt.fault is not None or loaded.queued(attempt) or context.stalls.voids(attempt) is not None:
        return False
    return all_hit or not (context.windows.own_node(attempt) or context.windows.rejoining(attempt))


def stalled_long(attempt: Attempt, strike_t: float, sustained_s: float) -> bool:
    """It had stopped well before the strike. One that is not streamed shows no progress: twice as long is granted."""
    granted_s = sustained_s if attempt.streamed else 2 * sustained_s
    return attempt.stalled_t < strike_t - granted_s


class _Loaded:
    """Successes of the load per entry node, to tell a queue of probes from a model that does not serve."""

    def __init__(self, attempts: Sequence[Attempt], near_s: float) -> None:
        self._near_s = near_s
        self._starts: dict[str, list[float]] = {}
        for attempt in attempts:
            if attempt.ok and attempt.source == "load":
                self._starts.setdefault(attempt.entry, []).append(attempt.started_t)
        for starts in self._starts.values():
            starts.sort()

    def queued(self, attempt: Attempt) -> bool:
        """A probe that met the rig's limit although loaded requests sent shortly before and after it were served."""
        if attempt.source != "probe" or not attempt.by_deadline:
            return False
        starts = self._starts.get(attempt.entry, [])
        index = bisect_left(starts, attempt.started_t)
        before = index > 0 and attempt.started_t - starts[index - 1] <= self._near_s
        return before and index < len(starts) and starts[index] - attempt.started_t <= self._near_s
