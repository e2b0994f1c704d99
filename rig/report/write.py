"""The reports of a run in its folder: whole or not at all."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict, verdict_of
from rig.errors import JournalError
from rig.journal.read import read_run
from rig.report.html.page import report_html
from rig.report.json import report_bytes
from rig.report.junit import junit
from rig.report.markdown import markdown
from rig.report.series import Series, gather_run

MARKDOWN_FILE: Final = "summary.md"
JSON_FILE: Final = "summary.json"
HTML_FILE: Final = "report.html"
JUNIT_FILE: Final = "junit.xml"
_TEMPORARY: Final = re.compile(r"\..+\.(\d+)\.tmp")


@dataclass(frozen=True)
class Report:
    analysis: Analysis
    verdict: Verdict
    series: Series


def read_report(folder: Path) -> Report:
    """What the journal in this folder says. Raises JournalError."""
    analysis, series = gather_run(read_run(folder))
    return Report(analysis, verdict_of(analysis), series)


def write_report(folder: Path, report: Report) -> None:
    """Write `summary.md`, `summary.json`, `junit.xml` and `report.html`.

    Raises JournalError; a file of an earlier report stays until replaced.
    """
    _sweep(folder)
    analysis, verdict = report.analysis, report.verdict
    write_whole(folder / MARKDOWN_FILE, markdown(analysis, verdict).encode())
    write_whole(folder / JSON_FILE, report_bytes(analysis, verdict))
    write_whole(folder / JUNIT_FILE, junit(analysis, verdict))
    write_whole(folder / HTML_FILE, report_html(analysis, verdict, report.series).encode())


def _sweep(folder: Path) -> None:
    """Remove what a report that was killed left half written, under names of its own."""
    for path in folder.glob(".*.tmp"):
        found = _TEMPORARY.fullmatch(path.name)
        if found and not _alive(int(found[1])):
            path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def write_whole(path: Path, content: bytes) -> None:
    """Under its final name a file is complete, whenever the writing ends."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
