"""The keeper that exo has after 0.3.70, as it decides: what it looks at, in which order, and what it forgets.

It is told nothing: once a second it looks at a state that its own events reach only when they have come back through
the router. So "ready" and "lost" are what a step saw, and a step ends at the first deployment that it has anything
to say about. It breaks promises in some corners: the time of the next attempt after a refusal outlives the placement
after it (unless the behaviour has that mended); the exponent of the backoff overflows after 1025 losses in a row, and
ends every later step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rig.lab.exo.context import Context
from rig.lab.exo.events import Deployment, Instance
from rig.lab.exo.keeper import Decision, Place, Refuse, crash_reason, place_for
from rig.lab.exo.placement import CannotPlace, placement_inputs
from rig.lab.exo.state import ClusterState


@dataclass(slots=True)
class _Attempt:
    instance_id: str | None = None
    placed_at: float = -math.inf
    ready: bool = False
    failures: int = 0
    retry_at: float = -math.inf
    refused_with: frozenset[object] | None = None

    def on_its_way(self, deployment: Deployment) -> bool:
        return self.instance_id is not None and deployment.instance_id != self.instance_id


class UpstreamKeeper:
    def __init__(self, ctx: Context, now: float) -> None:
        self._ctx = ctx
        self._started = now
        self._next_step = now + ctx.timers.keeper_step_s
        self._attempts: dict[str, _Attempt] = {}
        self._deleting: set[str] = set()  # until the state no longer shows them

    def next_deadline(self) -> float:
        return self._next_step

    def shift(self, gap: float) -> None:
        self._next_step += gap

    def step(self, now: float, state: ClusterState) -> list[Decision]:
        if now < self._next_step:
            return []
        self._next_step = now + self._ctx.timers.keeper_step_s
        self._attempts = {i: attempt for i, attempt in self._attempts.items() if i in state.deployments}
        self._deleting &= state.deployments.keys()
        if now - self._started < self._ctx.timers.keeper_grace_s:
            return []
        try:
            decision = self._first_to_say(now, state)
        except OverflowError as error:
            self._ctx.out.log(f"Error keeping deployments running: {error}")
            return []
        return [] if decision is None else [decision]

    def arrived(self, deployment: Deployment) -> None:
        """It looks for itself, here and below."""

    def ready(self, instance: Instance, state: ClusterState) -> None: ...

    def lost(self, now: float, instance: Instance, state: ClusterState) -> None: ...

    def deleting(self, deployment: Deployment) -> str | None:
        self._deleting.add(deployment.deployment_id)
        attempt = self._attempts.pop(deployment.deployment_id, None)
        return attempt.instance_id if attempt is not None and attempt.on_its_way(deployment) else None

    def _first_to_say(self, now: float, state: ClusterState) -> Decision | None:
        for deployment_id, deployment in sorted(state.deployments.items()):
            if deployment_id in self._deleting:
                continue
            attempt = self._attempts.setdefault(deployment_id, _Attempt())
            self._look(now, state, deployment, attempt)
            decision = self._decide(now, state, deployment, attempt)
            if decision is not None:
                return decision
        return None

    def _look(self, now: float, state: ClusterState, deployment: Deployment, attempt: _Attempt) -> None:
        """What has become of its own last placement, once that has arrived."""
        if attempt.instance_id is None or attempt.on_its_way(deployment):
            return
        instance = state.instances.get(attempt.instance_id)
        if instance is not None:
            if state.is_ready(instance):
                attempt.ready, attempt.failures = True, 0
            return
        if not attempt.ready:
            timers = self._ctx.timers
            attempt.failures += 1
            attempt.retry_at = now + min(timers.backoff_base_s * 2.0 ** (attempt.failures - 1), timers.backoff_max_s)
        attempt.instance_id, attempt.ready = None, False

    def _decide(self, now: float, state: ClusterState, deployment: Deployment, attempt: _Attempt) -> Decision | None:
        timers, inputs = self._ctx.timers, placement_inputs(state)
        waited_for = attempt.on_its_way(deployment) and now - attempt.placed_at < timers.in_flight_wait_s
        changed = attempt.refused_with is not None and attempt.refused_with != inputs
        if state.instances_of(deployment.model_id) or waited_for or (now < attempt.retry_at and not changed):
            return None
        try:
            placed = place_for(self._ctx, state, deployment)
        except (CannotPlace, TypeError) as error:
            attempt.retry_at, attempt.refused_with = now + timers.retry_s, inputs
            reason = error.reason if isinstance(error, CannotPlace) else crash_reason(error)
            return None if deployment.placement_error == reason else Refuse(deployment.deployment_id, reason)
        attempt.instance_id, attempt.placed_at, attempt.ready = self._ctx.new_id(), now, False
        attempt.refused_with = None
        if self._ctx.behaviour.keeper_forgets_retry:
            attempt.retry_at = -math.inf
        return Place(deployment, placed, attempt.instance_id)
