"""Checks of what the target answered when the rig asked it to change something, and of scripted expectations."""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence
from rig.journal.records import ApiCall


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
        return Answer("fail", f"{len(wrong)} deployments were answered wrongly", evidence(wrong))
    if not judged:
        return Answer("not-exercised", "no model was deployed twice")
    return Answer("pass", f"each of {len(judged)} second deployments was refused with 409")


def unknown_is_404(analysis: Analysis) -> Answer:
    asked = [call for call in _in_order(analysis) if call.unknown and call.status is not None]
    wrong = [
        f"{call.what} {call.subject} at {call.asked_t:.1f} s: {call.status}" for call in asked if call.status != 404
    ]
    if wrong:
        return Answer("fail", "what does not exist was answered as if it did", evidence(wrong))
    if not asked:
        return Answer("not-exercised", "nothing unknown was asked for")
    return Answer("pass", f"404 each of {len(asked)} times")


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
        return Answer("fail", f"{len(missing)} of {len(asked)} never appeared after their 200", evidence(missing))
    if not asked:
        return Answer("not-exercised", "nothing was placed by hand")
    return Answer("pass", f"each of {len(asked)} appeared")


def as_expected(analysis: Analysis) -> Answer:
    expected = analysis.watch.expected
    if not expected:
        return Answer("not-exercised", "no scenario was played")
    failed = [one for one in expected if one.status == "fail"]
    if failed:
        lines = [f"step {one.step}, {one.text}: {one.evidence}" for one in failed]
        return Answer("fail", f"{len(failed)} of {len(expected)} expectations failed", evidence(lines))
    open_ = [one for one in expected if one.status == "unknown"]
    if open_:
        lines = [f"step {one.step}, {one.text}: {one.evidence}" for one in open_]
        return Answer("unknown", f"{len(open_)} of {len(expected)} expectations could not be judged", evidence(lines))
    return Answer("pass", f"all {len(expected)} expectations of the scenario held")


def _in_order(analysis: Analysis) -> list[ApiCall]:
    return sorted(analysis.watch.keeper.calls, key=lambda call: call.asked_t)


CHECKS = [
    Check("duplicates-refused", "a second deployment of a model is refused with 409", duplicates_refused),
    Check("unknown-is-404", "an unknown deployment or instance is 404", unknown_is_404),
    Check("placed-by-hand-appears", "an instance asked for with 200 appears", placed_by_hand_appears),
    Check("as-expected", "a scripted scenario goes as it says", as_expected),
]
