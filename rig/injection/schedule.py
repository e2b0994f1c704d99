"""The schedule: which faults come in which order, with which holds and gaps. Pure.

It is a function of fault plan, inventory, models and seed alone: the same on every machine, Python version and hash
seed (of `random.Random` only `random()` is used, the one method whose sequence is promised to stay). Roles are left
open: which node is master, and which process serves a model, is known only at the strike (`rig.injection.aim`).

Divide the plan by the pace first (`rig.config.paced`): the sequence stays the same, only its seconds shrink.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from rig.config.inventory import Inventory
from rig.faults.plan.cutting import PartitionPlan
from rig.faults.plan.kind import AnyKind, EveryNode, KindPlan, Pair, PairPlan, RoleNode, RoleProcess, SingleNode, Split
from rig.faults.plan.plan import Plan
from rig.faults.plan.registry import KINDS

ACT_S = 1.5  # lease, strike, its proof and the proof of the heal: real work, not divided by the pace
TAIL_S = 60.0  # at pace 1, at the end of a run: no fault any more, so that the last ones are seen to recover
_ROUND_MAX = 60  # faults in one weighted round

_T = TypeVar("_T")
_PLAIN = KindPlan()


@dataclass(frozen=True, kw_only=True)
class Half:
    """One of the faults that strike at the same moment."""

    kind: AnyKind
    node: str


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One fault of the schedule. `gap_s` passes between the end of the previous recovery and this strike.

    `node`, `model` and `sides` say what `aim` says in words, for whichever of them the kind has; `nodes` are the nodes
    it may hit once its role is resolved (allowed by inventory and plan).
    """

    index: int  # from 0
    kind: AnyKind
    aim: str  # "master", "node X", "a worker of MODEL", "A | B, C"
    hold_s: float
    gap_s: float
    nodes: tuple[str, ...] = ()
    node: str | None = None
    model: str | None = None
    sides: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    clients_cut: bool = False
    direction: Literal["both", "in", "out"] = "both"  # one-way-partition: what the first side does not hear, or send
    halves: tuple[Half, ...] = ()  # double: what strikes which node
    settings: KindPlan = _PLAIN  # amounts and marks of kinds that have one
    more_follow: bool = False  # the next one belongs to it: it is struck at once, without waiting for the recovery


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A planned fault with the time, in seconds since the start of the run, at which its strike is expected."""

    planned: Planned
    strike_s: float


def draw(plan: Plan, inventory: Inventory, models: Sequence[str], seed: int) -> Iterator[Planned]:
    """The schedule, without end. `plan` with its durations as they are to pass; `models` as in the workload.

    Raises ValueError where a kind of the plan has nothing that it may hit (`rig.config.check` finds that beforehand).
    """
    index = 0
    for planned in _drawn(plan, inventory, models, random.Random(seed)):
        for one in _each(planned):
            yield replace(one, index=index)
            index += 1


def _each(planned: Planned) -> Iterator[Planned]:
    """A rolling restart is a fault a node, in the order of their names, each with its own evidence and window."""
    if not isinstance(planned.kind.aim, EveryNode):
        yield planned
        return
    for place, node in enumerate(planned.nodes):
        gap_s = planned.gap_s if place == 0 else 0.0
        follows = place + 1 < len(planned.nodes)
        yield replace(planned, aim=f"node {node}", node=node, gap_s=gap_s, more_follow=follows)


def _drawn(plan: Plan, inventory: Inventory, models: Sequence[str], rng: random.Random) -> Iterator[Planned]:
    targets = {name: _allowed(plan.kinds[name], inventory) for name in KINDS if name in plan.kinds}
    every_model = sorted(set(models))
    for name in _kinds(plan, rng):
        kind_plan, allowed = plan.kinds[name], targets[name]
        if not allowed:
            raise ValueError(f"{name}: no node may be hit")
        gap_s, hold_s, pick = _between(plan.gap, rng), _between(kind_plan.hold, rng), rng.random()
        yield _aimed(
            Planned(
                index=0,
                kind=KINDS[name],
                aim="",
                hold_s=round(hold_s, 3),
                gap_s=round(gap_s, 3),
                nodes=tuple(allowed),
                clients_cut=isinstance(kind_plan, PartitionPlan) and kind_plan.clients_cut,
                settings=kind_plan,
            ),
            everyone=sorted(inventory.names()),
            models=every_model,
            pick=pick,
            rng=rng,
        )


def strike_until_s(plan: Plan, duration_s: float, pace: float = 1.0) -> float:
    """Seconds since the start of a run's load after which no hold may last, so that the last recoveries are seen."""
    return duration_s - min(TAIL_S / pace, plan.settle)


