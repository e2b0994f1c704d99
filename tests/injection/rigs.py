"""A node with a fake exo on it, reached over a real SSH server, and a journal that can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rig.clock import RunClock
from rig.config.inventory import Node
from rig.faults.plan.registry import KINDS
from rig.injection.aim import AimContext
from rig.injection.fault import Fault, Identity
from rig.injection.schedule import Planned
from rig.journal.records import AnyRecord, FaultChanged, FaultState
from rig.nodes.open import ShellNodes
from rig.targets.views import Instance
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer

MODEL = "lab/tiny-a"


@dataclass
class MemoryJournal:
    clock: RunClock = field(default_factory=RunClock)
    records: list[AnyRecord] = field(default_factory=list[AnyRecord])
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> float:
        return self.clock.now()

    def write(self, record: AnyRecord) -> None:
        self.records.append(record)
        self.heard.set()

    def faults(self) -> list[FaultChanged]:
        return [record for record in self.records if isinstance(record, FaultChanged)]

    def states(self) -> list[FaultState]:
        return [record.state for record in self.faults()]

    async def reached(self, state: FaultState, *, within_s: float = 20.0) -> FaultChanged:
        """Waits until a fault enters a state."""
        async with asyncio.timeout(within_s):
            while True:
                for record in self.faults():
                    if record.state == state:
                        return record
                self.heard.clear()
                await self.heard.wait()


@dataclass
class Rig:
    server: SshServer
    exo: FakeExo
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    instances: list[Instance] = field(default_factory=list[Instance])

    def node(self, **changes: object) -> Node:
        return self.server.node(**{"process": self.exo.process(), "restart_rehearsed": True, **changes})

    @property
    def rig_dir(self) -> Path:
        return Path(self.node().rig_dir)

    def context(self, nodes: ShellNodes) -> AimContext:
        async def instances() -> Sequence[Instance]:
            return self.instances

        return AimContext(nodes=nodes, instances=instances, emulated=False)

    def fault(
        self,
        nodes: ShellNodes,
        kind: str,
        hold_s: float = 1.0,
        *,
        node: str | None = "n1",
        sides: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    ) -> Fault:
        """A fault by plan, aimed at `n1` or between the sides."""
        planned = Planned(
            index=3,
            kind=KINDS[kind],
            aim="node n1",
            hold_s=hold_s,
            gap_s=0.0,
            nodes=("n1",) if sides is None else tuple(nodes),
            node=node if sides is None else None,
            model=MODEL if kind == "runner-kill" else None,
            sides=sides,
        )
        return Fault(planned, self.context(nodes), self.journal, Identity(run="a run", owner="me@here"))

    def tree(self) -> list[psutil.Process]:
        return self.exo.tree()
