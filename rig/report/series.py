"""All that plots need, gathered in the same pass over the journal in which it is analysed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from rig.analysis.analyse import Analysis, analyse
from rig.journal.read import Run
from rig.journal.records import AnyRecord
from rig.journal.run import RunInfo
from rig.report.joined import Join, Sink
from rig.report.lanes import Lanes
from rig.report.points import Requests


@dataclass
class Series:
    requests: Requests = field(default_factory=Requests)
    lanes: Lanes = field(default_factory=Lanes)


def gather(info: RunInfo, records: Iterable[AnyRecord], *sinks: Sink) -> tuple[Analysis, Series]:
    """Analyse the records and gather the series from them, once from front to back. Further sinks get every request."""
    nodes = info.inventory.get("nodes")
    series = Series(lanes=Lanes(tuple(str(name) for name in nodes) if isinstance(nodes, dict) else ()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # any JSON
    join = Join(series.requests.add, *sinks)
    analysis = analyse(info, _tee(records, join.feed, series.lanes.feed), on_judged=join.judged)
    series.requests.end_t = analysis.end_t
    join.finish()
    return analysis, series


def gather_run(run: Run, *sinks: Sink) -> tuple[Analysis, Series]:
    """The run in a folder. Raises JournalError when its files cannot be read."""
    analysis, series = gather(run.info, run.records(), *sinks)
    analysis.notes = run.notes
    return analysis, series


def _tee(records: Iterable[AnyRecord], *listeners: Callable[[AnyRecord], None]) -> Iterator[AnyRecord]:
    for record in records:
        for listener in listeners:
            listener(record)
        yield record