def expected(sequence: Iterable[Planned], plan: Plan, *, duration_s: float, pace: float = 1.0) -> list[Expected]:
    """The faults of `sequence` that a run of `duration_s` is expected to strike, each with its time.

    After the baseline each fault takes gap + hold + `ACT_S` + the usual recovery of its kind + `sustained`; the last is
    the one whose hold still ends before `strike_until_s`. `plan` and `sequence` are already divided by `pace`, which
    here divides usual recoveries and `TAIL_S` only. Bounded by the duration: each fault takes time.
    """
    until_s = strike_until_s(plan, duration_s, pace)
    now_s = plan.baseline
    found: list[Expected] = []
    for planned in sequence:
        strike_s = now_s + planned.gap_s
        if strike_s + planned.hold_s > until_s:
            break
        found.append(Expected(planned=planned, strike_s=round(strike_s, 3)))
        recovery_s = 0.0 if planned.more_follow else planned.kind.recovery_s / pace + plan.sustained
        now_s = strike_s + planned.hold_s + ACT_S + recovery_s
    return found


def expected_count(sequence: Iterable[Planned], plan: Plan, *, duration_s: float, pace: float = 1.0) -> int:
    """How many faults a run of `duration_s` is expected to strike; see `expected`."""
    return len(expected(sequence, plan, duration_s=duration_s, pace=pace))


def split_text(left: Sequence[str], right: Sequence[str]) -> str:
    """`A | B, C`: how the two sides of a partition are written."""
    return f"{', '.join(left)} | {', '.join(right)}"


def _kinds(plan: Plan, rng: random.Random) -> Iterator[str]:
    """The kinds in order: by weighted rounds, each shuffled, or each drawn by itself."""
    weights: dict[str, float] = {
        kind: plan.kinds[kind].weight for kind in KINDS if kind in plan.kinds and plan.kinds[kind].weight > 0
    }
    if not weights:
        raise ValueError("no kind has a weight above 0")
    if plan.shuffle:
        round_of_kinds = _round(weights)
        while True:
            yield from _shuffled(round_of_kinds, rng)
    total = sum(weights.values())
    while True:
        mark = rng.random() * total
        for kind, weight in weights.items():
            mark -= weight
            if mark < 0:
                yield kind
                break
        else:  # rounding at the very end of the range
            yield next(reversed(weights))


def _round(weights: dict[str, float]) -> list[str]:
    """Each kind as often as its weight says beside the smallest, at least once: 1, 1, 2 → a round of four."""
    smallest = min(weights.values())
    times: dict[str, float] = {kind: weight / smallest for kind, weight in weights.items()}
    shrink = min(1.0, _ROUND_MAX / sum(times.values()))
    return [kind for kind, count in times.items() for _ in range(max(1, math.floor(count * shrink + 0.5)))]


def _allowed(kind_plan: KindPlan, inventory: Inventory) -> list[str]:
    """The nodes that a kind may hit: named by the plan (names or groups; none: all) and allowed by the inventory."""
    return sorted(name for name in inventory.resolve(kind_plan.nodes) if inventory.allows_faults(name))


def _aimed(planned: Planned, *, everyone: list[str], models: list[str], pick: float, rng: random.Random) -> Planned:
    """`planned` with its aim; `pick` in [0, 1) chooses, `rng` serves for what one number cannot."""
    match planned.kind.aim:
        case RoleNode(role):
            return replace(planned, aim=role)
        case RoleProcess(role):
            if not models:
                raise ValueError(f"{planned.kind.name}: no model is deployed")
            model = models[_index(pick, len(models))]
            return replace(planned, aim=process_text(role, model), model=model)
        case Split() as split:
            return _cut(planned, split, everyone, pick, rng)
        case Pair():
            assert isinstance(planned.settings, PairPlan)
            chosen = _shuffled(planned.nodes, rng)[:2]
            halves = [KINDS[half] for half in planned.settings.halves]
            return pair(planned, zip(halves, chosen, strict=True))
        case SingleNode() | EveryNode():
            node = planned.nodes[_index(pick, len(planned.nodes))]
            return replace(planned, aim=f"node {node}", node=node)


