"""Asking the target to change something, and journalling what it answered."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any, Final, Literal

from rig.clock import Pace
from rig.config.workload import Model
from rig.errors import TargetError
from rig.journal.records import ApiCall
from rig.journal.write import Journal
from rig.targets.target import Target
from rig.verify.known import Known
from rig.verify.scenario import Delete, DeleteInstance, Deploy, NodeCount, Place

APPEARS_S: Final = 30.0
"""At pace 1: how long a placement may be on its way."""
_LOOK_S: Final = 0.05
_NAMED_S: Final = 1.0
"""By then a later poll shows the deployment that names an instance that was placed for it."""
_BUSY_S: Final = 2.0

What = Literal["deploy", "delete-deployment", "place", "delete-instance"]


class NotAsked(Exception):
    """The step could not be taken: why."""


@dataclass
class Asking:
    """`entries` are API addresses by node, `models` those of the workload. What was named is put into the names."""

    target: Target
    entries: dict[str, str]
    models: list[Model]
    known: Known
    journal: Journal
    pace: Pace

    async def deploy(self, step: Deploy) -> int:
        """The status that was answered. Raises NotAsked without an answer."""
        model, node = self._model(step.model), self._node()
        asked_t = self.journal.now()
        try:
            posted = await self.target.deploying().deploy(self.entries[node], self._request(model, step.min_nodes))
        except TargetError as error:
            raise self._failed("deploy", node, asked_t, error, model=model.model) from error
        status = 200 if posted.created else 409
        names = self.known.names
        if posted.created and posted.id is not None:
            names.ids[step.as_] = posted.id
        names.deployments[step.as_] = model.model
        self._wrote("deploy", node, asked_t, status, model=model.model, subject=posted.id)
        return status

    async def place(self, step: Place) -> str | None:
        """The instance that appeared, None when none did within the time that a placement may take."""
        model, node = self._model(step.model), self._node()
        before, asked_t = set(self.known.view.instances()), self.journal.now()
        try:
            await self.target.listing().place(self.entries[node], self._request(model, step.min_nodes))
        except TargetError as error:
            raise self._failed("place", node, asked_t, error, model=model.model) from error
        limit_t = asked_t + self.pace.scale(APPEARS_S) + _BUSY_S
        seen_t: dict[str, float] = {}
        while self.journal.now() < limit_t:
            named = {told["instance"] for told in self.known.view.deployments().values()}
            for one in self.known.instances_of(model.model):
                seen_t.setdefault(one.id, self.journal.now())
            seen = [name for name, t in seen_t.items() if self.journal.now() - t > _NAMED_S]
            new = [name for name in seen if name not in before | named]
            if new:
                self.known.names.by_hand[step.as_] = new[0]
                self._wrote("place", node, asked_t, 200, model=model.model, subject=new[0])
                return new[0]
            await asyncio.sleep(_LOOK_S)
        late = f"no instance of it was listed for {self.journal.now() - asked_t:.1f} s"
        self._wrote("place", node, asked_t, 200, model=model.model, detail=late)
        return None

    async def delete(self, step: Delete) -> int:
        node, unknown = self._node(), step.of == "unknown"
        subject = str(uuid.uuid4()) if unknown else self.known.names.ids.get(step.of)
        if subject is None:
            raise NotAsked(f"the id of the deployment {step.of} was never told")
        asked_t = self.journal.now()
        try:
            found = await self.target.deploying().delete_deployment(self.entries[node], subject)
        except TargetError as error:
            raise self._failed("delete-deployment", node, asked_t, error, subject=subject) from error
        status = 200 if found else 404
        self._wrote("delete-deployment", node, asked_t, status, subject=subject, unknown=unknown)
        return status

    async def delete_instance(self, step: DeleteInstance) -> int:
        node, unknown = self._node(), step.of == "unknown"
        subject = str(uuid.uuid4()) if unknown else self.known.instance(step.of)
        if subject is None:
            raise NotAsked(f"{step.of} has no instance that is listed")
        asked_t = self.journal.now()
        try:
            found = await self.target.listing().delete_instance(self.entries[node], subject)
        except TargetError as error:
            raise self._failed("delete-instance", node, asked_t, error, subject=subject) from error
        status = 200 if found else 404
        self._wrote("delete-instance", node, asked_t, status, subject=subject, unknown=unknown)
        return status

    def _model(self, number: int) -> Model:
        if number > len(self.models):
            raise NotAsked(f"the workload has {len(self.models)} models, the scenario needs {number}")
        return self.models[number - 1]

    def _request(self, model: Model, min_nodes: int | NodeCount) -> dict[str, Any]:
        count = len(self.known.names.nodes)
        least = {"all": count, "too-many": count + 1}.get(min_nodes, 1) if isinstance(min_nodes, str) else min_nodes
        return model.request(least)

    def _node(self) -> str:
        best = self.known.view.best()
        if best is None:
            raise NotAsked("no node's API answers")
        return best

    def _wrote(
        self,
        what: What,
        node: str,
        asked_t: float,
        status: int | None,
        *,
        model: str | None = None,
        subject: str | None = None,
        unknown: bool = False,
        detail: str = "",
    ) -> None:
        self.journal.write(
            ApiCall(
                t=self.journal.now(),
                what=what,
                node=node,
                asked_t=asked_t,
                status=status,
                model=model,
                subject=subject,
                unknown=unknown,
                detail=detail,
            )
        )

    def _failed(
        self,
        what: What,
        node: str,
        asked_t: float,
        error: TargetError,
        *,
        model: str | None = None,
        subject: str | None = None,
    ) -> NotAsked:
        self._wrote(what, node, asked_t, None, model=model, subject=subject, detail=error.message)
        return NotAsked(f"{what}: {error.message}")
