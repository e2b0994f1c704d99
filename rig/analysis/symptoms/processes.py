"""The target's processes on each node, as they were found around each fault: who died, what was left, who spins.

Which worker serves which instance is not told, so workers of no instance are counted: those that lived through the time
between two looks are too many when there are more of them than the node's own view listed instances on it, at any time
from a little before the first look to the second.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.recovery.faults import CRASHES, Fault
from rig.analysis.recovery.judged import Judged
from rig.analysis.symptoms.hosted import Hosted
from rig.journal.records import AnyRecord, NodeProcesses, Unwedged, ViewChanged

MAX_SAMPLES: Final = 5_000  # of each node
SPINNING: Final = 0.6
"""Of one core, by a main process that has nothing to do but its reports and the rig's polls."""
SPINNING_WORKER: Final = 0.25
"""By a worker, which waits for work: several of them that spin share the cores of a small machine."""
APART_S: Final = 30.0
"""At pace 1, between two looks: an instance is in the view long before, and a worker has ended long after its own."""
LEAST_APART_S: Final = 3.0
"""At any pace."""


@dataclass
class ProcessWatch:
    """`pace` is the run's."""

    pace: float
    judged: Judged
    samples: dict[str, list[NodeProcesses]] = field(default_factory=dict[str, "list[NodeProcesses]"])
    unwedged: list[Unwedged] = field(default_factory=lambda: Firsts[Unwedged](MAX_SAMPLES))
    kept: list[str] = field(default_factory=lambda: Firsts[str](MAX_SAMPLES))
    """Workers of no instance, a line for each pair of looks that found some."""

    def __post_init__(self) -> None:
        self._apart_s = max(APART_S / self.pace, LEAST_APART_S)
        self._hosted = Hosted(self._apart_s, self.judged.workers)

    def feed(self, record: AnyRecord) -> None:
        match record:
            case NodeProcesses():
                samples = self.samples.setdefault(record.node, Firsts(MAX_SAMPLES))
                if samples:
                    self._compare(samples[-1], record)
                samples.append(record)
            case ViewChanged():
                self._hosted.feed(record)
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
            if sample.orphans and sample.look not in ("after", "end")
        ]

    def spinning(self) -> dict[str, float]:
        """Those of `idle_shares` that are too large."""
        return {
            who: share
            for who, share in self.idle_shares().items()
            if share > (SPINNING_WORKER if f", {self.judged.worker} " in who else SPINNING)
        }

    def idle_shares(self) -> dict[str, float]:
        """By node and process (pid:start): CPU seconds per second, between the looks at an idle target."""
        found: dict[str, float] = {}
        for node, samples in self.samples.items():
            idle = [sample for sample in samples if sample.look == "idle"]
            if not idle or (passed_s := idle[-1].node_t - idle[0].node_t) <= 0:
                continue
            before_s, after_s = self._cpu(idle[0]), self._cpu(idle[-1])
            found |= {f"{node}, {who}": (after_s[who] - before_s[who]) / passed_s for who in before_s if who in after_s}
        return found

    def _compare(self, first: NodeProcesses, second: NodeProcesses) -> None:
        """The same workers in both looks, but more of them than instances."""
        listed = self._hosted.most_on(second.node, first.t)
        stayed = first.worker_cpu_s.keys() & second.worker_cpu_s.keys()
        long = second.t - first.t >= self._apart_s
        if long and first.main == second.main and listed is not None and len(stayed) > listed:
            self.kept.append(
                f"{second.node}: {len(stayed)} {self.judged.worker}s ({', '.join(sorted(stayed))}) from {first.t:.1f} "
                f"to {second.t:.1f} s, {second.when}, but {listed} instances listed there"
            )

    def _cpu(self, sample: NodeProcesses) -> dict[str, float]:
        """CPU seconds by process."""
        main = {} if sample.cpu_s is None else {f"main process {sample.main}": sample.cpu_s}
        return main | {f"{self.judged.worker} {who}": used_s for who, used_s in sample.worker_cpu_s.items()}

    def _explained(self, faults: Sequence[Fault], first: NodeProcesses, second: NodeProcesses) -> bool:
        """What was found before an unwedging is not its doing, only that of the unwedgings that were over: the rig may
        step in more than once after a fault."""
        node, from_t, to_t = second.node, first.t, second.t
        struck = any(
            fault.kind in CRASHES
            and node in fault.processes_hit
            and fault.opened_t <= to_t
            and (fault.closed_t is None or fault.closed_t >= from_t)
            for fault in faults
        )
        return struck or any(
            u.node == node
            and u.started_t <= to_t
            and u.t >= from_t
            and (u.t < to_t or (second.look, second.fault) != ("before-unwedging", u.fault))
            for u in self.unwedged
        )