def process_text(role: str, model: str | None) -> str:
    return f"a {role} of {model}"


def by_hand(
    kind: AnyKind,
    *,
    node: str | None,
    model: str | None,
    hold_s: float,
    everyone: Sequence[str],
    index: int,
) -> Planned:
    """One fault that no schedule has drawn: of `node` (for a split: from all others, or for a bridge from the first).

    The kind must not be a `Pair`, which takes two nodes. A role is resolved at the strike among `everyone`.
    """
    sides = None
    match kind.aim:
        case RoleNode(role):
            aim = role
        case RoleProcess(role):
            aim = process_text(role, model)
        case Split(bridge) if node is not None:
            rest = tuple(name for name in everyone if name != node)
            sides = ((node,), rest[:1] if bridge else rest)
            aim = split_text(*sides)
        case _:
            aim = f"node {node}"
    return Planned(
        index=index,
        kind=kind,
        aim=aim,
        hold_s=0.0 if kind.hold == "none" else hold_s,
        gap_s=0.0,
        nodes=tuple(everyone) if node is None else (node,),
        node=node,
        model=model,
        sides=sides,
        direction="in" if isinstance(kind.aim, Split) and kind.aim.one_way else "both",
        settings=kind.settings(),
    )


def pair(planned: Planned, halves: Iterable[tuple[AnyKind, str]]) -> Planned:
    """`planned` with what strikes which node at the same moment."""
    both = tuple(Half(kind=kind, node=node) for kind, node in halves)
    return replace(planned, aim=" + ".join(f"{half.kind.name} of {half.node}" for half in both), halves=both)


def _cut(planned: Planned, split: Split, everyone: list[str], pick: float, rng: random.Random) -> Planned:
    """A partition with its sides: of all nodes, heard one way only, or between two nodes that others still reach."""
    if split.bridge:
        first, second = _shuffled(planned.nodes, rng)[:2]
        between = ", ".join(name for name in everyone if name not in (first, second))
        return replace(planned, aim=f"{first} | {second} (not {between})", sides=((first,), (second,)))
    sides = _split(planned.nodes, everyone, pick, rng)
    if not split.one_way:
        return replace(planned, aim=split_text(*sides), sides=sides)
    direction = "in" if rng.random() < 0.5 else "out"
    return replace(planned, aim=f"{split_text(*sides)} ({direction} only)", sides=sides, direction=direction)


def _split(
    allowed: Sequence[str], everyone: Sequence[str], pick: float, rng: random.Random
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Two sides that make up the cluster: half of the time one node against the rest, else any split.

    The first side, on which the packet filters are set, holds allowed nodes only; where both could, it is the smaller.
    """
    most = min(len(allowed), len(everyone) - 1)
    if most < 1:
        raise ValueError("partition: it takes two nodes, one of which may be hit")
    size = 1 if pick < 0.5 else 1 + _index(2 * pick - 1, most)
    chosen = set(_shuffled(allowed, rng)[:size])
    left, right = (tuple(n for n in everyone if (n in chosen) is inside) for inside in (True, False))
    if len(right) < len(left) and set(right) <= set(allowed):
        return right, left
    return left, right


def _between(span: tuple[float, float], rng: random.Random) -> float:
    return span[0] + rng.random() * (span[1] - span[0])


def _index(fraction: float, count: int) -> int:
    """0 … count - 1 from a fraction in [0, 1)."""
    return min(int(fraction * count), count - 1)


def _shuffled(items: Sequence[_T], rng: random.Random) -> list[_T]:
    """Fisher and Yates, by `rng.random()` alone (`rng.shuffle` may change with Python)."""
    found = list(items)
    for last in range(len(found) - 1, 0, -1):
        other = _index(rng.random(), last + 1)
        found[last], found[other] = found[other], found[last]
    return found
