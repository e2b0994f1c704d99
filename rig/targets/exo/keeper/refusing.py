"""Promises about what cannot be placed: its reason, and when it is tried again. And about what is deleted. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rig.targets.exo.keeper.chronicle import Entry
from rig.targets.exo.keeper.disturbances import Disturbances
from rig.targets.exo.keeper.rules import GRACE_S, IN_FLIGHT_S, PROMPT_S, RETRY_S, Judged, Rules
from rig.targets.exo.keeper.story import Deployed, Life, Story


def says_why(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """A new deployment is placed, or a reason is given, in the first seconds that it can be (after the grace)."""
    chronicle = story.chronicle
    for deployed in story.deployments.values():
        for refusal, error in deployed.refusals:
            yield Judged(
                "kept" if error.strip() else "broken", f"{deployed.model} {refusal.span.text()}: {error[:120]!r}"
            )
        if deployed.made is None:
            continue
        order = deployed.made.order
        placed = next((p.made for p in deployed.placements if p.made is not None), None)
        if any(placed is None or refusal.order < placed.order for refusal, _ in deployed.refusals):
            continue
        if any(
            life.alive_at(order) or life.order > order
            for life in story.of_model(deployed.model)
            if life not in deployed.placements
        ):
            continue
        end = placed or deployed.gone or chronicle.end
        took = chronicle.elapsed(deployed.made, end)
        if disturbed.standing_still(chronicle.node, deployed.made.span, end.span):
            continue
        if took.at_least_s > rules.scaled(GRACE_S + 2 * PROMPT_S + (0.0 if placed is None else IN_FLIGHT_S)) + 0.3:
            yield Judged(
                "broken", f"{deployed.model} {deployed.made.span.text()}: neither placed nor refused for {took.text()}"
            )


def reason_once(story: Story, rules: Rules) -> Iterator[Judged]:
    """A reason is written when it changes, and not at every attempt; and none while what was placed is there."""
    for deployed in story.deployments.values():
        for refusal, error in deployed.refusals:
            standing = [p.id for p in deployed.placements if story.surely_there(p, refusal)]
            if standing:
                line = f"{deployed.model} {refusal.span.text()}: {error[:80]!r} while {', '.join(standing)} is there"
                yield Judged("broken", line)
        for (first, error), (second, again) in itertools.pairwise(deployed.refusals):
            placed = any(first.order < p.order < second.order for p in deployed.placements)
            line = f"{deployed.model} {first.span.text()} and {second.span.text()}: {again[:80]!r}"
            yield Judged("broken" if error == again and not placed else "kept", line)
        for refusal, error in deployed.refusals[-1:]:
            if _tried_again(story, rules, deployed, refusal):
                yield Judged("kept", f"{deployed.model} {refusal.span.text()}, written once: {error[:80]!r}")


def _tried_again(story: Story, rules: Rules, deployed: Deployed, refusal: Entry) -> bool:
    """Whether it stood for so long that a further attempt was due."""
    later = next((p.made for p in deployed.placements if p.order > refusal.order), None)
    end = later or deployed.gone or story.chronicle.end
    return story.chronicle.elapsed(refusal, end).at_least_s >= rules.scaled(RETRY_S)


def retried_on_change(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """What did not fit is placed at once when nodes or links have changed so that it does."""
    for deployed, refusal, made, change in _waited(story):
        if change is None:
            yield from _written_late(story, rules, deployed, refusal, made)
            continue
        if _freed(story, change, made, rules):
            continue
        if disturbed.standing_still(story.chronicle.node, change.span, made.span):
            continue
        others = story.said_between(change.order, made.order, deployed)
        took = story.chronicle.elapsed(change, made)
        line = f"{deployed.model} refused {refusal.span.text()}: placed {took.text()} after {change.name}"
        yield Judged(rules.promptly(took, PROMPT_S + 1.5 * others), line)


def _written_late(story: Story, rules: Rules, deployed: Deployed, refusal: Entry, made: Entry) -> Iterator[Judged]:
    """A refusal that was on its way when the last change came, and the placement right behind it."""
    before = [change for change in story.changes if change.order < refusal.order]
    if not before or rules.promptly(story.chronicle.elapsed(before[-1], made), PROMPT_S) != "kept":
        return
    yield Judged("kept", f"{deployed.model} refused {refusal.span.text()}: placed right after {before[-1].name}")


def retried_by_time(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """Memory freeing up alone is no change: then it is tried again every 30 s."""
    for deployed, refusal, made, change in _waited(story):
        since = refusal if change is None else change
        freed = [life.gone for life in story.lives.values() if life.gone and since.order < life.gone.order < made.order]
        if not freed or disturbed.standing_still(story.chronicle.node, freed[-1].span, made.span):
            continue
        took = story.chronicle.elapsed(freed[-1], made)
        line = f"{deployed.model} refused {refusal.span.text()}: placed {took.text()} after memory was freed"
        yield Judged(rules.promptly(took, RETRY_S + 2 * PROMPT_S), line)
    yield from _never_retried(story, rules, disturbed)


def _never_retried(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """What was refused and is never placed, although it was there before beside as much as there is now."""
    end = story.chronicle.end
    for deployed in story.deployments.values():
        if deployed.gone is not None or not deployed.refusals or any(p.gone is None for p in deployed.placements):
            continue
        refusal = deployed.refusals[-1][0]
        if any(life.order > refusal.order or life.gone is None for life in story.of_model(deployed.model)):
            continue
        freed = [life.gone for life in story.lives.values() if life.gone and life.gone.order > refusal.order]
        fits = next((gone for gone in freed if _fitted_before(story, deployed, gone)), None)
        if fits is None or disturbed.any_between(story.chronicle.begun.by_t, end.span.by_t):
            continue
        took = story.chronicle.elapsed(fits, end)
        held = rules.promptly(took, RETRY_S + 2 * PROMPT_S)
        if held == "broken":
            said = f"not placed for {took.text()} after there was room as before"
            yield Judged(held, f"{deployed.model} refused {refusal.span.text()}: {said}")


def _fitted_before(story: Story, deployed: Deployed, freed: Entry) -> bool:
    """Whether an instance of its model, on enough nodes, was made beside all that stood then, with the same nodes."""
    standing = {life.id for life in story.lives.values() if life.alive_at(freed.order)}
    lost = [change.order for change in story.changes if change.name in ("NodeTimedOut", "TopologyEdgeDeleted")]
    for life in story.of_model(deployed.model):
        if life.made is None or len(life.runners) < deployed.min_nodes or any(order > life.order for order in lost):
            continue
        if standing <= {other.id for other in story.lives.values() if other.alive_at(life.order)}:
            return True
    return False


def _waited(story: Story) -> Iterator[tuple[Deployed, Entry, Entry, Entry | None]]:
    """Deployment, its last refusal, the placement after that, and the last change of nodes or links in between."""
    for deployed in story.deployments.values():
        for life in deployed.placements:
            made = life.made
            if made is None:
                continue
            before = [refusal for refusal, _ in deployed.refusals if refusal.order < made.order]
            since = max((p.order for p in deployed.placements if p.order < made.order), default=made.order)
            if not before or before[-1].order < since < made.order:
                continue
            changes = [one for one in story.changes if before[-1].order < one.order and _before(story, one, made)]
            yield deployed, before[-1], made, changes[-1] if changes else None


def _before(story: Story, change: Entry, made: Entry) -> bool:
    """By its order; but views are asked for one after the other, and links after the instances that need them."""
    return change.order < made.order or (not story.chronicle.exact and change.span.after_t < made.span.by_t)


def _freed(story: Story, change: Entry, made: Entry, rules: Rules) -> bool:
    """Whether an instance went shortly before or after the change, so that it was memory that was waited for."""
    for life in story.lives.values():
        if life.gone is None or life.gone.order > made.order:
            continue
        if life.gone.order > change.order:
            return True
        if story.chronicle.elapsed(life.gone, change).at_least_s < rules.scaled(2 * PROMPT_S):
            return True
    return False


def delete_takes_its_own(story: Story, rules: Rules) -> Iterator[Judged]:
    """With a deployment goes the instance that the keeper placed for it."""
    for deployed in story.deployments.values():
        if deployed.gone is None:
            continue
        for life in story.of_model(deployed.model):
            own = life.deployment == deployed.id and life.whose in ("keeper", "carried")
            if not own or not life.alive_at(deployed.gone.order):
                continue
            end = life.gone or story.chronicle.end
            took = story.chronicle.elapsed(deployed.gone, end)
            held = rules.promptly(took, PROMPT_S)
            if life.gone is None and held != "broken":
                held = "undecided"
            what = f"its instance {life.id} was {'gone' if life.gone else 'still there'} after {took.text()}"
            yield Judged(held, f"{deployed.model} deleted {deployed.gone.span.text()}: {what}")


def delete_leaves_others(story: Story, rules: Rules) -> Iterator[Judged]:
    """No other instance goes with it: none of another model, none placed by hand."""
    for deployed in story.deployments.values():
        gone = deployed.gone
        if gone is None:
            continue
        for life in story.lives.values():
            own = life.deployment == deployed.id and life.whose != "hand"
            if own or not life.alive_at(gone.order):
                continue
            line = f"{deployed.model} deleted {gone.span.text()}: {life.model} {life.id} ({life.whose})"
            if life.gone is None or not _right_after(story, gone, life.gone, rules):
                yield Judged("kept", f"{line} was left alone")
            elif _explained(story, life, life.gone):
                continue
            else:
                yield Judged("broken", f"{line} went as well, {life.gone.span.text()}")


def _right_after(story: Story, gone: Entry, other: Entry, rules: Rules) -> bool:
    took = story.chronicle.elapsed(gone, other)
    return min(took.at_most_s, took.likely_most_s) <= rules.scaled(PROMPT_S) + 0.3


def _explained(story: Story, life: Life, gone: Entry) -> bool:
    """It was the keeper's and its own deployment was deleted too, or was asked for, or a node had just gone."""
    if any(call.what == "delete-instance" and call.subject == life.id for call in story.calls):
        return True
    own = story.deployments.get(life.deployment or "")
    if life.whose != "hand" and own is not None and own.gone is not None:
        return True
    return any(change.name == "NodeTimedOut" and change.order < gone.order for change in story.changes[-50:])


def nothing_back(story: Story, rules: Rules) -> Iterator[Judged]:
    """After a deployment was deleted nothing is placed for it."""
    for deployed in story.deployments.values():
        gone = deployed.gone
        if gone is None:
            continue
        back = [p for p in deployed.placements if p.order > gone.order]
        for life in back:
            yield Judged("broken", f"{deployed.model} deleted {gone.span.text()}: {life.id} came all the same")
        for life in story.of_model(deployed.model):
            stray = life.order > gone.order and life.whose == "unknown"
            if stray and story.deployed_at(life.model, life.order) is None:
                yield Judged(
                    "undecided", f"{deployed.model} deleted {gone.span.text()}: {life.id} came, whose is not known"
                )
        if not back and story.chronicle.elapsed(gone, story.chronicle.end).at_least_s >= rules.scaled(PROMPT_S):
            yield Judged("kept", f"{deployed.model} deleted {gone.span.text()}: nothing came back")
