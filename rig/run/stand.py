"""What a run stands on, and all by which it touches the world.

Nothing here has a default: whoever puts a run together says each of them, so that no safeguard can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from rig.clock import Pace, RunClock
from rig.config.inventory import Inventory
from rig.injection.fault import Token
from rig.journal.write import Journal
from rig.nodes.node import Nodes
from rig.run.halting import Halt
from rig.targets.target import Target

Health: TypeAlias = Callable[[Journal], Coroutine[Any, Any, None]]
"""Journals the health of the rig itself until it is cancelled."""


@dataclass(frozen=True, kw_only=True)
class Stand:
    """`nodes` are connected, locked by `owner` and agreed to: `pids` were named and may be killed, and on those that
    are `rehearsed` a restart is known to work. `halt` ends the run, and hears when a lock is lost.
    """

    inventory: Inventory
    nodes: Nodes
    target: Target
    owner: str
    pids: dict[str, list[str]]
    rehearsed: frozenset[str]
    halt: Halt
    clock: Callable[[], RunClock]
    """The clock of a run that begins now."""
    token: Token
    health: Health

    @property
    def pace(self) -> Pace:
        """That of an emulated cluster, 1 for real nodes."""
        return Pace(1.0 if self.inventory.emulated is None else self.inventory.emulated.pace)

    @property
    def entries(self) -> dict[str, str]:
        """API by node."""
        return {name: node.api for name, node in self.inventory.nodes.items()}
