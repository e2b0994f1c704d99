"""How long a deployment waits for an instance when it may have one at once, and what it may wait for. Pure.

It wants one when it is new, when an instance that was seen ready or came from the master before has gone, or when a
master begins without one. It is met by a placement, by a refusal, or by an instance that somebody else made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rig.analysis.moments import Elapsed, between
from rig.targets.exo.keeper.chronicle import Entry
from rig.targets.exo.keeper.disturbances import Disturbances
from rig.targets.exo.keeper.placing import seen_ready
from rig.targets.exo.keeper.rules import BUSY_S, GRACE_S, IN_FLIGHT_S, PROMPT_S, STEP_S, Judged, Rules
from rig.targets.exo.keeper.story import Deployed, Story


@dataclass(frozen=True)
class Want:
    """`since` None: from the session's beginning. `until` is what met it, or the end of what is known."""

    deployed: Deployed
    why: Literal["new", "lost", "carried"]
    since: Entry | None
    until: Entry
    met: bool

    @property
    def order(self) -> int:
        return -1 if self.since is None else self.since.order


@dataclass(frozen=True)
class Waited:
    """`allowed_s` (at pace 1) until it should have been met, `grace_s` of that for a new master."""

    want: Want
    took: Elapsed
    allowed_s: float
    grace_s: float
    line: str


def wants(story: Story, rules: Rules) -> Iterator[Want]:
    for deployed in story.deployments.values():
        if deployed.made is not None:
            yield from _want(story, deployed, "new", deployed.made)
        elif not deployed.from_before and not deployed.carried_error:
            yield from _want(story, deployed, "carried", None)
        for life in story.of_model(deployed.model):
            taken_over = life.whose == "carried" and not life.was_ready and not deployed.from_before
            if life.gone is not None and (taken_over or seen_ready(story, rules, life)):
                yield from _want(story, deployed, "lost", life.gone)


def _want(
    story: Story, deployed: Deployed, why: Literal["new", "lost", "carried"], since: Entry | None
) -> Iterator[Want]:
    order = -1 if since is None else since.order
    lives = story.of_model(deployed.model)
    standing = deployed.made is None if since is None else deployed.stands_at(order)
    if not standing or any(life.alive_at(max(order, 0)) for life in lives if since is None or life.gone is not since):
        return
    met = [life.made for life in lives if life.made is not None and life.made.order > order]
    met += [refusal for refusal, _ in deployed.refusals if refusal.order > order]
    first = min(met, key=lambda entry: entry.order, default=None)
    until = first or story.chronicle.end
    if deployed.gone is not None and deployed.gone.order <= until.order:
        first, until = None, deployed.gone
    yield Want(deployed, why, since, until, first is not None)


def _waited(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Waited]:
    """Those of which it can be said; a placement whose node went meanwhile is waited for, and made again."""
    chronicle = story.chronicle
    for want in wants(story, rules):
        begun = chronicle.begun if want.since is None else want.since.span
        if disturbed.standing_still(chronicle.node, begun, want.until.span):
            continue
        young_s = 0.0 if want.since is None else chronicle.elapsed(None, want.since).at_least_s * rules.pace
        grace_s = max(0.0, GRACE_S - young_s)
        allowed_s = grace_s + PROMPT_S + 1.5 * STEP_S * story.said_between(want.order, want.until.order, want.deployed)
        if any(c.name == "NodeTimedOut" and want.order < c.order < want.until.order for c in story.changes):
            allowed_s += IN_FLIGHT_S
        took = chronicle.elapsed(want.since, want.until)
        what = {"new": "deployed", "lost": "lost its instance", "carried": "taken over"}[want.why]
        end = "met" if want.met else "not met"
        yield Waited(
            want, took, allowed_s, grace_s, f"{want.deployed.model} {what} {begun.text()}: {end} {took.text()} later"
        )


def _judged(story: Story, rules: Rules, waited: Waited, allowed_s: float) -> Iterator[Judged]:
    """Views alone do not tell: what was lost between two polls waits longer than it seems."""
    held = rules.promptly(waited.took, allowed_s)
    if waited.want.met or held == "broken":
        yield Judged("undecided" if held == "broken" and not story.chronicle.exact else held, waited.line)


def grace_ends(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """What waited for a new master's grace to end is placed, or refused, as soon as it has."""
    begun = story.chronicle.begun
    if between(begun, begun).at_most_s > rules.scaled(GRACE_S):
        return
    for waited in _waited(story, rules, disturbed):
        if waited.grace_s > 0.0:
            yield from _judged(story, rules, waited, waited.allowed_s)


def made_again(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """A placement that does not arrive is made again after 30 s: whatever may be placed is, by then."""
    for waited in _waited(story, rules, disturbed):
        late = waited.took.at_least_s > rules.scaled(waited.allowed_s) + BUSY_S
        if late:
            yield from _judged(story, rules, waited, waited.allowed_s + IN_FLIGHT_S + PROMPT_S)


def others_kept(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """One that cannot be placed, for whatever reason, keeps no other from being placed or refused."""
    everything = list(_waited(story, rules, disturbed))
    for waited in everything:
        want = waited.want
        stuck = [other.want for other in everything if other.want is not want and not other.want.met]
        idle = any(_overlap(want, other) for other in stuck) or any(
            _refused_before(story, other, want) for other in story.deployments.values() if other is not want.deployed
        )
        if idle:
            yield from _judged(story, rules, waited, waited.allowed_s + PROMPT_S)


def _overlap(first: Want, second: Want) -> bool:
    return first.order < second.until.order and second.order < first.until.order


def _refused_before(story: Story, other: Deployed, want: Want) -> bool:
    """Whether it stood refused, and without an instance, when the want was met."""
    order = want.until.order
    refused = any(refusal.order < order for refusal, _ in other.refusals) and other.stands_at(order)
    return refused and not any(life.alive_at(order) for life in story.of_model(other.model))


def starts_afresh(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """A new deployment of a model waits for nothing of the one before it, nor a new master of the one before."""
    for waited in _waited(story, rules, disturbed):
        new = waited.want.deployed
        earlier = [
            d for d in story.deployments.values() if d is not new and d.model == new.model and d.gone is not None
        ]
        again = waited.want.why == "new" and any(d.gone and d.gone.order < waited.want.order for d in earlier)
        gone = waited.want.since
        taken_over = any(life.gone is gone and not life.was_ready for life in story.of_model(new.model) if gone)
        if again or taken_over:
            yield from _judged(story, rules, waited, waited.allowed_s)
