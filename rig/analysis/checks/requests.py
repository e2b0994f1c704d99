"""Checks of what became of requests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.analysis.checks.rig import holes_of
from rig.analysis.requests.tally import Lost

UNLIKELY: Final = 0.01
NEAR: Final = 0.5
"""From this part of the bound on errors are too near it to tell."""


def no_request_lost(analysis: Analysis) -> Answer:
    total = analysis.requests.total
    if not total.started:
        return Answer("not-exercised", "no request was sent")
    if total.lost_not_own_node:
        said = f"{total.lost_not_own_node} of {total.started} requests got neither a result nor an error"
        return Answer("fail", said, evidence([describe(lost) for lost in analysis.requests.listed]))
    if not (total.completed or total.error or total.lost):
        return Answer("unknown", f"none of {total.started} requests ended")
    return Answer("pass", f"none of {total.started} requests ({total.lost_own_node} lost with their own node faulted)")


def _no_loss(*hows: str, said: str) -> Callable[[Analysis], Answer]:
    """One way of losing a request, own node not faulted."""

    def check(analysis: Analysis) -> Answer:
        total = analysis.requests.total
        if not total.started:
            return Answer("not-exercised", "no request was sent")
        lost = [one for one in analysis.requests.listed if one.how in hows]
        if lost:
            return Answer(
                "fail",
                f"at least {len(lost)} of {total.started} requests {said}",
                evidence([describe(one) for one in lost]),
            )
        return Answer("pass", f"none of {total.started} requests")

    return check


def no_probe_cut(analysis: Analysis) -> Answer:
    """A probe that met its limit is a measurement, not a loss; one that was ended without a word is one."""
    total = analysis.probes.total
    if not total.started:
        return Answer("not-exercised", "no probe was sent")
    cut = [lost for lost in analysis.probes.listed if lost.how in ("truncated", "empty")]
    if cut:
        said = f"at least {len(cut)} of {total.started} probes ended cleanly without a result"
        return Answer("fail", said, evidence([describe(lost) for lost in cut]))
    return Answer("pass", f"none of {total.started} probes ({total.hung + total.overdue} met their limit)")


def accounting(analysis: Analysis) -> Answer:
    groups = {"load": analysis.requests.total, "probes": analysis.probes.total}
    groups |= {f"model {name}": counts for name, counts in analysis.requests.by_model.items()}
    groups |= {f"entry {name}": counts for name, counts in analysis.requests.by_entry.items()}
    wrong = [
        f"{name}: {c.started} started, {c.completed} completed + {c.error} error + {c.lost} lost + {c.void} void + "
        f"{c.unfinished} unfinished"
        for name, c in groups.items()
        if not c.balanced
    ]
    holes = holes_of(analysis)
    if wrong and not holes:
        return Answer("fail", "some requests are unaccounted for", evidence(wrong))
    if holes:
        said = "the journal has holes: the outcome of some requests is unknown"
        return Answer("unknown", said, evidence([*holes, *wrong]))
    if not any(counts.started for counts in groups.values()):
        return Answer("not-exercised", "no request was sent")
    return Answer("pass", "started = completed + error + lost + void + unfinished")


def baseline_clean(analysis: Analysis) -> Answer:
    counts = analysis.requests.baseline
    if not any(phase.phase == "baseline" for phase in analysis.phases):
        return Answer("not-exercised", "there was no baseline")
    if counts.lost:
        return Answer("fail", f"{counts.lost} of {counts.started} requests lost before the first fault")
    if not counts.completed:
        return Answer("unknown", "no request completed before the first fault")
    return Answer("pass", f"none of {counts.started} requests lost before the first fault ({counts.error} errors)")


def calm_errors(analysis: Analysis) -> Answer:
    """Told beyond the bound where chance would bring a target at the bound so many errors once in a hundred runs."""
    bound = analysis.settings.calm_errors
    judged = {
        when: (counts.error, counts.completed + counts.error + counts.lost)
        for when, counts in (("baseline", analysis.requests.baseline), ("calm weather", analysis.requests.calm))
        if counts.completed + counts.error + counts.lost
    }
    if not judged:
        return Answer("not-exercised", "no request ended in calm weather")
    lines = [f"{when}: {errors} errors of {ended} requests" for when, (errors, ended) in judged.items()]
    said = f"{'; '.join(lines)} (bound {100 * bound:g} %)"
    if any(as_many_by_chance(errors, ended, bound) < UNLIKELY for errors, ended in judged.values()):
        return Answer("fail", f"too many errors without a fault nearby: {said}", evidence(lines))
    if any(errors > NEAR * bound * ended for errors, ended in judged.values()):
        return Answer("unknown", f"errors without a fault nearby, close to the bound: {said}", evidence(lines))
    return Answer("pass", said)


def as_many_by_chance(errors: int, ended: int, share: float) -> float:
    """The chance of so many errors or more among so many requests of which each gets one by this share."""
    if share <= 0.0:
        return float(errors == 0)
    fewer: list[float] = []
    term = ended * math.log1p(-share)  # of logarithms: none fits into a float in a long run
    for k in range(min(errors, ended)):
        fewer.append(math.exp(term))
        term += math.log((ended - k) / (k + 1) * share / (1 - share))
    return max(1.0 - math.fsum(fewer), 0.0)


def describe(lost: Lost) -> str:
    """One line on a lost request."""
    fault = "no fault near" if lost.fault is None else f"fault {lost.fault}"
    if lost.unwedging is not None:
        fault = f"the rig's own unwedging after fault {lost.unwedging}"
    return f"{lost.id}: {lost.how}, {lost.model} through {lost.entry} at {lost.started_t:.1f} s, {fault}"


CHECKS = [
    Check("no-request-lost", "every request ends with a result or an error (own node not faulted)", no_request_lost),
    Check("no-silent-hang", "no request hangs without a word", _no_loss("hung", "overdue", said="hung")),
    Check(
        "no-cut-stream", "no answer ends in the middle as if it were complete", _no_loss("truncated", said="were cut")
    ),
    Check("no-empty-answer", "no answer is empty yet successful", _no_loss("empty", said="got an empty answer")),
    Check("no-probe-cut", "no probe ends cleanly without a result", no_probe_cut),
    Check("accounting", "every request that was started is accounted for", accounting),
    Check("calm-errors", "requests that no fault touched hardly ever get an error (bound of the plan)", calm_errors),
    Check("baseline-clean", "nothing is lost before the first fault", baseline_clean),
]
