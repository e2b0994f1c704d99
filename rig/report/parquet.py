"""A run as column files, for pandas, DuckDB, Polars and the like. Derived: the journal stays the truth.

`requests.parquet` has a row for every request and probe, `faults.parquet` one a fault, `recoveries.parquet` one for
each pair of fault and model. Columns are those of the journal and of the JSON report, by the same names.

Needs pyarrow, which is not installed by default: it is larger than all the rest of the rig together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.requests import FaultCounts
from rig.errors import JournalError, UsageError
from rig.journal.read import Run
from rig.journal.records import RequestEnded, RequestStarted
from rig.report.joined import Joined
from rig.report.series import gather_run

ROWS_AT_ONCE: Final = 10_000
FILES: Final = ("requests.parquet", "faults.parquet", "recoveries.parquet")

# name → type in the words of pyarrow. Every column may be null.
REQUESTS: Final = {
    "id": "string", "source": "string", "client": "string", "model": "string", "entry": "string", "streamed": "bool",
    "prompt_tokens": "int64", "max_tokens": "int64", "planned_t": "float64", "started_t": "float64",
    "connected_t": "float64", "first_byte_t": "float64", "first_token_t": "float64", "last_token_t": "float64",
    "last_progress_t": "float64", "ended_t": "float64", "outcome": "string", "how": "string", "own": "string",
    "exposed": "bool", "fault": "int64", "unwedging": "int64", "windows": "string", "status": "int64",
    "response_id": "string", "tokens": "int64", "usage_tokens": "int64", "finish_reason": "string",
    "gap_count": "int64", "gap_sum_s": "float64", "gap_max_s": "float64", "unclean_end": "string", "damaged": "string",
    "evidence": "string",
}  # fmt: skip
FAULTS: Final = {
    "fault": "int64", "kind": "string", "aim": "string", "state": "string", "effective": "bool", "model": "string",
    "nodes": "string", "processes_hit": "string", "clients_cut": "string", "hold_s": "float64", "struck_t": "float64",
    "struck_error_s": "float64", "healed_t": "float64", "healed_error_s": "float64", "reason": "string",
    "exposed": "int64", "error": "int64", "lost": "int64", "lost_own_node": "int64",
}  # fmt: skip
RECOVERIES: Final = {
    "fault": "int64", "fault_kind": "string", "model": "string", "class": "string", "group": "string",
    "strike_t": "float64", "heal_t": "float64", "until_t": "float64", "time_to_serve_s": "float64",
    "serve_from_strike_s": "float64", "sustained_s": "float64", "sustained_from_strike_s": "float64",
    "at_least_s": "float64", "outage_s": "float64", "silence_s": "float64", "resolution_s": "float64",
    "error_s": "float64", "failures": "int64", "late_failures": "int64", "instance_before": "string",
    "instance_after": "string", "unwedged": "bool", "unwedge_cost_s": "float64",
}  # fmt: skip

Row = dict[str, Any]


def write_parquet(run: Run) -> list[Path]:
    """Write the three files into the run's folder, each whole or not at all.

    Raises UsageError without pyarrow, JournalError when they cannot be written.
    """
    arrow, parquet = _pyarrow()
    written = [run.folder / name for name in FILES]
    with _whole(written[0]) as temporary:
        rows = _Rows(arrow, parquet, temporary, REQUESTS)
        try:
            analysis, _ = gather_run(run, lambda joined: rows.add(_request(joined)))
        finally:
            rows.close()
    for path, columns, found in (
        (written[1], FAULTS, _faults(analysis)),
        (written[2], RECOVERIES, _recoveries(analysis)),
    ):
        with _whole(path) as temporary:
            rows = _Rows(arrow, parquet, temporary, columns)
            try:
                rows.extend(found)
            finally:
                rows.close()
    return written


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  # it is optional, and has none
        import pyarrow.parquet  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise UsageError(
            "Parquet files need pyarrow, which is not installed",
            remedy="pip install 'rig[parquet]', or pip install pyarrow",
        ) from error
    return cast("Any", pyarrow), cast("Any", pyarrow.parquet)


class _Rows:
    """Rows on their way into a file, at most so many in memory."""

    def __init__(self, arrow: Any, parquet: Any, path: Path, columns: dict[str, str]) -> None:
        types: dict[str, Callable[[], Any]] = {
            "string": arrow.string, "bool": arrow.bool_, "int64": arrow.int64, "float64": arrow.float64,
        }  # fmt: skip
        self._arrow = arrow
        self._schema = arrow.schema([(name, types[kind]()) for name, kind in columns.items()])
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._waiting: list[Row] = []

    def add(self, row: Row) -> None:
        self._waiting.append(row)
        if len(self._waiting) >= ROWS_AT_ONCE:
            self._flush()

    def extend(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting.clear()


@contextmanager
def _whole(path: Path) -> Generator[Path]:
    """A temporary name to write to; the file gets its own when all of it is on the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _request(joined: Joined) -> Row:
    """`outcome` is as the analysis counted it: also void and unfinished. `windows` are numbers of faults with commas:
    those it was in flight in, from the strike to the sustained recovery of its model; null where there was none."""
    start, end, judged = joined.start, joined.end, joined.judged
    row = _of(start, RequestStarted, REQUESTS)
    if end is not None:
        row |= _of(end, RequestEnded, REQUESTS)
        row |= {"gap_count": end.gaps.count, "gap_sum_s": end.gaps.sum_s, "gap_max_s": end.gaps.max_s}
    else:
        row["started_t"] = start.t
    row["outcome"] = joined.fate
    if judged is not None:
        row |= {name: getattr(judged, name) for name in ("own", "exposed", "fault", "unwedging")}
    if joined.windows:
        row["windows"] = ",".join(map(str, joined.windows))
    return row


def _of(record: object, kind: type[msgspec.Struct], columns: dict[str, str]) -> Row:
    return {name: getattr(record, name) for name in kind.__struct_fields__ if name in columns}


def _faults(analysis: Analysis) -> list[Row]:
    """Lists of nodes are written with commas."""
    rows: list[Row] = []
    for fault in analysis.faults:
        counts = analysis.requests.by_fault.get(fault.number) or FaultCounts()
        row = {name: getattr(fault, name) for name in FAULTS if hasattr(fault, name)}
        row |= {name: ",".join(getattr(fault, name)) for name in ("nodes", "processes_hit", "clients_cut")}
        row |= {name: getattr(counts, name) for name in ("exposed", "error", "lost", "lost_own_node")}
        rows.append(row | {"fault": fault.number})
    return rows


def _recoveries(analysis: Analysis) -> list[Row]:
    return [
        {name: getattr(recovery, "recovery_class" if name == "class" else name) for name in RECOVERIES}
        for recovery in analysis.recoveries
    ]
