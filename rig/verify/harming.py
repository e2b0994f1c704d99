"""Faults in a scenario: the same as a soak's, with their leases and their proof, aimed by what the scenario knows."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rig.clock import Pace
from rig.errors import NodeError, TargetError
from rig.faults.plan.kind import RoleNode
from rig.faults.plan.registry import KILLS_OF_WORKERS, KINDS
from rig.injection.aim import MASTER_LIMIT_S, AimContext
from rig.injection.fault import Fault, Identity, write_inventory
from rig.injection.schedule import Planned, by_hand
from rig.journal.records import FaultState, Look
from rig.journal.write import Journal
from rig.nodes.node import Nodes
from rig.targets.now import instances_of
from rig.targets.target import Target
from rig.targets.views import Instance
from rig.verify.known import Known
from rig.verify.scenario import Crash, Lose, Strike

DOWN_AT_MOST_S: Final = 600.0
"""A node that is kept down comes back after so long, whatever becomes of the controller."""
_KILLS: Final = 8
_LOOK_S: Final = 0.02
_STRUCK_S: Final = 60.0
_LOST_S: Final = 30.0


class NotHarmed(Exception):
    """The fault did not come about: why."""


@dataclass
class Down:
    """A fault that holds until it is told to heal."""

    stop: asyncio.Event
    task: asyncio.Task[FaultState]


@dataclass
class Harming:
    nodes: Nodes
    target: Target
    known: Known
    journal: Journal
    identity: Identity
    pace: Pace
    rehearsed: frozenset[str]
    emulated: bool
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _down: dict[str, Down] = field(default_factory=dict[str, Down])

    async def look(self, look: Look, fault: int | None = None) -> None:
        """What runs where, for the checks that compare."""
        seen = await asyncio.gather(*(conn.inspect("all") for conn in self.nodes.values()), return_exceptions=True)
        for one in seen:
            if isinstance(one, NodeError):
                continue
            if isinstance(one, BaseException):
                raise one
            write_inventory(self.journal, one, look, fault)

    async def crash(self, step: Crash) -> None:
        """Returns once it is struck. Raises NotHarmed."""
        await self._master_known()
        node = self._node(step.node, step.of)
        planned = self._planned("node-crash", node, DOWN_AT_MOST_S)
        await self.look("before", planned.index)
        stop = asyncio.Event()
        fault = self._fault(planned)
        task = asyncio.create_task(fault.run(stop))
        self._down[step.as_] = Down(stop, task)
        limit_t = self.journal.now() + _STRUCK_S
        while fault.struck_t is None and not task.done() and self.journal.now() < limit_t:
            await asyncio.wait({task}, timeout=_LOOK_S)
        if fault.struck_t is None:
            raise NotHarmed(f"the crash of {node} was not struck: {fault.state}")

    async def restart(self, name: str) -> None:
        """Returns when it runs again. Raises NotHarmed."""
        down = self._down.pop(name)
        down.stop.set()
        state = await down.task
        if state != "healed":
            raise NotHarmed(f"the node was not started again: {state}")

    async def strike(self, step: Strike) -> None:
        """Returns when it is healed. Raises NotHarmed."""
        await self._master_known()
        node = None if isinstance(KINDS[step.kind].aim, RoleNode) else self._node(step.node, step.of)
        model = self.known.names.deployments.get(step.of or "")
        planned = self._planned(step.kind, node, self.pace.scale(step.hold), model=model)
        await self._healed(planned)

    async def lose(self, step: Lose) -> str:
        """Kill a worker of the new instance, before it is ready, until the instance is gone. Raises NotHarmed."""
        model = self.known.names.deployments[step.of]
        chosen = await self._unready(model)
        for _ in range(_KILLS):
            listed = self.known.view.instances().get(chosen)
            if listed is None:
                return chosen
            if listed.ready:
                raise NotHarmed(f"{chosen} was ready before its worker could be killed")
            host = next(iter(sorted(listed.workers)), None)
            if host is not None:
                await self._fault(self._planned(KILLS_OF_WORKERS[0], host, 0.0, model=model)).run(asyncio.Event())
            await self._gone(chosen)
        raise NotHarmed(f"{chosen} is still there after {_KILLS} kills")

    async def heal(self) -> None:
        """Whatever is still down comes back."""
        for name in list(self._down):
            down = self._down.pop(name)
            down.stop.set()
            await asyncio.gather(down.task, return_exceptions=True)

    async def _master_known(self) -> None:
        """Bounded: after a start or a split several nodes claim, or none does, until they have elected one."""
        limit_t = self.journal.now() + MASTER_LIMIT_S
        while self.journal.now() < limit_t:
            if self.known.view.master is not None:
                return
            await asyncio.sleep(_LOOK_S)

    async def _unready(self, model: str) -> str:
        limit_t = self.journal.now() + self.pace.scale(_LOST_S) + 5.0
        while self.journal.now() < limit_t:
            for listed in self.known.instances_of(model):
                if not listed.ready:
                    return listed.id
            await asyncio.sleep(_LOOK_S)
        raise NotHarmed(f"no instance of {model} that is not ready yet was seen")

    async def _gone(self, instance: str) -> None:
        """For a while: it may have been lost by this kill, or go on with another worker."""
        limit_t = self.journal.now() + self.pace.scale(_LOST_S) / 3 + 1.0
        while self.journal.now() < limit_t:
            if instance not in self.known.view.instances():
                return
            await asyncio.sleep(_LOOK_S)

    async def _healed(self, planned: Planned) -> None:
        state = await self._fault(planned).run(asyncio.Event())
        if state != "healed":
            raise NotHarmed(f"the {planned.kind.name} ({planned.aim}) was {state}")

    def _fault(self, planned: Planned) -> Fault:
        context = AimContext(
            nodes=self.nodes, instances=self._instances, rehearsed=self.rehearsed, emulated=self.emulated
        )
        return Fault(planned, context, self.journal, self.identity)

    def _planned(
        self,
        kind: str,
        node: str | None,
        hold_s: float,
        *,
        model: str | None = None,
    ) -> Planned:
        everyone = self.known.names.nodes
        return by_hand(KINDS[kind], node=node, model=model, hold_s=hold_s, everyone=everyone, index=next(self._numbers))

    def _node(self, which: Literal["master", "host", "free"], of: str | None) -> str:
        view = self.known.view
        masters, master = view.masters, view.master
        identity = None if of is None else self.known.instance(of)
        listed = None if identity is None else view.instances().get(identity)
        hosts: set[str] = set() if listed is None else set(listed.workers)
        everyone = self.known.names.nodes
        match which:
            case "master":
                candidates = [] if master is None else [master]
            case "host":
                candidates = sorted((name for name in everyone if name in hosts), key=lambda name: name == master)
            case "free":
                candidates = [name for name in everyone if name not in hosts and name not in masters]
                candidates = candidates or [name for name in everyone if name not in hosts]
        if not candidates:
            raise NotHarmed(f"no node is {which}{'' if of is None else f' of {of}'}")
        return candidates[0]

    async def _instances(self) -> Sequence[Instance]:
        """Read anew, for aiming at a worker."""
        view = self.known.view
        if (best := view.best()) is None:
            raise TargetError("no node's API answers")
        return await instances_of(self.target, self.nodes[best].node.api, view.node_of)
