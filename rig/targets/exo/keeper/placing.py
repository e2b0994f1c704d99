"""Promises about how instances are placed: how many, how often, how soon. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from rig.targets.exo.keeper.chronicle import Entry
from rig.targets.exo.keeper.disturbances import Disturbances
from rig.targets.exo.keeper.rules import BACKOFF_S, GRACE_S, PROMPT_S, STEP_S, Held, Judged, Rules
from rig.targets.exo.keeper.story import Deployed, Life, Story


def one_instance(story: Story, rules: Rules) -> Iterator[Judged]:
    """No placement of the keeper's beside another instance of its model, whoever placed that."""
    del rules
    for life in story.lives.values():
        if life.made is None:
            continue
        order = life.made.order
        others = [o.id for o in story.of_model(life.model) if o is not life and o.order < order and o.alive_at(order)]
        where = f"{story.chronicle.session}, {life.made.span.text()}: {life.model} {life.id}"
        if not others:
            if life.whose == "keeper":
                yield Judged("kept", where)
        elif life.whose == "keeper":
            yield Judged("broken", f"{where} was placed beside {', '.join(others)}")
        elif life.whose == "unknown" and story.deployed_at(life.model, order) is not None:
            yield Judged("undecided", f"{where} appeared beside {', '.join(others)}; who placed it is not known")


def one_in_flight(story: Story, rules: Rules) -> Iterator[Judged]:
    """A deployment is not placed again while its last placement is on its way or there."""
    del rules
    for deployed in story.deployments.values():
        for life in deployed.placements:
            if life.made is None:
                continue
            before = [p for p in deployed.placements if p.order < life.order]
            standing = [p.id for p in before if p.alive_at(life.order)]
            line = f"{deployed.model} {life.id} {life.made.span.text()}"
            yield (
                Judged("broken", f"{line} while {', '.join(standing)} was there") if standing else Judged("kept", line)
            )


def rate(story: Story, rules: Rules) -> Iterator[Judged]:
    """At most one placement a second."""
    yield from _apart(story, rules, story.placements())
    doubtful = story.doubtful()
    if len(doubtful) > 1 or (doubtful and story.placements()):
        yield Judged("undecided", _doubt(story, doubtful))


def rate_after_grace(story: Story, rules: Rules) -> Iterator[Judged]:
    """The same of the first placements of a master, when what has gathered in its grace is placed."""
    if math.isinf(story.chronicle.begun.after_t):
        return
    limit_s = rules.scaled(GRACE_S + 2 * PROMPT_S)
    elapsed = story.chronicle.elapsed
    early = [life for life in story.placements() if life.made and elapsed(None, life.made).at_least_s <= limit_s]
    yield from _apart(story, rules, early)


def _apart(story: Story, rules: Rules, placed: list[Life]) -> Iterator[Judged]:
    for first, second in itertools.pairwise(placed):
        if first.made is None or second.made is None:
            continue
        took = story.chronicle.elapsed(first.made, second.made)
        held = rules.at_least(took, rules.scaled(STEP_S))
        if held == "undecided" and story.chronicle.exact:
            held = _by_reports(story, first.made, second.made)
        line = f"{first.model} {first.id} and {second.model} {second.id}, {took.text()} apart"
        yield Judged(held, f"{line}, {second.made.span.text()}")


def seen_ready(story: Story, rules: Rules, life: Life) -> bool:
    """Whether a keeper that looks once a second has surely seen it ready; one step may go to each of the others."""
    if not life.was_ready or life.ready is None or life.gone is None:
        return life.was_ready
    said = story.said_between(life.ready.order, life.gone.order)
    return story.chronicle.elapsed(life.ready, life.gone).at_least_s >= rules.scaled(STEP_S * (1 + said))


def _doubt(story: Story, doubtful: list[Life]) -> str:
    what = ", ".join(f"{life.model} {life.id}" for life in doubtful)
    return f"{what} appeared as {story.chronicle.node} became master: whether under it is not known"


def _by_reports(story: Story, first: Entry, second: Entry) -> Held:
    """All nodes report once a second: in a second each does, on average; in an instant none does."""
    reported = story.chronicle.reported(first, second)
    alive = [node for node, count in first.reports.items() if count and _still(story, node, second)]
    if len(alive) < 2:
        return "undecided"
    total = sum(reported.get(node, 0) for node in alive)
    if total == 0:
        return "broken"
    return "kept" if total >= 0.6 * len(alive) else "undecided"


def _still(story: Story, node: str, entry: Entry) -> bool:
    """Whether the node went on reporting after that."""
    return story.chronicle.end.reports.get(node, 0) > entry.reports.get(node, 0)


def grace(story: Story, rules: Rules) -> Iterator[Judged]:
    """Nothing is placed in the first 15 s of a new master, one that became it in the run."""
    if math.isinf(story.chronicle.begun.after_t):
        return
    if doubtful := story.doubtful():
        yield Judged("undecided", _doubt(story, doubtful))
    for life in story.placements()[:1]:
        if life.made is not None:
            took = story.chronicle.elapsed(None, life.made)
            held = rules.at_least(took, rules.scaled(GRACE_S))
            yield Judged(
                held, f"{life.model} {life.id} placed {took.text()} after {story.chronicle.node} became master"
            )


