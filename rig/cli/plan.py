"""`rig plan`: the faults that a run would strike, in order, without touching anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rig.cli.streams import console_on
from rig.clock import Pace
from rig.config.fields import duration_text
from rig.config.inventory import Inventory
from rig.config.workload import Workload
from rig.errors import EXIT_PASS
from rig.faults.plan.paced import paced_plan
from rig.faults.plan.plan import Plan
from rig.faults.plan.read import load_all
from rig.injection.schedule import Expected, draw, expected

if TYPE_CHECKING:
    from rich.table import Table

_DEFAULT_S = 3 * 3600.0
_ROWS_MAX = 500


def plan(
    *,
    hours: float | None = None,
    minutes: float | None = None,
    inventory: str | None = None,
    workload: str | None = None,
    faults: str | None = None,
    seed: int | None = None,
    as_json: bool = False,
) -> int:
    """Prints the sequence up to the count that a run of this length is expected to reach.

    Without an inventory it plans for the three nodes of the embedded cluster, at pace 1. Raises ConfigError.
    """
    duration_s = hours * 3600 if hours is not None else minutes * 60 if minutes is not None else _DEFAULT_S
    nodes, work, fault_plan = load_all(inventory or "embedded", workload, faults)
    pace = Pace(1.0 if inventory is None else pace_of(nodes))
    fault_plan = paced_plan(fault_plan, pace)
    used_seed = fault_plan.seed if seed is None else seed
    sequence = draw(fault_plan, nodes, [model.model for model in work.models], used_seed)
    found = expected(sequence, fault_plan, duration_s=duration_s, pace=pace.factor)
    if as_json:
        print(json.dumps(_as_json(found), ensure_ascii=False))
    else:
        _show(
            found, fault_plan, nodes, length_s=duration_s, seed=used_seed, pace=pace.factor, assumed=inventory is None
        )
    return EXIT_PASS


def too_short(length_s: float, nodes: Inventory, work: Workload, fault_plan: Plan, seed: int | None) -> str:
    """Why a soak of this length cannot strike any fault of its plan, and what comes of it; empty where it can."""
    pace = Pace(pace_of(nodes))
    paced = paced_plan(fault_plan, pace)
    sequence = draw(paced, nodes, [model.model for model in work.models], paced.seed if seed is None else seed)
    if expected(sequence, paced, duration_s=length_s, pace=pace.factor):
        return ""
    return (
        f"{duration_text(length_s)} are too short for fault plan {fault_plan.name}: {duration_text(paced.baseline)} go "
        "without faults, and the end sees recoveries only. No fault will be struck, so the verdict cannot be a pass"
    )


def pace_of(inventory: Inventory) -> float:
    """By which every duration is divided."""
    if inventory.embedded is not None:
        return inventory.embedded.pace
    return 1.0 if inventory.emulated is None else inventory.emulated.pace


def _as_json(found: list[Expected]) -> dict[str, object]:
    return {
        "expected": len(found),
        "faults": [
            {
                "kind": item.planned.kind.name,
                "aim": item.planned.aim,
                "hold_s": item.planned.hold_s,
                "gap_s": item.planned.gap_s,
            }
            for item in found
        ],
    }


def _show(
    found: list[Expected],
    fault_plan: Plan,
    nodes: Inventory,
    *,
    length_s: float,
    seed: int,
    pace: float,
    assumed: bool,
) -> None:
    console = console_on()

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    say(f"Fault plan {fault_plan.name}, seed {seed}, {duration_text(length_s)} on {', '.join(nodes.names())}")
    if assumed:
        say("No inventory given: planned for the three nodes of the embedded cluster, at pace 1.")
    elif pace != 1:
        say(f"Emulated nodes at pace {pace:g}: durations are given as they will pass.")
    baseline = duration_text(fault_plan.baseline)
    if not found:
        say(f"No fault fits: {baseline} go without any, and the last minute sees recoveries only.")
        return
    console.print(_table(found))
    if len(found) > _ROWS_MAX:
        say(f"… and {len(found) - _ROWS_MAX} more; --json lists all.")
    say(
        f"Expected: {len(found)} faults, after {baseline} without any. Times are estimates: a gap begins "
        "when the recovery from the fault before has ended."
    )


def _table(found: list[Expected]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("#", "about at", "gap", "hold"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("aim", overflow="fold")
    for item in found[:_ROWS_MAX]:
        planned = item.planned
        hold = f"{planned.hold_s:.1f}s" if planned.hold_s else "-"
        table.add_row(
            str(planned.index), _clock(item.strike_s), f"{planned.gap_s:.1f}s", hold, planned.kind.name, planned.aim
        )
    return table


def _clock(seconds: float) -> str:
    minutes, left_s = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{left_s:02d}"
