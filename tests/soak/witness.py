"""What a cluster's sampler saw of a fault: process states and packet filters, never a script's word. Pure.

Moments are on `time.monotonic()`, which the sampler shares with the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rig.lab.embedded.sampler import AnySample, Beat, NetworkSeen, ProcessSeen


@dataclass(frozen=True)
class Spell:
    """From when to when a node was hit; `to` is None while it still is."""

    node: str
    since: float
    to: float | None


def spells(samples: Iterable[AnySample], kind: str) -> list[Spell]:
    """For each node the times in which it was stopped (freeze), cut off (partition) or without a main process."""
    seen = _Seen(kind)
    for sample in samples:
        seen.add(sample)
    return seen.all()


def resolution_s(samples: Iterable[AnySample], since: float) -> float:
    """The longest time between two looks of the sampler from `since` on: no moment is known better than that."""
    return max((sample.gap_max_s for sample in samples if isinstance(sample, Beat) and sample.t >= since), default=0.0)


class _Seen:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._what: dict[str, set[int]] = {}  # per node: stopped processes, living mains, or 0 for rules in force
        self._since: dict[str, float] = {}
        self._over: list[Spell] = []

    def add(self, sample: AnySample) -> None:
        if isinstance(sample, NetworkSeen) and self._kind == "partition":
            self._note(sample.node, 0, sample.t, there=bool(sample.rules))
        elif isinstance(sample, ProcessSeen) and self._kind == "freeze":
            self._note(sample.node, sample.pid, sample.t, there=sample.state == "T")
        elif isinstance(sample, ProcessSeen) and self._kind.endswith("crash") and sample.role == "main":
            self._note(sample.node, sample.pid, sample.t, there=sample.state not in ("-", "Z"))

    def _note(self, node: str, what: int, t: float, *, there: bool) -> None:
        found = self._what.setdefault(node, set())
        (found.add if there else found.discard)(what)
        hit = bool(found) != self._kind.endswith("crash")  # a crash is that there is no main
        if hit and node not in self._since:
            self._since[node] = t
        elif not hit and node in self._since:
            self._over.append(Spell(node, self._since.pop(node), t))

    def all(self) -> list[Spell]:
        return self._over + [Spell(node, since, None) for node, since in self._since.items()]
