"""The target's processes on each node, as they were found around each fault: who died, what was left, who spins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.faults import CRASHES, Fault
from rig.analysis.firsts import Firsts
from rig.journal.records import AnyRecord, NodeProcesses, Unwedged

MAX_SAMPLES: Final = 5_000  # of each node
SPINNING: Final = 0.6
"""Of one core, by a main process that has nothing to do."""


@dataclass
class ProcessWatch:
    samples: dict[str, list[NodeProcesses]] = field(default_factory=dict[str, "list[NodeProcesses]"])
    unwedged: list[Unwedged] = field(default_factory=lambda: Firsts[Unwedged](MAX_SAMPLES))

    def feed(self, record: AnyRecord) -> None:
        match record:
            case NodeProcesses():
                self.samples.setdefault(record.node, Firsts(MAX_SAMPLES)).append(record)
            case Unwedged():
                self.unwedged.append(record)
            case _:
                pass

    def pairs(self) -> int:
        return sum(max(len(samples) - 1, 0) for samples in self.samples.values())

    def died(self, faults: Sequence[Fault]) -> list[str]:
        """Main processes that were gone or another one, with nothing of the rig's to explain it."""
        return [
            f"{node}: the main process of {first.t:.1f} s ({first.main}) was "
            f"{'gone' if second.main is None else 'another'} at {second.t:.1f} s, {second.when}"
            for node, samples in self.samples.items()
            for first, second in itertools.pairwise(samples)
            if first.main is not None and second.main != first.main and not self._explained(faults, first, second)
        ]

    def left_behind(self) -> list[str]:
        return [
            f"{node}: {sample.orphans} processes of a main process that is gone, at {sample.t:.1f} s, {sample.when}"
            for node, samples in self.samples.items()
            for sample in samples
            if sample.orphans and not sample.when.startswith("after")
        ]

    def idle_shares(self) -> dict[str, float]:
        """By node: CPU of the main process per second, between the looks at an idle target."""
        found: dict[str, float] = {}
        for node, samples in self.samples.items():
            idle = [(s.main, s.node_t, s.cpu_s) for s in samples if s.when == "idle" and s.cpu_s is not None]
            if not idle:
                continue
            (main, from_t, before_s), (same, to_t, after_s) = idle[0], idle[-1]
            if main == same and to_t > from_t:
                found[node] = (after_s - before_s) / (to_t - from_t)
        return found

    def _explained(self, faults: Sequence[Fault], first: NodeProcesses, second: NodeProcesses) -> bool:
        node, from_t, to_t = second.node, first.t, second.t
        struck = any(
            fault.kind in CRASHES
            and node in fault.processes_hit
            and fault.opened_t <= to_t
            and (fault.closed_t is None or fault.closed_t >= from_t)
            for fault in faults
        )
        return struck or any(
            u.node == node and u.started_t <= to_t and u.t >= from_t and second.when != before_unwedging(u.fault)
            for u in self.unwedged
        )


def before_unwedging(fault: int) -> str:
    """What a look is called that comes before the rig restarts anything: what it finds is none of the rig's doing."""
    return f"before unwedging after fault {fault}"
