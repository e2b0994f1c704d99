"""All that plots need, gathered in the same pass over the journal in which it is analysed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rig.analysis.analyse import Analysis, analyse_batches
from rig.analysis.intake.batches import Batch, batches
from rig.analysis.intake.reading import reading
from rig.analysis.requests.settled import Settled
from rig.journal.read import Run
from rig.journal.records import AnyRecord, RequestStarted
from rig.journal.run import RunInfo
from rig.report.joined import Join, Sink
from rig.report.lanes import Lanes
from rig.report.points import Requests


@dataclass
class Series:
    requests: Requests = field(default_factory=Requests)
    lanes: Lanes = field(default_factory=Lanes)


class _Gathering:
    """Tells the series of whole batches, and the sinks of one request after the other."""

    def __init__(self, requests: Requests, join: Join) -> None:
        self._requests, self._join = requests, join

    def settled(self, batch: Settled) -> None:
        self._requests.settled(batch)
        self._join.settled(batch)

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        self._requests.unfinished(start, end_t)
        self._join.unfinished(start)


def gather(info: RunInfo, records: Iterable[AnyRecord], *sinks: Sink) -> tuple[Analysis, Series]:
    """Analyse the records and gather the series from them, once from front to back. Further sinks get every request."""
    return _gather(info, batches(records, keep=bool(sinks)), sinks)


def gather_run(run: Run, *sinks: Sink) -> tuple[Analysis, Series]:
    """The run in a folder. Raises JournalError when its files cannot be read."""
    with reading(run, keep=bool(sinks)) as found:
        analysis, series = _gather(run.info, found, sinks)
    analysis.notes = run.notes
    return analysis, series


def _gather(info: RunInfo, found: Iterable[Batch], sinks: Sequence[Sink]) -> tuple[Analysis, Series]:
    nodes = info.inventory.get("nodes")
    series = Series(lanes=Lanes(tuple(str(name) for name in nodes) if isinstance(nodes, dict) else ()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # any JSON
    gathering = _Gathering(series.requests, Join(*sinks))
    return analyse_batches(info, found, listener=gathering, beside=series.lanes), series