def backoff(story: Story, rules: Rules) -> Iterator[Judged]:
    """The keeper's own, lost before ready: 10, 20, 40, 60, 60 s until the next placement; a ready one resets that."""
    for deployed in story.deployments.values():
        failures = uncounted = 0  # those that may have been seen ready count for none, or for one
        for lost, following in itertools.pairwise(deployed.placements):
            if lost.was_ready:
                uncounted = 0 if seen_ready(story, rules, lost) else uncounted + failures + 1
                failures = 0
                continue
            if lost.gone is None or following.made is None or following.order < lost.gone.order:
                continue
            failures += 1
            took = story.chronicle.elapsed(lost.gone, following.made)
            least_s = rules.backoff_s(failures)
            line = f"{lost.model} {lost.id} lost before ready, {failures} in a row: placed again after {took.text()}"
            held = rules.at_least(took, least_s)
            if held == "broken" and lost.came_close and not story.chronicle.exact:
                held = "undecided"  # it may have been ready between two polls
            # By views a placement that was lost again between two polls is not seen: the wait is that of the next loss.
            exact = story.chronicle.exact and not deployed.from_before
            free = exact and not _held_up(story, deployed, lost.gone, following.made)
            most_s = 1.15 * rules.backoff_s(failures + uncounted) + rules.scaled(PROMPT_S) + 0.3
            if held != "broken" and free and took.at_least_s > most_s:
                held = "broken"
            yield Judged(held, f"{line}, {least_s:.1f} s are due")


def backoff_reset(story: Story, rules: Rules) -> Iterator[Judged]:
    """After a placement that became ready the next loss before ready waits 10 s again, not longer."""
    for deployed in story.deployments.values():
        failed, ready_since = 0, False
        for lost, following in itertools.zip_longest(deployed.placements, deployed.placements[1:]):
            if lost.was_ready:
                ready_since = failed > 0 and seen_ready(story, rules, lost)
                continue
            failed += 1
            if not ready_since or lost.gone is None:
                continue
            ready_since, failed = False, 1
            later = None if following is None else following.made
            end = later or deployed.gone or story.chronicle.end
            if _held_up(story, deployed, lost.gone, end):
                continue
            took = story.chronicle.elapsed(lost.gone, end)
            held = rules.promptly(took, 10.0 + PROMPT_S)
            late = held == "broken"
            if late and not story.chronicle.exact:
                held = "undecided"
            what = f"{lost.model} {lost.id}, the first lost before ready since one was"
            if later is not None:
                yield Judged(held, f"{what}: next after {took.text()}")
            elif late:
                yield Judged(held, f"{what}: not placed again for {took.text()}")


def replaced(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """Lost after it was ready, and it can be placed: placed again at once."""
    for deployed in story.deployments.values():
        for life in story.of_model(deployed.model):
            if life.deployment != deployed.id or life.gone is None or not seen_ready(story, rules, life):
                continue
            order = life.gone.order
            if not deployed.stands_at(order) or any(o.alive_at(order) for o in story.of_model(deployed.model)):
                continue
            judged = _replaced(story, rules, disturbed, deployed, life, life.gone)
            if judged is not None:
                yield judged


def _replaced(
    story: Story, rules: Rules, disturbed: Disturbances, deployed: Deployed, life: Life, lost: Entry
) -> Judged | None:
    """None where nothing can be said: it did not fit, the master was new, something else held it up."""
    chronicle = story.chronicle
    young = chronicle.elapsed(None, lost)
    following = next((p for p in deployed.placements if p.order > lost.order), None)
    later = chronicle.end if following is None or following.made is None else following.made
    if young.at_least_s < rules.scaled(GRACE_S) or _held_up(story, deployed, lost, later):
        return None
    if deployed.gone is not None and deployed.gone.order <= later.order:
        return None
    if disturbed.standing_still(chronicle.node, lost.span, later.span):
        return None
    others = story.said_between(lost.order, later.order, deployed)
    took = chronicle.elapsed(lost, later)
    allowed_s = PROMPT_S + 1.5 * STEP_S * others
    if not chronicle.exact:
        allowed_s += BACKOFF_S[0] + PROMPT_S  # one that was lost again between two polls is not seen
    if following is None:
        if rules.promptly(took, allowed_s + PROMPT_S) == "broken":
            return Judged(
                "broken", f"{life.model} {life.id} lost {lost.span.text()}, and not placed again for {took.text()}"
            )
        return None
    line = f"{life.model} {life.id} lost {lost.span.text()}: placed again after {took.text()}"
    return Judged(rules.promptly(took, allowed_s), line)


def _held_up(story: Story, deployed: Deployed, first: Entry, second: Entry) -> bool:
    """Whether it did not fit, or another instance of the model was there, at some time in between."""
    if any(first.order < refusal.order <= second.order for refusal, _ in deployed.refusals):
        return True
    if deployed.error is not None and not deployed.placements:
        return True
    return any(
        life.alive_at(first.order) or first.order < life.order < second.order
        for life in story.of_model(deployed.model)
        if life.gone is not first
    )
