"""Statuses of deployments that contradict the view beside them: for how long, and when that is told."""

from __future__ import annotations

from typing import Any

import pytest

from rig.journal.records import ViewChanged
from rig.targets.exo.keeper.rules import Rules
from rig.targets.exo.keeper.statuses import StatusWatch

MODEL = "lab/tiny-a"
LIMIT_S = 5.3


def view(t: float, facet: Any, value: Any) -> ViewChanged:
    return ViewChanged(t=t, node="node-1", facet=facet, since_t=t, value=value)


def shown(t: float, status: str) -> ViewChanged:
    """Nothing is placed: `placing` would be right."""
    return view(t, "deployments", {"d": {"model": MODEL, "status": status}})


def wrong(*records: ViewChanged, pace: float = 1.0) -> list[tuple[str, float, float]]:
    watch = StatusWatch(Rules(pace))
    for record in (view(1, "instances", {}), view(1, "runners", {}), *records):
        watch.feed(record)
    return [(one.told, one.from_t, one.to_t) for one in watch.wrong]


@pytest.mark.parametrize(("until_t", "told"), [(15.2, []), (15.4, [("serving", 10, 15.4)])])
def test_a_wrong_status_is_told_once_it_has_stood_for_longer_than_polls_and_the_keeper_take(
    until_t: float, told: list[tuple[str, float, float]]
) -> None:
    assert wrong(shown(10, "serving"), shown(until_t, "placing")) == told


def test_it_stands_from_its_beginning_whatever_else_changes_meanwhile() -> None:
    others = [view(10 + second, "runners", {"r": f"Runner{second}"}) for second in (2, 4)]
    assert wrong(shown(10, "serving"), *others, shown(16, "placing")) == [("serving", 10, 16)]


def test_another_wrong_status_begins_anew() -> None:
    assert wrong(shown(10, "serving"), shown(14, "starting"), shown(18, "placing")) == []
    right_meanwhile = (shown(10, "serving"), shown(12, "placing"), shown(14, "serving"), shown(18, "placing"))
    assert wrong(*right_meanwhile) == []
