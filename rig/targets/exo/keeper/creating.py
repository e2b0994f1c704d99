"""That the keeper only ever creates: an instance that goes has a reason to, and it is not the keeper's. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rig.targets.exo.keeper.chronicle import Entry
from rig.targets.exo.keeper.disturbances import Disturbances
from rig.targets.exo.keeper.rules import BUSY_S, Judged, Rules
from rig.targets.exo.keeper.story import Life, Story

_AFTER_FAULT_S: Final = 90.0
"""What a fault has brought about goes on for so long after its heal: nodes time out, instances follow a pass later."""
_STOOD_S: Final = 30.0


def only_creates(story: Story, rules: Rules, disturbed: Disturbances) -> Iterator[Judged]:
    """An instance of a deployed model goes only when it is asked for, or when something of it has failed."""
    if not story.chronicle.exact:
        return
    for life in story.lives.values():
        order = story.chronicle.end.order if life.gone is None else life.gone.order
        if story.deployed_at(life.model, order - 1) is None:
            continue
        line = f"{life.model} {life.id}"
        if life.gone is None:
            stood = story.chronicle.elapsed(life.made, story.chronicle.end)
            if stood.at_least_s >= rules.scaled(_STOOD_S):
                yield Judged("kept", f"{line} was left alone")
        elif not _explained(story, rules, disturbed, life, life.gone):
            yield Judged(
                "broken", f"{line} went {life.gone.span.text()}, and nobody asked for it and nothing had failed"
            )


def _explained(story: Story, rules: Rules, disturbed: Disturbances, life: Life, gone: Entry) -> bool:
    asked = any(
        call.what == "delete-instance" and call.subject == life.id and call.asked_t <= gone.span.by_t
        for call in story.calls
    )
    deleted = any(d.model == life.model and d.gone and d.gone.order < gone.order for d in story.deployments.values())
    silent = any(gone.reports.get(node, 0) == 0 for node in life.nodes)
    timed_out = any(change.name == "NodeTimedOut" and change.get("node") in life.nodes for change in story.changes)
    earlier_t = gone.span.after_t - rules.scaled(_AFTER_FAULT_S) - BUSY_S
    return asked or deleted or life.failed or silent or timed_out or disturbed.any_between(earlier_t, gone.span.by_t)
