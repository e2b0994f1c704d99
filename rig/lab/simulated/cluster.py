"""A simulated cluster as the rig meets it: its inventory, its nodes over SSH, its API, and the loop it lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from rig.config.inventory import Embedded, Emulated, Inventory, Ssh
from rig.lab.exo.behaviour import named, timers_for
from rig.lab.exo.defects import Changes, changes_of
from rig.lab.exo.simulation import Simulation
from rig.lab.simulated.api import FIRST_PORT, VirtualExo, port_of
from rig.lab.simulated.chat import ChatConnection
from rig.lab.simulated.loop import VirtualLoop, run_virtual
from rig.lab.simulated.node import VirtualNode
from rig.targets.exo.fields import ExoProcess
from rig.targets.exo.inventory import ExoInventory, ExoNode
from rig.targets.exo.target import exo_target
from rig.targets.target import Target

T = TypeVar("T")

SETTLED_S: Final = 30.0
"""At pace 1: a cluster has its master and its links when the rig meets it."""
TOKEN_S: Final = 0.1
"""Between two tokens, at any pace: the fewer events, the quicker the simulation."""


@dataclass(frozen=True)
class VirtualCluster:
    """`spec` as in an inventory; `folder` is where its run's results go, for the stamp on the reports.

    `changes` come on top of behaviour and defects.
    """

    spec: Embedded
    folder: Path
    token_s: float = TOKEN_S
    changes: Changes = field(default_factory=Changes)

    @cached_property
    def names(self) -> list[str]:
        return [f"node-{number}" for number in range(1, self.spec.nodes + 1)]

    @cached_property
    def sim(self) -> Simulation:
        changes = changes_of(self.spec.defects, self.spec.seed)
        behaviour = replace(
            named(self.spec.behaviour, self.spec.seed if self.spec.habits else None),
            **{**changes.behaviour, **self.changes.behaviour},
        )
        timers = timers_for(
            behaviour,
            pace=self.spec.pace,
            load_s=self.spec.load_time,
            changes={**changes.timers, **self.changes.timers},
        )
        sim = Simulation(
            self.names, behaviour=behaviour, timers=replace(timers, token_s=self.token_s), seed=self.spec.seed
        )
        sim.run_until(SETTLED_S / self.spec.pace)
        return sim

    @cached_property
    def inventory(self) -> Inventory:
        nodes = {
            name: ExoNode(
                ssh=Ssh(host="127.0.0.1", user="rig"),
                api=f"http://127.0.0.1:{port_of(index)}",
                addresses=[f"10.77.0.{index + 1}", f"fe80::77:{index + 1}%eth0"],
                process=ExoProcess(home=f"/simulated/{name}/exo", start="start", stop="stop"),
                rig_dir=f"/simulated/{name}/rig",
                sudo=False,
                restart_rehearsed=True,
            )
            for index, name in enumerate(self.names)
        }
        spec = self.spec
        emulated = Emulated(
            behaviour=spec.behaviour, defects=spec.defects, pace=spec.pace, folder=str(self.folder), simulated=True
        )
        return ExoInventory(name="simulated", nodes=nodes, emulated=emulated)

    def connections(self) -> dict[str, VirtualNode]:
        """To be made inside the loop."""
        nodes = self.inventory.nodes
        owners = {address: name for name, node in nodes.items() for address in node.addresses}
        return {name: VirtualNode(name, node, self.sim, owners) for name, node in nodes.items()}

    def target(self) -> Target:
        return exo_target(VirtualExo(self.sim))

    def run(self, main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], *, limit_s: float) -> T:
        """Run a coroutine of the rig against this cluster, for at most `limit_s` real seconds. Raises ClusterError."""
        return run_virtual(self.sim, self._dial, main, limit_s)

    def _dial(self, make: Callable[[], asyncio.Protocol], port: int) -> asyncio.Transport:
        name = self.names[port - FIRST_PORT]
        if self.sim.logic(name) is None:
            raise ConnectionRefusedError(f"connect to {name} refused")
        return ChatConnection(self.sim, name, make())
