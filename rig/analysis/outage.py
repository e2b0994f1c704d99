"""What one fault did to one model, from the attempts around it. Pure: literals in, figures out.

An attempt is a request of the load or a probe. Failing moments and which failures count are decided before (see
`rig.analysis.recovery`); here there are only trials with a start, an end and, for a failure, its moment.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rig.analysis.attempts import Attempt


@dataclass(frozen=True, slots=True)
class Trial:
    """`failed_t` is None for a success. `counts` is False for a failure that says nothing of the model."""

    started_t: float
    ended_t: float
    failed_t: float | None = None
    counts: bool = True
    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """Times on the run's clock.

    `served`: the first success that was started after the heal. `sustained`: the first such success after which
    nothing failed for `quiet_s`, proved by a further success in that time. `quiet`: nothing failed at all, and
    something succeeded. `restored_t`: the end of the first success after the last failure before `sustained`, which may
    have come before the heal. `failures` up to `sustained` (or all), `late_failures` after its quiet time.
    """

    served: Trial | None
    sustained: Trial | None
    quiet: bool
    restored_t: float | None
    failures: int
    late_failures: int
    resolution_s: float
    silence_s: float


def outage(trials: Sequence[Trial], *, strike_t: float, heal_t: float, until_t: float, quiet_s: float) -> Outage:
    """Judge one model after one fault, by trials in the order of their ends; nothing after `until_t` is looked at.

    `strike_t` ≤ `heal_t`; `until_t` is the next strike, the rig's own intervention, or the end of the journal.
    """
    failed = sorted(t.failed_t for t in trials if t.failed_t is not None and t.counts and t.failed_t <= until_t)
    failed = failed[bisect_left(failed, strike_t) :]
    good = [t for t in trials if t.failed_t is None and t.ended_t <= until_t]
    after = [t for t in good if t.started_t >= heal_t]
    served = after[0] if after else None
    sustained = _sustained(after, failed, until_t=until_t, quiet_s=quiet_s) if failed else None
    enough = served is not None and until_t >= heal_t + quiet_s
    end_t = until_t if sustained is None else sustained.ended_t
    if not failed and served is not None:
        end_t = min(until_t, max(heal_t + quiet_s, served.ended_t))
    kept = bisect_right(failed, end_t)
    return Outage(
        served=served,
        sustained=sustained,
        quiet=not failed and enough,
        restored_t=None if sustained is None else min(t.ended_t for t in good if t.ended_t >= failed[kept - 1]),
        failures=kept,
        late_failures=len(failed) - kept,
        resolution_s=resolution(trials, heal_t, end_t),
        silence_s=silence(good, strike_t, end_t),
    )


def _sustained(after: Sequence[Trial], failed: Sequence[float], *, until_t: float, quiet_s: float) -> Trial | None:
    """The first success, not before the first failure, followed by a quiet time that is seen in full and is proved."""
    index, ends = 0, [t.ended_t for t in after]
    earliest_t = failed[0]
    while (index := bisect_left(ends, earliest_t, index)) < len(ends):
        moment_t = ends[index]
        if moment_t + quiet_s > until_t:
            return None
        nearest = bisect_right(failed, moment_t)
        if nearest < len(failed) and failed[nearest] <= moment_t + quiet_s:
            earliest_t = failed[nearest]
            continue
        if index + 1 < len(ends) and ends[index + 1] <= moment_t + quiet_s:
            return after[index]
        index += 1
    return None


def serves(trials: Sequence[Trial], *, since_t: float, heal_t: float, now: float, quiet_s: float) -> bool:
    """The live decision: it served after the heal, nothing has failed for `quiet_s`, and something succeeded in it."""
    last_t = max((t.failed_t for t in trials if t.failed_t is not None and t.counts), default=-math.inf)
    after = [t for t in trials if t.failed_t is None and t.started_t >= heal_t]
    ends = [t.ended_t for t in after if t.ended_t >= last_t]
    if not ends or ends[-1] <= now - quiet_s:
        return False
    return now - (ends[0] if last_t >= since_t else heal_t) >= quiet_s


def silence(good: Sequence[Trial], from_t: float, to_t: float) -> float:
    """The longest time within [from_t, to_t] in which nothing was completed, through any node."""
    ends = [t.ended_t for t in good if from_t < t.ended_t < to_t]
    edges = [from_t, *ends, to_t]
    return max(later - earlier for earlier, later in itertools.pairwise(edges))


def resolution(trials: Sequence[Trial], from_t: float, to_t: float) -> float:
    """The largest gap between the starts of attempts in [from_t, to_t]: a recovery may have come so much earlier."""
    starts = sorted(t.started_t for t in trials if from_t <= t.started_t <= to_t)
    edges = [from_t, *starts, *([] if starts else [to_t])]
    return max(later - earlier for earlier, later in itertools.pairwise(edges))
