"""Who claims to be master, from the journal. Pure.

The last thing a node said of itself counts, until its process is known to be gone. Two nodes may claim at once (a
resumed old master, a split cluster), or none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from rig.faults.plan.registry import names_where
from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, ViewChanged

_KILLS: Final[frozenset[str]] = names_where(lambda kind: kind.ends_process)


@dataclass(frozen=True)
class Claim:
    is_master: bool
    first_t: float  # since when it has said so without a break
    last_t: float


class MasterTracker:
    """A reducer over records, in their order."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}

    def apply(self, record: AnyRecord) -> None:
        match record:
            case MasterSeen():
                self._claim(record)
            case FaultChanged(state="struck") if record.fault_kind in _KILLS:
                for node in record.processes_hit:
                    self._gone(node, record.at_t)
            case ViewChanged(facet="node_id", since_t=float(since_t)):
                self._gone(record.node, since_t)
            case _:
                pass

    @property
    def masters(self) -> frozenset[str]:
        """The nodes that claim to be master now."""
        return frozenset(node for node, claim in self._claims.items() if claim.is_master)

    def claimed_t(self, node: str) -> float | None:
        """Since when the node has claimed to be master; `None` when it does not."""
        claim = self._claims.get(node)
        return claim.first_t if claim is not None and claim.is_master else None

    def _claim(self, seen: MasterSeen) -> None:
        before = self._claims.get(seen.node)
        if before is not None and seen.at_t < before.last_t:
            return
        same = before is not None and before.is_master is seen.is_master
        first_t = before.first_t if before is not None and same else seen.at_t
        self._claims[seen.node] = Claim(seen.is_master, first_t, seen.at_t)

    def _gone(self, node: str, at_t: float) -> None:
        """What it said up to then was said by a process that is no more."""
        claim = self._claims.get(node)
        if claim is None:
            return
        if claim.last_t <= at_t:
            del self._claims[node]
        elif claim.first_t <= at_t:
            self._claims[node] = replace(claim, first_t=claim.last_t)


def masters_at(records: Iterable[AnyRecord], t: float) -> frozenset[str]:
    """The nodes that claimed to be master at `t`, by what had been written up to then."""
    tracker = MasterTracker()
    for record in records:
        if record.t > t:
            break
        tracker.apply(record)
    return tracker.masters
