"""What a user is told about a wrong fault plan."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.faults.plan.read import load_plan

Row = tuple[str, str | bytes, list[str]]

PLAN = "name: p\nkinds:\n  freeze: {hold: 5s..45s}\n"


def row(name: str, text: str | bytes, *lines: str) -> Row:
    """A file that is wrong, and what is said about it: `:LINE: FIELD: MESSAGE` follows the name of the file."""
    return name, text, list(lines)


ROWS = [
    row("bare number", PLAN + "settle: 240\n", ":4: settle: expected a duration such as 45s, 2.5m or 250ms, not 240"),
    row("bare fraction", PLAN + "settle: 2.5\n", ":4: settle: expected a duration such as 45s"),
    row("negative duration", PLAN + "baseline: -5m\n", ":4: baseline: expected a duration such as 45s", "not '-5m'"),
    row("unit unknown", PLAN + "baseline: 5min\n", ":4: baseline: expected a duration", "not '5min'"),
    row("endless", PLAN + "baseline: 999d\n", ":4: baseline: expected a duration of at most 30d"),
    row("nothing to settle in", PLAN + "settle: 0s\n", ":4: settle: expected more than 0, not 0"),
    row("range backwards", PLAN + "gap: 150s..60s\n", ":4: gap: the range '150s..60s' ends before it begins"),
    row("range with one end", PLAN + "gap: 60s..\n", ":4: gap: expected a duration", "not ''"),
    row(
        "kind unknown",
        "name: p\nkinds:\n  node_crash: {}\n",
        ":3: kinds.node_crash: unknown key: ",
        "did you mean `node-crash`?",
    ),
    row("no kinds", "name: p\nkinds: {}\n", ":2: kinds: expected at least 1"),
    row(
        "no weight left",
        "name: p\nkinds:\n  freeze: {hold: 5s, weight: 0}\n",
        ":2: kinds: expected at least one kind with",
    ),
    row(
        "freeze of no length",
        "name: p\nkinds:\n  freeze: {}\n",
        ":3: kinds.freeze.hold: expected how long a freeze lasts",
    ),
    row(
        "runner-kill held",
        "name: p\nkinds:\n  runner-kill:\n    hold: 5s\n",
        ":4: kinds.runner-kill.hold: expected none",
    ),
    row(
        "hold of a day", "name: p\nkinds:\n  freeze:\n    hold: 1s..1d\n", ":4: kinds.freeze.hold: expected at most 1h"
    ),
    row("sustained beyond settle", PLAN + "sustained: 5m\n", ":4: sustained: expected less than `settle` (4m)"),
    row(
        "bound beyond settle",
        PLAN[:-2] + ", time_to_serve: 9m}\n",
        ":3: kinds.freeze.time_to_serve: expected at most `settle`",
    ),
    row(
        "clients cut by a freeze",
        PLAN[:-2] + ", clients_cut: true}\n",
        ":3: kinds.freeze.clients_cut: expected only under",
    ),
    row("seed below 0", PLAN + "seed: -1\n", ":4: seed: expected at least 0, not -1"),
]


@pytest.mark.parametrize("case", ROWS, ids=[case[0] for case in ROWS])
def test_the_problem_is_named_with_its_place(case: Row, refused: Callable[..., None]) -> None:
    _, text, lines = case
    refused(load_plan, text, lines)
