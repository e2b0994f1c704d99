"""The keeper: keeps an instance of every deployed model running. It lives in the master; its memory dies with it.

Promises: nothing in the first `keeper_grace_s` of a master; at most one placement a step, a step a second, in order
of deployment id; never a second instance of a model, whoever placed the first; one of its own lost before it was ready
waits 10, 20, 40, 60, 60 s, one lost after at once; what does not fit says why (when the reason changes) and is tried
again when nodes or links change and every 30 s; a placement on its way is waited for 30 s; a placement that crashes is
a refusal of that deployment, and nothing to the others.

`rig.lab.exo.upstream` has the keeper of exo, which comes close to that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from rig.lab.exo.context import Context
from rig.lab.exo.events import Deployment, Instance
from rig.lab.exo.placement import CannotPlace, Placed, place, placement_inputs
from rig.lab.exo.state import ClusterState


@dataclass(frozen=True, slots=True)
class Place:
    """Make an instance of this deployment there."""

    deployment: Deployment
    placed: Placed
    instance_id: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Say why it cannot be placed."""

    deployment_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an instance: what a keeper never does."""

    instance_id: str


Decision: TypeAlias = Place | Refuse | Remove


class Keeper(Protocol):
    """What a master needs of its keeper."""

    def next_deadline(self) -> float: ...
    def shift(self, gap: float) -> None: ...
    def step(self, now: float, state: ClusterState) -> list[Decision]:
        """What is to be done; empty when it is not time."""
        ...

    def arrived(self, deployment: Deployment) -> None: ...
    def ready(self, instance: Instance, state: ClusterState) -> None: ...
    def lost(self, now: float, instance: Instance, state: ClusterState) -> None: ...
    def deleting(self, deployment: Deployment) -> str | None:
        """A deployment is being deleted. The instance of it that is still on its way and has to go too."""
        ...


@dataclass(slots=True)
class _Memory:
    instance_id: str | None = None  # the last one placed
    failures: int = 0
    not_before: float = 0.0
    in_flight_until: float = 0.0
    refused_at: float | None = None
    refused_with: frozenset[object] | None = None


class PromisedKeeper:
    """Keeps every promise, but for the switches of the behaviour that break one."""

    def __init__(self, ctx: Context, now: float) -> None:
        self._ctx = ctx
        self._started = now
        self._next_step = now
        self._first = True
        self._moved_at = now
        self._memory: dict[str, _Memory] = {}

    def next_deadline(self) -> float:
        return self._next_step

    def shift(self, gap: float) -> None:
        """The process stood still: the step is not late, and nobody waited."""
        self._next_step += gap

    def step(self, now: float, state: ClusterState) -> list[Decision]:
        behaviour, timers = self._ctx.behaviour, self._ctx.timers
        if now < self._next_step:
            return []
        self._next_step = now + timers.keeper_step_s
        if behaviour.keeper_forgets_models:
            self._memory = {i: self._memory.get(i, _Memory()) for i in state.deployments}
        if behaviour.keeper_grace and now < self._started + timers.keeper_grace_s:
            return []
        everything = not behaviour.keeper_rate_limit or (behaviour.keeper_burst_after_grace and self._first)
        self._first = False
        decisions: list[Decision] = self._move(now, state)
        for deployment_id in sorted(state.deployments):
            decision = self._consider(now, state, state.deployments[deployment_id])
            if decision is not None:
                decisions.append(decision)
            if isinstance(decision, Place) and not everything:
                break
        return decisions

    def arrived(self, deployment: Deployment) -> None:
        """The deployment names its instance: nothing is on its way any more."""
        self._remembered(deployment).in_flight_until = 0.0

    def ready(self, instance: Instance, state: ClusterState) -> None:
        memory = self._memory_of(instance, state)
        if memory is not None and self._ctx.behaviour.keeper_backoff_reset:
            memory.failures = 0

    def lost(self, now: float, instance: Instance, state: ClusterState) -> None:
        """An instance is about to go; `state` still holds it."""
        behaviour, memory = self._ctx.behaviour, self._memory_of(instance, state)
        if memory is None:
            return
        if behaviour.keeper_forgets_retry:
            memory.refused_at = None
        if instance.instance_id in state.ready_once:
            if behaviour.keeper_backoff_reset:
                memory.failures = 0
            memory.not_before = (
                now if not behaviour.keeper_backoff_when_ready else now + self._ctx.timers.backoff_base_s
            )
            if not behaviour.keeper_replaces:
                memory.not_before = math.inf
        elif behaviour.keeper_backoff and memory.instance_id == instance.instance_id:
            memory.failures += 1
            memory.not_before = now + self._backoff(memory.failures)

    def deleting(self, deployment: Deployment) -> str | None:
        """What is still on its way does not land when its deployment is gone."""
        return None

    def _backoff(self, failures: int) -> float:
        timers = self._ctx.timers
        if not self._ctx.behaviour.keeper_backoff_grows:
            return timers.backoff_base_s
        return min(timers.backoff_base_s * 2.0 ** min(failures - 1, 16), timers.backoff_max_s)

    def _remembered(self, deployment: Deployment) -> _Memory:
        key = deployment.deployment_id if self._ctx.behaviour.keeper_forgets_models else deployment.model_id
        return self._memory.setdefault(key, _Memory())

    def _memory_of(self, instance: Instance, state: ClusterState) -> _Memory | None:
        """Of the deployment that this keeper (or the one before) placed the instance for."""
        return next(
            (self._remembered(d) for d in state.deployments.values() if d.instance_id == instance.instance_id), None
        )

    def _move(self, now: float, state: ClusterState) -> list[Decision]:
        """Once in a while an instance that serves is taken away, to be placed somewhere else."""
        if not self._ctx.behaviour.keeper_moves or now < self._moved_at + 2 * self._ctx.timers.in_flight_wait_s:
            return []
        self._moved_at = now
        served = sorted(name for name in state.instances if name in state.ready_once)
        return [Remove(served[0])] if served else []

    def _consider(self, now: float, state: ClusterState, deployment: Deployment) -> Decision | None:
        behaviour, timers = self._ctx.behaviour, self._ctx.timers
        memory = self._remembered(deployment)
        present = state.instances_of(deployment.model_id)
        if any(behaviour.keeper_adopts or not i.by_hand for i in present):
            return None
        if now < memory.not_before or (behaviour.keeper_waits_in_flight and now < memory.in_flight_until):
            return None
        inputs = placement_inputs(state)
        if memory.refused_at is not None:
            changed = behaviour.keeper_retries_on_change and memory.refused_with not in (None, inputs)
            due = behaviour.keeper_retries_by_time and now - memory.refused_at >= timers.retry_s
            if not (changed or due):
                return None
        placed = self._try(state, deployment)
        if isinstance(placed, str):
            memory.refused_at, memory.refused_with = now, inputs
            said = deployment.placement_error == placed and behaviour.keeper_reason_once
            return None if said or not behaviour.keeper_says_why else Refuse(deployment.deployment_id, placed)
        if placed is None:
            return None
        memory.in_flight_until = now + timers.in_flight_wait_s
        memory.refused_with = None
        if behaviour.keeper_forgets_retry:
            memory.refused_at = None
        memory.instance_id = self._ctx.new_id()
        return Place(deployment, placed, memory.instance_id)

    def _try(self, state: ClusterState, deployment: Deployment) -> Placed | str | None:
        """Where it goes, or why it does not; None: the keeper has ended over it."""
        try:
            return place_for(self._ctx, state, deployment)
        except CannotPlace as refusal:
            return refusal.reason
        except TypeError as error:
            if self._ctx.behaviour.keeper_contains_crashes:
                return crash_reason(error)
            self._ctx.out.log(f"Error keeping deployments running: {error}")
            self._next_step = math.inf
            return None


def place_for(ctx: Context, state: ClusterState, deployment: Deployment) -> Placed:
    """Raises CannotPlace, and whatever placement crashes with."""
    return place(
        state,
        ctx.models[deployment.model_id],
        sharding=deployment.sharding,
        instance_meta=deployment.instance_meta,
        min_nodes=deployment.min_nodes,
    )


def crash_reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
