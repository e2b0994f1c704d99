"""When a node's exo stood still or was cut off, so that what it did late says nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rig.analysis.moments import Span
from rig.analysis.recovery.faults import Fault, in_force


@dataclass(frozen=True)
class Disturbances:
    faults: Sequence[Fault]

    def standing_still(self, node: str, first: Span, second: Span) -> bool:
        """Whether a fault was in force on the node's process at some time from the first moment to the second."""
        return any(
            node in fault.processes_hit and in_force(fault).meets(first.after_t, second.by_t) for fault in self.faults
        )

    def any_between(self, after_t: float, by_t: float) -> bool:
        """Whether any fault was in force at some time from one moment to the other."""
        return any(in_force(fault).meets(after_t, by_t) for fault in self.faults)
