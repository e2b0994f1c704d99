"""Checks of what exo answered when the rig asked it to change something."""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.journal.records import ApiCall
from rig.targets.exo.judged import watched
from rig.targets.exo.keeper.rules import BUSY_S, PROMPT_S


def duplicates_refused(analysis: Analysis) -> Answer:
    """A model is deployed from the answer to its deployment to the request to delete it."""
    deployed: set[str] = set()
    names: dict[str, str] = {}
    judged: list[str] = []
    wrong: list[str] = []
    for call in _in_order(analysis):
        if call.what == "delete-deployment" and call.subject in names:
            deployed.discard(names[call.subject])
        if call.what != "deploy" or call.model is None or call.status is None:
            continue
        if call.model in deployed:
            judged.append(call.model)
            if call.status != 409:
                wrong.append(f"{call.model} deployed again through {call.node} at {call.asked_t:.1f} s: {call.status}")
        elif call.status == 409:
            wrong.append(f"{call.model} was not deployed, and refused at {call.asked_t:.1f} s: 409")
        if call.status < 300:
            deployed.add(call.model)
            if call.subject is not None:
                names[call.subject] = call.model
    if wrong:
        return Answer("fail", f"{len(wrong)} second deployments got a wrong answer", evidence(wrong))
    if not judged:
        return Answer("not-exercised", "no model was deployed twice")
    return Answer("pass", f"all {len(judged)} second deployments were refused with 409")


def deleted_once(analysis: Analysis) -> Answer:
    """What was deleted is unknown from then on: asked for again, it is 404, and takes no other instance with it."""
    rules = watched(analysis).rules
    deleted: dict[str, float] = {}
    models: dict[str, str] = {}
    judged = 0
    wrong: list[str] = []
    for call in _in_order(analysis):
        if call.what == "deploy" and call.subject is not None and call.model is not None:
            models[call.subject] = call.model
        if call.what != "delete-deployment" or call.subject is None or call.status is None:
            continue
        since_t = deleted.setdefault(call.subject, call.t)
        if call.asked_t - since_t < rules.scaled(PROMPT_S) + BUSY_S:
            continue  # the first time, or it was still on its way
        judged += 1
        what = f"{call.subject} deleted at {since_t:.1f} s and again at {call.asked_t:.1f} s"
        if call.status != 404:
            wrong.append(f"{what}: {call.status}")
        wrong += [f"{what}: {name} went" for name in _gone_after(analysis, models.get(call.subject), call)]
    if wrong:
        return Answer("fail", "a deleted deployment was deleted again", evidence(wrong))
    if not judged:
        return Answer("not-exercised", "nothing was deleted twice")
    return Answer("pass", f"all {judged} answered with 404, and nothing was deleted")


def _gone_after(analysis: Analysis, model: str | None, call: ApiCall) -> list[str]:
    """Instances of a model that went right after a call, while it was deployed."""
    by_t = call.t + watched(analysis).rules.scaled(PROMPT_S)
    return [
        life.id
        for story in watched(analysis).stories
        for life in story.of_model(model or "")
        if life.gone is not None and story.deployed_at(life.model, life.gone.order) is not None
        if call.asked_t <= life.gone.span.after_t and life.gone.span.by_t <= by_t
    ]


def unknown_is_404(analysis: Analysis) -> Answer:
    asked = [call for call in _in_order(analysis) if call.unknown and call.status is not None]
    wrong = [
        f"{call.what} {call.subject} at {call.asked_t:.1f} s: {call.status}" for call in asked if call.status != 404
    ]
    if wrong:
        return Answer("fail", "something unknown was answered as if it existed", evidence(wrong))
    if not asked:
        return Answer("not-exercised", "no request named anything unknown")
    return Answer("pass", f"all {len(asked)} answered with 404")


def placed_by_hand_appears(analysis: Analysis) -> Answer:
    """`subject` is the instance that appeared for a call, which was watched for as long as a placement may take."""
    asked = [
        call for call in _in_order(analysis) if call.what == "place" and call.status is not None and call.status < 300
    ]
    missing = [
        f"{call.model} placed through {call.node} at {call.asked_t:.1f} s: {call.detail}"
        for call in asked
        if not call.subject
    ]
    if missing:
        return Answer("fail", f"{len(missing)} of {len(asked)} instances never appeared after a 200", evidence(missing))
    if not asked:
        return Answer("not-exercised", "nothing was placed by hand")
    return Answer("pass", f"all {len(asked)} instances appeared")


def _in_order(analysis: Analysis) -> list[ApiCall]:
    return sorted(watched(analysis).keeper.calls, key=lambda call: call.asked_t)


CHECKS = [
    Check("duplicates-refused", "a second deployment of a model is refused with 409", duplicates_refused),
    Check("deleted-once", "a deployment that was deleted is unknown from then on", deleted_once),
    Check("unknown-is-404", "an unknown deployment or instance is 404", unknown_is_404),
    Check("placed-by-hand-appears", "an instance asked for with 200 appears", placed_by_hand_appears),
]
