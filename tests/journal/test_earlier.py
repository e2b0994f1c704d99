"""A journal of version 0.1.0, as it was written then: read by the rig of now, it has the tables that it had."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from rig.report.markdown import markdown
from rig.report.write import read_report

EARLIER = Path(__file__).parent / "earlier"


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_a_journal_of_before_has_the_same_tables(tmp_path: Path) -> None:
    shutil.copy(EARLIER / "run.json", tmp_path)
    (tmp_path / "journal.jsonl").write_bytes(gzip.decompress((EARLIER / "journal.jsonl.gz").read_bytes()))
    report = read_report(tmp_path)
    told = _rows(markdown(report.analysis, report.verdict))
    assert len(told) > 80
    assert told == _rows((EARLIER / "summary.md").read_text(encoding="utf-8"))
