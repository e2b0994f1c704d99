"""What a run stands on: everything through which it affects or observes the outside world.

Nothing here has a default. Whoever puts a run together provides each part, so that no safeguard can be forgotten.
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
    """`nodes` are connected and locked by `owner`; the user has agreed that `pids` may be killed. On `rehearsed` nodes
    a restart is known to work. `halt` ends the run early, and is told when a lock is lost.
    """

    inventory: Inventory
    nodes: Nodes
    target: Target
    owner: str
    pids: dict[str, list[str]]
    rehearsed: frozenset[str]
    halt: Halt
    clock: Callable[[], RunClock]
    """Makes the clock of a run, which starts at 0 when it is made."""
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
