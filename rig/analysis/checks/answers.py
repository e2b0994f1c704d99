"""Checks of what was answered: whether it is what was answered before the faults, and whether its form is sound."""

from __future__ import annotations

from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.answers.variants import LEAST_LEARNT
from rig.analysis.answers.watch import Altered, AnswerWatch, hows
from rig.analysis.checks.check import Answer, Check, evidence

LEAST_JUDGED: Final = 10
"""Fewer answers after a strike prove nothing."""


def answers_unchanged(analysis: Analysis) -> Answer:
    watch = analysis.watch.answers
    if watch.altered_count:
        said = f"{_of_judged(watch)}: {hows(watch)}"
        return Answer("fail", said, evidence([describe(altered) for altered in watch.altered]))
    return _unless_untold(watch) or Answer("pass", f"{_of_judged(watch)} ({_told(watch)})")


def no_cross_talk(analysis: Analysis) -> Answer:
    """Before the first strike and after it: one client never gets what another asked for."""
    watch = analysis.watch.answers
    swapped = [altered for altered in watch.altered if altered.how == "swapped"]
    mixed = [record for record in watch.malformed if any("two answers" in what for what in record.what)]
    lines = [
        *watch.crossed(),
        *(f"{record.id}, {record.model} through {record.entry}: {', '.join(record.what)}" for record in mixed),
        *(describe(altered) for altered in swapped),
    ]
    if lines:
        return Answer("fail", "answers went to requests that had not asked for them", evidence(lines))
    return _unless_untold(watch) or Answer("pass", f"none of {watch.judged} was the answer to another canary")


def replicas_agree(analysis: Analysis) -> Answer:
    watch = analysis.watch.answers
    if lines := watch.apart():
        return Answer("fail", "who answers decides what is answered, before the first fault", evidence(lines))
    if watch.sources() < 2:
        return Answer("not-exercised", "no canary was answered by two entry nodes or instances before the first fault")
    if not watch.stable:
        return _unstable(watch)
    return Answer("pass", f"up to {watch.sources()} of them gave the same answer to each of {len(watch.stable)}")


def answers_well_formed(analysis: Analysis) -> Answer:
    watch = analysis.watch.answers
    lines = [
        f"{record.id}, {record.model} through {record.entry}: {', '.join(record.what)}" for record in watch.malformed
    ]
    lines += watch.torn()
    completed = analysis.requests.total.completed
    if lines:
        wrong = watch.malformed_count
        return Answer("fail", f"{wrong} of {completed} answers are not as a client may expect", evidence(lines))
    if not completed:
        return Answer("not-exercised", "no request was completed")
    return Answer("pass", f"none of {completed}")


def describe(altered: Altered) -> str:
    """One line: what, where, by whom, after what."""
    difference, strike = altered.difference, altered.strike
    by = f"by {altered.instance} on {', '.join(altered.nodes)}" if altered.instance else "by an unknown instance"
    after = "" if strike is None else f", after fault {strike.fault} ({strike.kind} at {strike.at_t:.1f} s)"
    return (
        f"{altered.id} ({altered.asked}) through {altered.entry} {by}, sent at {altered.started_t:.1f} s{after}: "
        f"{difference.how} from token {difference.token} on, {difference.detail}"
    )


def _unless_untold(watch: AnswerWatch) -> Answer | None:
    """What keeps a check from passing though nothing was seen."""
    if not watch.asked:
        return Answer("not-exercised", "no request had a known answer (`canaries` of the workload)")
    if watch.wavering:
        said = f"{len(watch.wavering)} answers varied while nothing struck: the target is not as stable as it seemed"
        return Answer("unknown", said, evidence([describe(altered) for altered in watch.wavering]))
    if not watch.struck:
        return Answer("not-exercised", f"no fault struck ({_told(watch)})")
    if not watch.stable:
        return _unstable(watch)
    if watch.judged < LEAST_JUDGED:
        return Answer("unknown", f"only {watch.judged} answers after a strike could be judged ({_told(watch)})")
    return None


def _unstable(watch: AnswerWatch) -> Answer:
    said = f"no canary had the same answer {LEAST_LEARNT} times before the first fault ({_told(watch)})"
    return Answer("unknown", said, evidence([f"{asked}: varied" for asked in watch.varied]))


def _of_judged(watch: AnswerWatch) -> str:
    return f"answers altered: {watch.altered_count} of {watch.judged}"


def _told(watch: AnswerWatch) -> str:
    return (
        f"stable: {len(watch.stable)} of {len(watch.variants)}, unstable: {len(watch.varied)}; "
        f"on their way at a strike: {watch.exposed}"
    )


CHECKS = [
    Check("answers-unchanged", "after a fault the target answers what it answered before", answers_unchanged),
    Check("no-cross-talk", "nobody gets the answer to another request", no_cross_talk),
    Check("replicas-agree", "whichever node or instance answers, the answer is the same", replicas_agree),
    Check(
        "answers-well-formed",
        "an answer has one id, one end, and the form that was asked for",
        answers_well_formed,
    ),
]
