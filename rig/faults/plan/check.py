"""What types cannot say of a fault plan: values that do not fit each other, or not the nodes. Pure.

Each function returns problems (none: sound); `rig.faults.plan.read` adds file and line.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from rig.config.check import known_names, repeated
from rig.config.fields import duration_text
from rig.config.inventory import Inventory
from rig.config.problems import FieldPath, Problem
from rig.config.target_fields import fields_of
from rig.faults.plan.kind import AnyKind, KindPlan, PairPlan, RoleNode, RoleProcess
from rig.faults.plan.plan import Plan
from rig.faults.plan.registry import KINDS, kinds_of

_HOLD_MAX_S = 3600.0
COUNTS = {2: "two", 3: "three"}


def written_problems(written: BaseModel) -> list[Problem]:
    """Of a `PLAN_FILE`."""
    kinds: BaseModel = vars(written)["kinds"]
    return [] if kinds.model_fields_set else [Problem(("kinds",), "expected at least 1 kind, such as `freeze:`")]


def plan_problems(plan: Plan) -> list[Problem]:
    found = [problem for kind, kind_plan in plan.kinds.items() for problem in _kind(kind, kind_plan, plan)]
    if all(kind_plan.weight == 0 for kind_plan in plan.kinds.values()):
        found.append(Problem(("kinds",), "expected at least one kind with a weight above 0"))
    if plan.sustained >= plan.settle:
        limit = duration_text(plan.settle)
        found.append(Problem(("sustained",), f"expected less than `settle` ({limit}): no recovery would ever count"))
    return found


def plan_on_inventory(plan: Plan, inventory: Inventory) -> list[Problem]:
    """Problems of the fault plan, given the nodes."""
    names = inventory.names()
    found = [
        problem
        for kind, kind_plan in plan.kinds.items()
        if kind_plan.weight > 0
        for problem in _kind_on_inventory(kind, kind_plan, inventory)
    ]
    if plan.blast_radius > len(names):
        found.append(Problem(("blast_radius",), f"expected at most {len(names)}, the number of nodes"))
    return found


def inventory_for_plan(inventory: Inventory, plan: Plan) -> list[Problem]:
    """Problems of the inventory, given the faults: a node that may be killed must be startable again."""
    hit = {
        name: kind
        for kind, kind_plan in plan.kinds.items()
        if kind_plan.weight > 0 and any(part.restarts for part in _parts(KINDS[kind], kind_plan))
        for name in _may_hit(kind_plan, inventory)
    }
    return [
        Problem(
            ("nodes", name, node.process.section, "start"),
            f"missing: expected the command that starts {node.process.section}, since {hit[name]} may kill it here",
        )
        for name, node in inventory.nodes.items()
        if name in hit and node.process.start is None
    ]


def _parts(kind: AnyKind, settings: KindPlan) -> list[AnyKind]:
    """What strikes: of a pair its halves, else the kind itself."""
    return kinds_of(settings.halves) if isinstance(settings, PairPlan) else [kind]


def _kind(name: str, settings: KindPlan, plan: Plan) -> Iterator[Problem]:
    kind = KINDS[name]
    hold: FieldPath = ("kinds", name, "hold")
    low_s, high_s = settings.hold
    if kind.hold == "needed" and low_s <= 0:
        yield Problem(hold, f"expected how long a {name} lasts, such as 5s..45s, more than 0s")
    if kind.hold == "none" and high_s > 0:
        yield Problem(hold, f"expected none: a {name} is over at once")
    if high_s > _HOLD_MAX_S:
        yield Problem(hold, f"expected at most {duration_text(_HOLD_MAX_S)}")
    if isinstance(settings, PairPlan):
        yield from _pair(name, settings, plan)
    if settings.time_to_serve is not None and settings.time_to_serve > plan.settle:
        limit = duration_text(plan.settle)
        yield Problem(
            ("kinds", name, "time_to_serve"), f"expected at most `settle` ({limit}), after which nothing counts"
        )
    yield from repeated((("kinds", name, "nodes", index), node) for index, node in enumerate(settings.nodes or []))


def _pair(name: str, settings: PairPlan, plan: Plan) -> Iterator[Problem]:
    if plan.blast_radius < 2:
        yield Problem(("blast_radius",), f"expected at least 2: a {name} strikes two nodes at once")
    halves = [kind.name for kind in KINDS.values() if kind.half]
    for index, half in enumerate(settings.halves):
        if half not in halves:
            expected = f"expected a kind that can be a half, not {half!r}: {known_names(half, halves)}"
            yield Problem(("kinds", name, "halves", index), expected)


def _kind_on_inventory(kind: str, kind_plan: KindPlan, inventory: Inventory) -> Iterator[Problem]:
    names, known = inventory.names(), [*inventory.names(), *inventory.groups]
    sound = True
    for index, name in enumerate(kind_plan.nodes or []):
        where: FieldPath = ("kinds", kind, "nodes", index)
        if name not in known:
            sound = False
            yield Problem(where, f"expected a node or group of the inventory, not {name!r}: {known_names(name, known)}")
        elif name in names and not inventory.allows_faults(name):
            sound = False
            yield Problem(where, f"node {name!r} forbids faults (`faults: false` in inventory {inventory.name!r})")
    aim = KINDS[kind].aim
    if isinstance(aim, RoleNode | RoleProcess) and aim.role not in fields_of(inventory.target).roles:
        yield Problem(("kinds", kind), f"the target {inventory.target} has no {aim.role}")
    if sound and not _may_hit(kind_plan, inventory):
        yield Problem(("kinds", kind), f"no node that allows faults is left for it in inventory {inventory.name!r}")
    if len(names) < (needed := KINDS[kind].nodes_needed):
        count = COUNTS[needed]
        yield Problem(("kinds", kind), f"a {kind} takes {count} nodes, inventory {inventory.name!r} has {len(names)}")
    elif KINDS[kind].nodes_hit == 2 and len(_may_hit(kind_plan, inventory)) < 2:
        yield Problem(("kinds", kind), f"a {kind} takes two nodes that may be hit")


def _may_hit(kind_plan: KindPlan, inventory: Inventory) -> list[str]:
    return [name for name in inventory.resolve(kind_plan.nodes) if inventory.allows_faults(name)]
