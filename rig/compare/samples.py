"""What of one run is compared: values that may be taken to be independent of each other.

A fault hits several models at once, so the unit is the fault: its worst model. Requests follow one another in the same
weather, so the unit is a minute of calm weather: its median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from rig.analysis.analyse import Analysis
from rig.analysis.recovery.decision import Recovery
from rig.analysis.requests.tally import FaultCounts
from rig.analysis.verdict import Verdict, verdict_of
from rig.journal.read import read_run
from rig.report.joined import Joined
from rig.report.series import gather_run

BLOCK_S: Final = 60.0
"""At pace 1."""
LEAST_IN_BLOCK: Final = 3
MAX_IN_BLOCK: Final = 200
GROUPS: Final = ("survived", "replaced")
Key = TypeVar("Key")


@dataclass
class Block:
    """Of one model and one minute of calm weather. The first 200 values are kept."""

    ttft: list[float] = field(default_factory=list[float])
    itl: list[float] = field(default_factory=list[float])


def ttft_of(block: Block) -> list[float]:
    return block.ttft


def itl_of(block: Block) -> list[float]:
    return block.itl


@dataclass
class Calm:
    """Calm weather: requests that no fault touched."""

    block_s: float
    open_loop: bool
    blocks: dict[tuple[str, int], Block] = field(default_factory=dict[tuple[str, int], Block])
    ended: dict[int, int] = field(default_factory=dict[int, int])
    failed: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, joined: Joined) -> None:
        start, end, judged = joined.start, joined.end, joined.judged
        if start.source != "load" or end is None or judged is None or judged.void or judged.exposed or judged.own:
            return
        number = int(end.started_t / self.block_s)
        self.ended[number] = self.ended.get(number, 0) + 1
        self.failed[number] = self.failed.get(number, 0) + (end.outcome != "completed")
        if end.outcome != "completed" or not start.streamed or end.first_token_t is None:
            return
        block = self.blocks.setdefault((start.model, number), Block())
        from_t = start.planned_t if self.open_loop else end.started_t
        _keep(block.ttft, end.first_token_t - from_t)
        tokens = end.usage_tokens or end.tokens
        if end.last_token_t is not None and tokens > 1:
            _keep(block.itl, (end.last_token_t - end.first_token_t) / (tokens - 1))

    def medians(self, model: str, of: Callable[[Block], list[float]]) -> list[float]:
        found = [of(block) for (name, _), block in sorted(self.blocks.items()) if name == model]
        return [median(values) for values in found if len(values) >= LEAST_IN_BLOCK]

    def failing(self) -> list[float]:
        """The share of requests of each minute that did not complete."""
        return [self.failed[n] / count for n, count in sorted(self.ended.items()) if count >= LEAST_IN_BLOCK]


def _keep(values: list[float], value: float) -> None:
    if len(values) < MAX_IN_BLOCK:
        values.append(value)


@dataclass
class Samples:
    """One run. By kind, one value a fault; `inf` where a model never served again."""

    folder: Path
    analysis: Analysis
    verdict: Verdict
    calm: Calm
    serve: dict[str, list[float]]  # affected faults: time to serve of the worst model
    serve_by_group: dict[tuple[str, str], list[float]]  # (kind, survived | replaced)
    outage: dict[str, list[float]]  # effective faults: the longest outage, 0 where nothing failed
    failed: dict[str, list[float]]  # errors and lost together: what was lost and is now told is no worse
    lost: dict[str, list[float]]  # own node not faulted

    @property
    def name(self) -> str:
        return self.analysis.info.run

    @property
    def models(self) -> tuple[str, ...]:
        return self.analysis.settings.models


def read_samples(folder: Path) -> Samples:
    """Read and analyse the run in a folder. Raises JournalError."""
    run = read_run(folder)
    pace = max(run.info.pace, 1.0)
    calm = Calm(BLOCK_S / pace, open_loop=False)
    arrivals = run.info.workload.get("arrivals")
    if isinstance(arrivals, dict):
        calm.open_loop = arrivals.get("kind", "closed") != "closed"  # pyright: ignore[reportUnknownMemberType]  # any JSON
    analysis, _ = gather_run(run, calm.add)
    return samples_of(folder, analysis, calm)


def samples_of(folder: Path, analysis: Analysis, calm: Calm) -> Samples:
    effective = [fault for fault in analysis.faults if fault.effective]
    by_fault: dict[int, list[Recovery]] = {}
    for recovery in analysis.recoveries:
        by_fault.setdefault(recovery.fault, []).append(recovery)
    found = Samples(folder, analysis, verdict_of(analysis), calm, {}, {}, {}, {}, {})
    for fault in effective:
        recoveries = by_fault.get(fault.number, [])
        affected = [recovery for recovery in recoveries if recovery.affected]
        _add(found.serve, fault.kind, map(_serve, affected))
        for group in GROUPS:
            _add(found.serve_by_group, (fault.kind, group), (_serve(r) for r in affected if r.group == group))
        if recoveries:
            _add(found.outage, fault.kind, map(_outage, recoveries))
        counts = analysis.requests.by_fault.get(fault.number) or FaultCounts()
        found.failed.setdefault(fault.kind, []).append(counts.error + counts.lost)
        found.lost.setdefault(fault.kind, []).append(counts.lost - counts.lost_own_node)
    return found


def _add(into: dict[Key, list[float]], key: Key, values: Iterable[float]) -> None:
    worst = max(values, default=None)
    if worst is not None:
        into.setdefault(key, []).append(worst)


def _serve(recovery: Recovery) -> float:
    """Infinite where it never served again, or not for good; also where another fault came before it had served."""
    if recovery.recovery_class == "not recovered" or recovery.time_to_serve_s is None:
        return math.inf
    return recovery.time_to_serve_s


def _outage(recovery: Recovery) -> float:
    return math.inf if recovery.recovery_class == "not recovered" else recovery.outage_s
