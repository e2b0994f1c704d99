"""One check for each promise of the keeper, judged in every session of a master that the journal tells of.

Broken once: fail. Otherwise unknown where a log was not read that would have told. Otherwise kept at least once, by a
session's own log: pass. What only views show may be broken, never proved kept: without any log it is unknown. Promises
that nothing called upon were not exercised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.targets.exo.judged import watched
from rig.targets.exo.keeper import creating, placing, refusing, wanting
from rig.targets.exo.keeper.disturbances import Disturbances
from rig.targets.exo.keeper.rules import Judged, Rules
from rig.targets.exo.keeper.story import Story

Promise: TypeAlias = Callable[[Story, Rules, Disturbances], Iterable[Judged]]


def judge(promise: Promise, analysis: Analysis) -> Answer:
    """How a promise fared in the run as a whole."""
    own = watched(analysis)
    rules, disturbed = own.rules, Disturbances(analysis.faults)
    by_log: list[Judged] = []
    by_views: list[Judged] = []
    logs = 0
    for story in own.stories:
        judged = list(promise(story, rules, disturbed))
        (by_log if story.chronicle.exact else by_views).extend(judged)
        logs += story.chronicle.exact
    broken = [one.line for one in (*by_log, *by_views) if one.held == "broken"]
    kept = [one.line for one in by_log if one.held == "kept"]
    undecided = [one.line for one in by_log if one.held == "undecided"]
    if broken:
        return Answer("fail", f"broken {len(broken)} times, kept {len(kept)} times", evidence(broken))
    if unread := own.keeper.unread.lines():
        said = f"kept {len(kept)} times by what was read" if kept else "nothing called upon it in what was read"
        return Answer("unknown", f"{said}; {len(unread)} times an event log was not read to its end", evidence(unread))
    if kept:
        open_ = f", {len(undecided)} too close to tell" if undecided else ""
        return Answer("pass", f"kept {len(kept)} times in {logs} sessions{open_}", evidence(kept[:3]))
    if undecided:
        return Answer("unknown", f"{len(undecided)} times too close to tell", evidence(undecided))
    if by_views and not logs:
        lines = [one.line for one in by_views]
        return Answer("unknown", "no event log was read, and views cannot prove it", evidence(lines))
    return Answer("not-exercised", "nothing called upon it" if own.stories else "no master was seen")


def _calm(judged: Callable[[Story, Rules], Iterable[Judged]]) -> Promise:
    """A promise that does not depend on whether the master stood still."""
    return lambda story, rules, _: judged(story, rules)


PROMISES: Final[tuple[tuple[str, str, Promise], ...]] = (
    ("one-placement", "never an instance beside another of its model", _calm(placing.one_instance)),
    ("one-in-flight", "no second placement while one is on its way or there", _calm(placing.one_in_flight)),
    ("placement-rate", "at most one placement a second", _calm(placing.rate)),
    ("new-master-grace", "nothing is placed in the first 15 s of a new master", _calm(placing.grace)),
    ("rate-after-grace", "the first placements of a new master are a second apart", _calm(placing.rate_after_grace)),
    ("grace-ends", "after its grace a new master places at once", wanting.grace_ends),
    ("made-again", "a placement that does not arrive is made again after 30 s", wanting.made_again),
    ("others-kept", "one that cannot be placed keeps no other from it", wanting.others_kept),
    ("starts-afresh", "a new deployment of a model waits for nothing from before", wanting.starts_afresh),
    ("only-creates", "no instance goes unless it is asked for or has failed", creating.only_creates),
    ("backoff", "lost before ready: 10, 20, 40, 60, 60 s until the next placement", _calm(placing.backoff)),
    ("backoff-reset", "an instance that was ready resets the backoff", _calm(placing.backoff_reset)),
    ("replaced-at-once", "lost after ready: placed again at once, if it can be placed", placing.replaced),
    ("says-why", "what cannot be placed says why", refusing.says_why),
    ("reason-once", "a reason is written only when it changes", _calm(refusing.reason_once)),
    (
        "retried-on-change",
        "what did not fit is tried again as soon as nodes or links change",
        refusing.retried_on_change,
    ),
    ("retried-by-time", "what did not fit is tried again every 30 s", refusing.retried_by_time),
    (
        "delete-takes-own",
        "deleting a deployment deletes the instance placed for it",
        _calm(refusing.delete_takes_its_own),
    ),
    ("delete-leaves-others", "deleting a deployment deletes no other instance", _calm(refusing.delete_leaves_others)),
    ("nothing-comes-back", "nothing is placed for a deployment that was deleted", _calm(refusing.nothing_back)),
)

CHECKS = [Check(name, said, partial(judge, promise)) for name, said, promise in PROMISES]
