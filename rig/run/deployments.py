"""Deployments are posted at the start. One that vanishes is a finding, and posted again so that the run goes on."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from rig.config.workload import Model
from rig.errors import TargetError
from rig.journal.records import Finding, Redeployed
from rig.journal.write import Journal
from rig.observe.cluster_view import ClusterView
from rig.targets.target import Target

_LOOK_S: Final = 0.25


class DeploymentsPosted:
    """`entries` are API addresses by node, `vanished_s` is how long no view may list a deployment."""

    def __init__(
        self,
        target: Target,
        entries: dict[str, str],
        models: list[Model],
        journal: Journal,
        view: ClusterView,
        *,
        vanished_s: float,
    ) -> None:
        self._target = target
        self._entries = entries
        self._models = models
        self._journal = journal
        self._view = view
        self._vanished_s = vanished_s
        self._missing_since: dict[str, float] = {}
        self._helped: dict[str, int] = {}  # how often posted again since it was last listed

    async def post_all(self) -> None:
        """At the start. Raises TargetError when a model cannot be deployed through any node."""
        for model in self._models:
            if not await self._post(model, "setup"):
                raise TargetError(
                    f"{model.model} could not be deployed through any node",
                    remedy="does this exo have POST /deployments? `rig doctor` says what answers",
                )

    async def watch(self, stop: asyncio.Event) -> None:
        """Until `stop`: post again what every view that answers has been missing for too long."""
        while not stop.is_set():
            for model in self._models:
                if self._vanished(model.model):
                    await self._post_again(model)
            try:
                async with asyncio.timeout(_LOOK_S):
                    await stop.wait()
            except TimeoutError:
                continue

    async def _post_again(self, model: Model) -> None:
        """Said once for each time it vanishes; while it does not come back, each attempt goes through another node."""
        attempt = self._helped.get(model.model, 0)
        if attempt == 0:
            self._say_vanished(model.model)
        await self._post(model, "vanished", skip=attempt)
        self._helped[model.model] = attempt + 1
        self._missing_since.pop(model.model, None)

    def _vanished(self, model: str) -> bool:
        """Whether no view has listed it for so long; twice as long after each vain attempt, up to eight times."""
        now = self._journal.now()
        if self._listed_somewhere(model):
            self._missing_since.pop(model, None)
            self._helped.pop(model, None)
            return False
        patience_s = self._vanished_s * min(2 ** self._helped.get(model, 0), 8)
        return now - self._missing_since.setdefault(model, now) >= patience_s

    def _listed_somewhere(self, model: str) -> bool:
        """True as well while no view tells: not known is not gone."""
        told = False
        for node in self._entries:
            if not self._view.reachable(node) or self._view.facet(node, "deployments") is None:
                continue
            told = True
            if any(one["model"] in (model, None) for one in self._view.deployments(node).values()):
                return True  # one that does not say its model may be of this one
        return not told

    def _say_vanished(self, model: str) -> None:
        since_t = self._missing_since[model]
        self._journal.write(
            Finding(
                t=self._journal.now(),
                code="deployment-vanished",
                text=f"the deployment of {model} is in no view since t={since_t:.1f} s; it is posted again",
                data={"model": model, "since_t": since_t},
            )
        )

    async def _post(self, model: Model, reason: Literal["setup", "vanished"], *, skip: int = 0) -> bool:
        """Through the node whose view is best, then through the others; `skip` begins further on in that order."""
        best = self._view.best()
        detail = ""
        order = sorted(self._entries, key=lambda name: (name != best, self._view.reachable(name) is False))
        first = skip % len(order)
        for node in order[first:] + order[:first]:
            try:
                posted = await self._target.deploy(self._entries[node], model.request())
            except TargetError as error:
                detail = f"{node}: {error.message}"
                continue
            detail = f"through {node}: {'created' if posted.created else 'was there'} {posted.id or ''}".rstrip()
            self._write(model, reason, detail, ok=True)
            return True
        self._write(model, reason, detail, ok=False)
        return False

    def _write(self, model: Model, reason: Literal["setup", "vanished"], detail: str, *, ok: bool) -> None:
        self._journal.write(Redeployed(t=self._journal.now(), model=model.model, reason=reason, ok=ok, detail=detail))
