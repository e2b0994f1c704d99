"""What is kept of a fault that went wrong: the target's logs from before it until after it, processes, filters, views.

It is collected after every fault, because some of what makes a fault worth a look (a lost request, a check that
fails) is known only much later, when the target has rotated its logs. `drop_unneeded` then removes what nobody needs.
Everything is bounded: by node, by fault, and for the run, of which the oldest go first.

    FOLDER/forensics/fault-N/NODE.txt (processes, filters, leases)  NODE.log (the target)  views.json
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.nodes.node import Nodes

LOG_BYTES: Final = 2 * 2**20  # of the target's log, a node and fault; the end of it
STATE_BYTES: Final = 256 * 2**10
RUN_BYTES: Final = 256 * 2**20
LIMIT_S: Final = 15.0
FOLDER: Final = "forensics"


@dataclass
class Forensics:
    """`collect(fault, views)` after each fault; never raises NodeError: what could not be had is said in its place."""

    nodes: Nodes
    folder: Path
    run_bytes: int = RUN_BYTES
    _sizes: dict[int, int] = field(default_factory=dict[int, int])  # in the order of the faults

    def has(self, fault: int) -> bool:
        return fault in self._sizes

    async def collect(self, fault: int, views: Mapping[str, Any]) -> Path:
        """Raises OSError when the results cannot be written."""
        place = self.folder / FOLDER / f"fault-{fault}"
        collected = await asyncio.gather(
            *(
                conn.evidence(state_bytes=STATE_BYTES, log_bytes=LOG_BYTES, timeout_s=LIMIT_S)
                for conn in self.nodes.values()
            )
        )
        place.mkdir(parents=True, exist_ok=True)
        for name, evidence in zip(self.nodes, collected, strict=True):
            (place / f"{name}.txt").write_bytes(evidence.state)
            (place / f"{name}.log").write_bytes(evidence.log)
        (place / "views.json").write_text(json.dumps(views, indent=1, default=str)[:STATE_BYTES])
        self._sizes[fault] = sum(path.stat().st_size for path in place.iterdir())
        self._bound()
        return place

    def _bound(self) -> None:
        """Drops the oldest until the run's limit is kept; the newest always stays."""
        while sum(self._sizes.values()) > self.run_bytes and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest]
            shutil.rmtree(self.folder / FOLDER / f"fault-{oldest}", ignore_errors=True)


def worth_keeping(analysis: Analysis, verdict: Verdict) -> frozenset[int]:
    """The numbers of the faults that did not recover or heal, or lost a request. Pure. All of them when a check failed:
    what it failed on may lie between two faults.
    """
    faults = frozenset(fault.number for fault in analysis.faults)
    if any(check.status == "fail" for check in verdict.checks):
        return faults
    unrecovered = {one.fault for one in analysis.recoveries if one.recovery_class == "not recovered"}
    unhealed = {fault.number for fault in analysis.faults if fault.unhealed or fault.invalid}
    lost = {number for number, counts in analysis.requests.by_fault.items() if counts.lost or counts.lost_own_node}
    return faults & (unrecovered | unhealed | lost)


def drop_unneeded(folder: Path, wanted: Collection[int]) -> None:
    """Removes what was collected of no wanted fault, and the folder when nothing is left. Of faults at once, only the
    last has a collection: each wanted fault keeps the first one at or after it.
    """
    places = dict(sorted(_places(folder)))
    kept = {next((number for number in places if number >= each), None) for each in wanted}
    for number, place in places.items():
        if number not in kept:
            shutil.rmtree(place, ignore_errors=True)
    if (folder / FOLDER).is_dir() and not any((folder / FOLDER).iterdir()):
        (folder / FOLDER).rmdir()


def _places(folder: Path) -> Iterator[tuple[int, Path]]:
    for place in (folder / FOLDER).glob("fault-*"):
        number = place.name.removeprefix("fault-")
        if number.isdigit():
            yield int(number), place
