"""Who claims to be master, and who is, from the journal. Pure.

The last thing a node said of itself counts, until its process is known to be gone. Two nodes may claim at once (one
that has just started, a resumed old master, a split cluster), or none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from rig.faults.plan.registry import names_where
from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, ViewChanged
from rig.nodes.master import Word, rule

_KILLS: Final[frozenset[str]] = names_where(lambda kind: kind.ends_process)


@dataclass(frozen=True)
class Claim:
    """Or a denial, which may name who was elected instead."""

    is_master: bool
    first_t: float  # since when it has said so without a break
    last_t: float
    elected: str = ""
    past: bool = False  # it had said so before it was watched: since any time


class MasterTracker:
    """A reducer over records, in their order."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._ids: dict[str, str] = {}  # of the process that runs on each node

    def apply(self, record: AnyRecord) -> None:
        match record:
            case MasterSeen():
                self._claim(record)
            case FaultChanged(state="struck") if record.fault_kind in _KILLS:
                for node in record.processes_hit:
                    self._ids.pop(node, None)
                    self._gone(node, record.at_t)
            case ViewChanged(facet="node_id"):
                self._ids[record.node] = str(record.value)
                if record.since_t is not None:
                    self._gone(record.node, record.since_t)
            case _:
                pass

    @property
    def masters(self) -> frozenset[str]:
        """The nodes that claim to be master now."""
        return frozenset(node for node, claim in self._claims.items() if claim.is_master)

    def master(self, now_t: float) -> str | None:
        """The node that is master, by what most have elected or by the oldest claim; `None` while that is unknown."""
        words = [
            Word(node, claim.is_master, claim.elected, None if claim.past else now_t - claim.first_t)
            for node, claim in self._claims.items()
            if claim.is_master or claim.elected
        ]
        return rule(words, {name: node for node, name in self._ids.items()}).master

    def claimed_t(self, node: str) -> float | None:
        """Since when the node has claimed to be master; `None` when it does not."""
        claim = self._claims.get(node)
        return claim.first_t if claim is not None and claim.is_master else None

    def _claim(self, seen: MasterSeen) -> None:
        before = self._claims.get(seen.node)
        if before is not None and seen.at_t < before.last_t:
            return
        claim = Claim(seen.is_master, seen.at_t, seen.at_t, seen.elected, seen.past)
        if before is not None and before.is_master is seen.is_master:
            claim = replace(claim, first_t=before.first_t, past=before.past)
        self._claims[seen.node] = claim

    def _gone(self, node: str, at_t: float) -> None:
        """What it said up to then was said by a process that is no more."""
        claim = self._claims.get(node)
        if claim is None:
            return
        if claim.last_t <= at_t:
            del self._claims[node]
        elif claim.first_t <= at_t:
            self._claims[node] = replace(claim, first_t=claim.last_t, past=False)


def masters_at(records: Iterable[AnyRecord], t: float) -> frozenset[str]:
    """The nodes that claimed to be master at `t`, by what had been written up to then."""
    tracker = MasterTracker()
    for record in records:
        if record.t > t:
            break
        tracker.apply(record)
    return tracker.masters
