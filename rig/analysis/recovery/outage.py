"""What one fault did to one model, from the attempts around it. Pure: literals in, figures out.

An attempt is a request of the load or a probe. `rig.analysis.recovery.trials` decides which failures count, and their
moments; a trial has a start, an end and, if it failed, its moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.analysis.intake.attempts import Bools, Floats, Rows


@dataclass(frozen=True, slots=True)
class Trials:
    """In the order of their ends. `failed_t` is NaN for a success; `counts` is false for a failure that says nothing of
    the model. `rows` are the attempts themselves, unless these trials are a selection."""

    started_t: Floats
    ended_t: Floats
    failed_t: Floats
    counts: Bools
    rows: Rows | None = None

    @property
    def good(self) -> Bools:
        return np.isnan(self.failed_t)

    def where(self, asked: Bools) -> Trials:
        return Trials(self.started_t[asked], self.ended_t[asked], self.failed_t[asked], self.counts[asked])


@dataclass(frozen=True, slots=True)
class Success:
    started_t: float
    ended_t: float


@dataclass(frozen=True, slots=True)
class Outage:
    """Times on the run's clock.

    `served`: the first success that was started after the heal. `sustained`: the first such success after which
    nothing failed for `quiet_s`, proved by a further success in that time. `quiet`: nothing failed at all, something
    succeeded, and nothing had to wait for longer than `patience_s`. `restored_t`: the end of the first success after
    the last failure before `sustained`, which may have come before the heal. `failures` up to `sustained` (or all),
    `late_failures` after its quiet time.
    """

    served: Success | None
    sustained: Success | None
    quiet: bool
    restored_t: float | None
    failures: int
    late_failures: int
    resolution_s: float
    silence_s: float


def outage(
    trials: Trials, *, strike_t: float, heal_t: float, until_t: float, quiet_s: float, patience_s: float = math.inf
) -> Outage:
    """Judge one model after one fault, by trials in the order of their ends; nothing after `until_t` is looked at.

    `strike_t` ≤ `heal_t`; `until_t` is the next strike, the rig's own intervention, or the end of the journal. Where
    nothing failed but something was completed only after `patience_s` of silence, that silence was the outage.
    """
    failed = np.sort(trials.failed_t[trials.counts & (trials.failed_t <= until_t)])  # NaN is not before anything
    failed = failed[np.searchsorted(failed, strike_t) :]
    good = trials.where(trials.good & (trials.ended_t <= until_t))
    after = good.where(good.started_t >= heal_t)
    served = _success(after, 0) if len(after.ended_t) else None
    sustained = _sustained(after, failed, until_t=until_t, quiet_s=quiet_s) if len(failed) else None
    enough = served is not None and until_t >= heal_t + quiet_s
    end_t = until_t if sustained is None else sustained.ended_t
    quiet, over_t = not len(failed) and enough, None
    if not len(failed) and served is not None:
        end_t = min(until_t, max(heal_t + quiet_s, served.ended_t))
        waited_s, heard_t = longest_wait(good, strike_t, end_t)
        if quiet and waited_s > patience_s:
            heard = after.where(after.ended_t >= heard_t)
            quiet, over_t = False, heard_t
            sustained = _success(heard, 0) if len(heard.ended_t) else served
            end_t = sustained.ended_t
    elif sustained is not None:
        last_t = float(failed[np.searchsorted(failed, end_t, "right") - 1])
        over_t = float(good.ended_t[good.ended_t >= last_t].min())
    kept = int(np.searchsorted(failed, end_t, "right"))
    return Outage(
        served=served,
        sustained=sustained,
        quiet=quiet,
        restored_t=over_t,
        failures=kept,
        late_failures=len(failed) - kept,
        resolution_s=resolution(trials, heal_t, end_t),
        silence_s=silence(good.ended_t, strike_t, end_t),
    )


def _success(trials: Trials, at: int) -> Success:
    return Success(float(trials.started_t[at]), float(trials.ended_t[at]))


def _sustained(after: Trials, failed: Floats, *, until_t: float, quiet_s: float) -> Success | None:
    """The first success, not before the first failure, followed by a quiet time that is seen in full and is proved."""
    index, ends = 0, after.ended_t
    earliest_t = float(failed[0])
    while (index := index + int(np.searchsorted(ends[index:], earliest_t))) < len(ends):
        moment_t = float(ends[index])
        if moment_t + quiet_s > until_t:
            return None
        nearest = int(np.searchsorted(failed, moment_t, "right"))
        if nearest < len(failed) and failed[nearest] <= moment_t + quiet_s:
            earliest_t = float(failed[nearest])
            continue
        if index + 1 < len(ends) and ends[index + 1] <= moment_t + quiet_s:
            return _success(after, index)
        index += 1
    return None


def serves(trials: Trials, *, since_t: float, heal_t: float, now: float, quiet_s: float) -> bool:
    """The live decision: it served after the heal, nothing has failed for `quiet_s`, and something succeeded in it."""
    failed = trials.failed_t[trials.counts & ~trials.good]
    last_t = float(failed.max()) if len(failed) else -math.inf
    ends = trials.ended_t[trials.good & (trials.started_t >= heal_t) & (trials.ended_t >= last_t)]
    if not len(ends) or ends[-1] <= now - quiet_s:
        return False
    return now - (float(ends[0]) if last_t >= since_t else heal_t) >= quiet_s


def longest_wait(good: Trials, from_t: float, to_t: float) -> tuple[float, float]:
    """Within [from_t, to_t], the longest time in which nothing was completed although something waited that was
    completed in the end: how long, and when it was over. Without any, 0 and `from_t`."""
    ends = good.ended_t
    begun_t = np.minimum.accumulate(good.started_t[::-1])[::-1]  # of what was completed here or later, the first start
    before_t = np.concatenate(([-math.inf], ends[:-1]))
    asked = (from_t < ends) & (ends <= to_t)
    if not asked.any():
        return 0.0, from_t
    waited_s = (ends - np.maximum(np.maximum(before_t, begun_t), from_t))[asked]
    longest = int(waited_s.argmax())
    return float(waited_s[longest]), float(ends[asked][longest])


def silence(good_t: Floats, from_t: float, to_t: float) -> float:
    """The longest time within [from_t, to_t] in which nothing was completed, through any node, by when things were."""
    ends = good_t[(from_t < good_t) & (good_t < to_t)]
    return float(np.diff(np.concatenate(([from_t], ends, [to_t]))).max())


def resolution(trials: Trials, from_t: float, to_t: float) -> float:
    """The largest gap between the starts of attempts in [from_t, to_t]: a recovery may have come so much earlier."""
    starts = np.sort(trials.started_t[(from_t <= trials.started_t) & (trials.started_t <= to_t)])
    return float(np.diff(np.concatenate(([from_t], starts if len(starts) else [to_t]))).max())
