"""The table of a target's module `judged`: what the analysis must know of it to read what its nodes told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rig.analysis.intake.ticks import Index
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.reigns import Reigns
from rig.journal.records import AnyRecord
from rig.targets import registry


class OwnWatch(Protocol):
    """What only this target has, taken in record by record, for its own checks."""

    def feed(self, record: AnyRecord) -> None:
        """All but those of requests and health, after the context and the reigns have taken them in."""
        ...

    def indices(self, run: Sequence[Index]) -> None: ...

    def finish(self, end_t: float) -> None:
        """No record follows."""
        ...

    def hint(self, model: str, from_t: float, to_t: float) -> str:
        """Why the model may not have served in that time; empty where nothing tells."""
        ...


def _no_workers(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    del instance
    return {}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """`workers` are those of an instance as a facet has it: node id → process. `worker` is what reports call one."""

    watch: Callable[[Context, Reigns], OwnWatch] | None = None
    workers: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_workers
    worker: str = "worker"
    nodes_serve_alone: bool = False  # each node is a server of its own: the others do not make up for it


def judged_of(target: str) -> Judged:
    """Of a target that a journal names and this rig does not know, nothing is judged but what all have."""
    return registry.table(target, "judged", Judged) if target in registry.NAMES else Judged()
