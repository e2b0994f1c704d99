"""The reports of a run in its folder: whole or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.analysis.analyse import Analysis, analyse_run
from rig.analysis.verdict import Verdict, verdict_of
from rig.errors import JournalError
from rig.journal.read import read_run
from rig.report.json import report_bytes
from rig.report.markdown import markdown

MARKDOWN_FILE: Final = "summary.md"
JSON_FILE: Final = "summary.json"


@dataclass(frozen=True)
class Report:
    analysis: Analysis
    verdict: Verdict


def read_report(folder: Path) -> Report:
    """What the journal in this folder says. Raises JournalError."""
    analysis = analyse_run(read_run(folder))
    return Report(analysis, verdict_of(analysis))


def write_report(folder: Path, report: Report) -> None:
    """Write `summary.md` and `summary.json`. Raises JournalError; a file of an earlier report stays until replaced."""
    write_whole(folder / MARKDOWN_FILE, markdown(report.analysis, report.verdict).encode())
    write_whole(folder / JSON_FILE, report_bytes(report.analysis, report.verdict))


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
