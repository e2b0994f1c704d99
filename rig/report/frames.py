"""A run as pandas DataFrames, for questions that no table of the report answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import pandas as pd

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict, verdict_of
from rig.journal.read import Run, read_run
from rig.journal.records import AnyRecord, ViewChanged
from rig.journal.run import RunInfo
from rig.report.figures import CHECK, FAULT, RECOVERY, REQUEST, faults_of
from rig.report.form import Column, Json, S, Shape
from rig.report.joined import Joined, Sink
from rig.report.series import Series, gather, gather_run

VIEWS: Final[dict[str, Column]] = {"t": "float64", "since_t": "float64", "node": "string", "facet": "string"}
"""`value` stands beside them, as the journal has it: numbers, texts, lists, mappings."""
ROWS_AT_ONCE: Final = 10_000
_DTYPES: Final = {"string": "string", "bool": "boolean", "int64": "Int64", "float64": "float64"}
_FEW: Final = frozenset(
    {"source", "client", "model", "entry", "outcome", "how", "own", "finish_reason", "node", "facet"}
)
"""Texts with few different values: as categories they take a byte or two a row."""


@dataclass(frozen=True)
class RunFrames:
    """What `rig.open_run` gives. All frames but `views` come from the one pass in which the run was analysed.

    `requests` has a row for every request of the load and every probe (`source`), in the order in which they were
    counted; `faults` one a fault; `recoveries` one for each pair of effective fault and model; `checks` one a check.
    docs/schema.md describes the columns.
    """

    folder: Path
    info: RunInfo
    analysis: Analysis
    verdict: Verdict
    requests: pd.DataFrame
    faults: pd.DataFrame
    recoveries: pd.DataFrame
    checks: pd.DataFrame

    @cached_property
    def views(self) -> pd.DataFrame:
        """What each node's API said of each facet, a row a change, which happened after `since_t` and by `t`.

        Reads the journal once more, at the first use. Raises JournalError.
        """
        changes = [record for record in read_run(self.folder).records() if isinstance(record, ViewChanged)]
        found = _frame([{name: getattr(change, name) for name in VIEWS} for change in changes], VIEWS)
        found["value"] = pd.Series([change.value for change in changes], dtype="object")
        return found


def open_run(path: str | Path) -> RunFrames:
    """The run in this folder, read and analysed. Raises JournalError when its files cannot be read."""
    run: Run = read_run(Path(path))
    return _framed(run.folder, run.info, lambda sink: gather_run(run, sink))


def open_records(info: RunInfo, records: Iterable[AnyRecord]) -> RunFrames:
    """The same of records that are in no folder."""
    return _framed(Path(info.run), info, lambda sink: gather(info, records, sink))


def _framed(folder: Path, info: RunInfo, analysed: Callable[[Sink], tuple[Analysis, Series]]) -> RunFrames:
    requests = _Gathered()
    analysis, _ = analysed(requests.add)
    verdict = verdict_of(analysis)
    return RunFrames(
        folder=folder,
        info=info,
        analysis=analysis,
        verdict=verdict,
        requests=requests.frame(),
        faults=_shaped(FAULT, faults_of(analysis)),
        recoveries=_shaped(RECOVERY, analysis.recoveries),
        checks=_shaped(CHECK, verdict.checks).rename(columns={"name": "check"}),
    )


class _Gathered:
    """Requests on their way into a frame: at most so many as rows, which are far larger than columns."""

    def __init__(self) -> None:
        self._rows: list[Json] = []
        self._parts: list[pd.DataFrame] = []

    def add(self, joined: Joined) -> None:
        self._rows.append(REQUEST.row(joined))
        if len(self._rows) >= ROWS_AT_ONCE:
            self._part()

    def frame(self) -> pd.DataFrame:
        self._part()
        whole = pd.concat(self._parts, ignore_index=True)
        return whole.astype({name: "category" for name in REQUEST.columns if name in _FEW})

    def _part(self) -> None:
        self._parts.append(_frame(self._rows, REQUEST.columns))
        self._rows.clear()


def _shaped(shape: Shape[S], sources: Iterable[S]) -> pd.DataFrame:
    return _frame([shape.row(source) for source in sources], shape.columns)


def _frame(rows: list[Json], columns: Mapping[str, Column]) -> pd.DataFrame:
    """Every column in its order and type, also where no row has it."""
    return pd.DataFrame.from_records(rows, columns=list(columns)).astype(
        {name: _DTYPES[kind] for name, kind in columns.items()}
    )
