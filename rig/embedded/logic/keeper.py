"""The keeper: keeps an instance of every deployed model running. It lives in the master; its memory dies with it.

Promises: nothing in the first `keeper_grace_s` of a master; at most one placement a step, a step a second, in order
of deployment id; never a second instance of a model, whoever placed the first; one lost before it was ready waits 10,
20, 40, 60, 60 s, one lost after at once; what does not fit says why (when the reason changes) and is tried again when
nodes or links change and every 30 s; a placement on its way is waited for 30 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from rig.embedded.logic.context import Context
from rig.embedded.logic.events import Deployment, Instance
from rig.embedded.logic.placement import CannotPlace, place, placement_inputs
from rig.embedded.logic.state import ClusterState


@dataclass(frozen=True, slots=True)
class Place:
    """Make an instance of this deployment on these nodes."""

    deployment: Deployment
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Say why it cannot be placed."""

    deployment_id: str
    reason: str


Decision: TypeAlias = Place | Refuse


@dataclass(slots=True)
class _Memory:
    failures: int = 0
    not_before: float = 0.0
    in_flight_until: float = 0.0
    tried_at: float | None = None
    tried_with: frozenset[object] = frozenset()


class Keeper:
    def __init__(self, ctx: Context, now: float) -> None:
        self._ctx = ctx
        self._started = now
        self._next_step = now
        self._memory: dict[str, _Memory] = {}

    def next_deadline(self) -> float:
        return self._next_step

    def shift(self, gap: float) -> None:
        """The process stood still: the step is not late, and nobody waited."""
        self._next_step += gap

    def step(self, now: float, state: ClusterState) -> list[Decision]:
        """At most one decision to place; empty when it is not time."""
        behaviour, timers = self._ctx.behaviour, self._ctx.timers
        if now < self._next_step:
            return []
        self._next_step = now + timers.keeper_step_s
        self._memory = {i: self._memory.get(i, _Memory()) for i in state.deployments}
        if behaviour.keeper_grace and now < self._started + timers.keeper_grace_s:
            return []
        decisions: list[Decision] = []
        for deployment_id in sorted(state.deployments):
            decision = self._consider(now, state, state.deployments[deployment_id])
            if decision is not None:
                decisions.append(decision)
            if isinstance(decision, Place) and behaviour.keeper_rate_limit:
                break
        return decisions

    def arrived(self, deployment_id: str) -> None:
        """The deployment names its instance: nothing is on its way any more."""
        if deployment_id in self._memory:
            self._memory[deployment_id].in_flight_until = 0.0

    def ready(self, instance: Instance, state: ClusterState) -> None:
        memory = self._memory_of(instance, state)
        if memory is not None and self._ctx.behaviour.keeper_backoff_reset:
            memory.failures = 0

    def lost(self, now: float, instance: Instance, state: ClusterState) -> None:
        """An instance is about to go; `state` still holds it."""
        behaviour, memory = self._ctx.behaviour, self._memory_of(instance, state)
        if memory is None:
            return
        memory.tried_at = None
        if instance.instance_id in state.ready_once:
            if behaviour.keeper_backoff_reset:
                memory.failures = 0
            memory.not_before = (
                now if not behaviour.keeper_backoff_when_ready else now + self._ctx.timers.backoff_base_s
            )
            if not behaviour.keeper_replaces:
                memory.not_before = math.inf
        elif behaviour.keeper_backoff:
            memory.failures += 1
            memory.not_before = now + self._backoff(memory.failures)

    def _backoff(self, failures: int) -> float:
        timers = self._ctx.timers
        if not self._ctx.behaviour.keeper_backoff_grows:
            return timers.backoff_base_s
        return min(timers.backoff_base_s * 2.0 ** min(failures - 1, 16), timers.backoff_max_s)

    def _memory_of(self, instance: Instance, state: ClusterState) -> _Memory | None:
        """Of the deployment that this keeper (or the one before) placed the instance for."""
        return next(
            (
                self._memory.setdefault(d.deployment_id, _Memory())
                for d in state.deployments.values()
                if d.instance_id == instance.instance_id
            ),
            None,
        )

    def _consider(self, now: float, state: ClusterState, deployment: Deployment) -> Decision | None:
        behaviour, timers = self._ctx.behaviour, self._ctx.timers
        memory = self._memory[deployment.deployment_id]
        present = state.instances_of(deployment.model_id)
        if any(behaviour.keeper_adopts or not i.by_hand for i in present):
            return None
        if now < memory.not_before or (behaviour.keeper_waits_in_flight and now < memory.in_flight_until):
            return None
        inputs = placement_inputs(state)
        if memory.tried_at is not None:
            changed = behaviour.keeper_retries_on_change and inputs != memory.tried_with
            due = behaviour.keeper_retries_by_time and now - memory.tried_at >= timers.retry_s
            if not (changed or due):
                return None
        memory.tried_at, memory.tried_with = now, inputs
        try:
            nodes = place(
                state,
                self._ctx.models[deployment.model_id],
                sharding=deployment.sharding,
                instance_meta=deployment.instance_meta,
                min_nodes=deployment.min_nodes,
            )
        except CannotPlace as refusal:
            said = deployment.placement_error == refusal.reason and behaviour.keeper_reason_once
            return None if said or not behaviour.keeper_says_why else Refuse(deployment.deployment_id, refusal.reason)
        memory.in_flight_until = now + timers.in_flight_wait_s
        memory.tried_at = None
        return Place(deployment, nodes)
