"""A run as column files, for pandas, DuckDB, Polars and the like. Derived: the journal stays the truth.

`requests.parquet` has a row for every request and probe, `faults.parquet` one a fault, `recoveries.parquet` one for
each pair of fault and model. `rig.report.figures` has the columns.

Needs pyarrow, which is not installed by default: it is larger than all the rest of the rig together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from rig.errors import JournalError, UsageError
from rig.journal.read import Run
from rig.report.figures import FAULT, RECOVERY, REQUEST, faults_of
from rig.report.form import Column, Json
from rig.report.series import gather_run

ROWS_AT_ONCE: Final = 10_000
FILES: Final = ("requests.parquet", "faults.parquet", "recoveries.parquet")


def write_parquet(run: Run) -> list[Path]:
    """Write the three files into the run's folder, each whole or not at all.

    Raises UsageError without pyarrow, JournalError when they cannot be written.
    """
    arrow, parquet = _pyarrow()
    written = [run.folder / name for name in FILES]
    with _whole(written[0]) as temporary:
        rows = _Rows(arrow, parquet, temporary, REQUEST.columns)
        try:
            analysis, _ = gather_run(run, lambda joined: rows.add(REQUEST.row(joined)))
        finally:
            rows.close()
    for path, columns, found in (
        (written[1], FAULT.columns, map(FAULT.row, faults_of(analysis))),
        (written[2], RECOVERY.columns, map(RECOVERY.row, analysis.recoveries)),
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

    def __init__(self, arrow: Any, parquet: Any, path: Path, columns: Mapping[str, Column]) -> None:
        types: dict[str, Callable[[], Any]] = {
            "string": arrow.string, "bool": arrow.bool_, "int64": arrow.int64, "float64": arrow.float64,
        }  # fmt: skip
        self._arrow = arrow
        self._schema = arrow.schema([(name, types[kind]()) for name, kind in columns.items()])
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._waiting: list[Json] = []

    def add(self, row: Json) -> None:
        self._waiting.append(row)
        if len(self._waiting) >= ROWS_AT_ONCE:
            self._flush()

    def extend(self, rows: Iterable[Json]) -> None:
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
