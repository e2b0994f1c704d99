"""What one run is made of, with every duration already divided by the pace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.clock import Pace
from rig.config.inventory import Inventory
from rig.config.paced import paced_workload
from rig.config.workload import Workload
from rig.faults.plan.paced import paced_plan
from rig.faults.plan.plan import Plan
from rig.injection.schedule import Planned, draw, strike_until_s
from rig.observe.watch import WatchTiming

_PROBE_FAST_S: Final = 0.25
_PROBES_PER_NODE_S: Final = 3.0
"""A node gets at most five requests a second of the rig's own (at pace 1): three quick probes, and 1.9 polls beside
them. With two models and three nodes every probe of a 250 ms interval fits; on two nodes it is 333 ms."""
_PROBE_SLOW_S: Final = 10.0
_PROBE_LIMIT_S: Final = 90.0
_PROBE_PATIENCE_S: Final = 3.0  # well above the loaded latency of one token
_POLL_S: Final = 1.1  # 4.3 polls a second and node, and slow probes beside them
_SPARING_S: Final = 3.0  # 1.9
_CALM_S: Final = 5.0  # 1.2
_CLOSE_SHARE: Final = 0.25  # of a node's time may go into answering polls
_CALM_SHARE: Final = 0.1
_SETUP_LIMIT_S: Final = 900.0  # a large model may have to be read from disk on every node
_IDLE_S: Final = 10.0
_VANISHED_S: Final = 20.0  # a new master's grace is 15 s; a deployment missing for longer is gone


@dataclass(frozen=True, kw_only=True)
class SoakSettings:
    """`length_s` is what passes on the wall, load and faults together; the drain comes after it."""

    inventory: Inventory
    workload: Workload
    plan: Plan
    pace: Pace
    length_s: float
    seed: int
    folder: Path

    @property
    def entries(self) -> dict[str, str]:
        """API by node, as far as the workload uses it as an entry node."""
        wanted = self.workload.entry
        return {name: node.api for name, node in self.inventory.nodes.items() if wanted == "spread" or name in wanted}

    @property
    def models(self) -> list[str]:
        return [model.model for model in self.workload.models]

    @property
    def probe_fast_s(self) -> float:
        fitting_s = len(self.models) / max(1, len(self.entries)) / self.probes_per_node_s
        return max(self.pace.poll(_PROBE_FAST_S), fitting_s)

    @property
    def probes_per_node_s(self) -> float:
        return _PROBES_PER_NODE_S * self.pace.factor

    @property
    def probe_slow_s(self) -> float:
        return self.pace.poll(_PROBE_SLOW_S)

    @property
    def probe_limit_s(self) -> float:
        """No probe is given up before this; its floor is not paced, since a busy machine is not faster."""
        return max(self.pace.scale(_PROBE_LIMIT_S), 10.0)

    @property
    def probe_patience_s(self) -> float:
        """After which a probe that hangs no longer keeps back the next; floored likewise."""
        return max(self.pace.scale(_PROBE_PATIENCE_S), 0.3)

    @property
    def setup_limit_s(self) -> float:
        return max(self.pace.scale(_SETUP_LIMIT_S), 60.0)

    @property
    def vanished_s(self) -> float:
        return self.pace.scale(_VANISHED_S)

    @property
    def idle_s(self) -> float:
        """Between two looks at an idle target: long enough for its periodic work to even out."""
        return max(self.pace.scale(_IDLE_S), 2.0)

    def schedule(self) -> Iterator[Planned]:
        """From its beginning, without an end; the same each time."""
        return draw(self.plan, self.inventory, self.models, self.seed)

    @property
    def strike_until_s(self) -> float:
        """Seconds after the start of the load from which no hold may last any longer, so that recoveries are seen."""
        return strike_until_s(self.plan, self.length_s, self.pace.factor)


def watching(pace: Pace) -> WatchTiming:
    """How often views are polled; the floors are what a poll may cost a node. An answer costs the same at any pace."""
    close_s = max(pace.poll(_POLL_S), 0.2)
    return WatchTiming(
        close_s=close_s,
        sparing_s=max(pace.scale(_SPARING_S), close_s),
        calm_s=max(pace.scale(_CALM_S), close_s),
        close_share=min(_CLOSE_SHARE * pace.factor, 1.0),
        calm_share=min(_CALM_SHARE * pace.factor, 1.0),
        timeout_s=2.0,
        rare_s=max(pace.scale(10.0), 1.0),
        index_s=close_s,
    )


def paced(
    *,
    inventory: Inventory,
    workload: Workload,
    plan: Plan,
    length_s: float,
    seed: int | None,
    folder: Path,
) -> SoakSettings:
    """Settings from the files as they were read. The pace is that of the embedded cluster, 1 for real nodes."""
    pace = Pace(1.0 if inventory.emulated is None else inventory.emulated.pace)
    return SoakSettings(
        inventory=inventory,
        workload=paced_workload(workload, pace),
        plan=paced_plan(plan, pace),
        pace=pace,
        length_s=length_s,
        seed=plan.seed if seed is None else seed,
        folder=folder,
    )
