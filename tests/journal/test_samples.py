"""Journals that earlier rigs wrote are read with the same figures."""

from __future__ import annotations

import json
import lzma
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, cast

import pytest

from rig.analysis.analyse import Analysis, analyse_run
from rig.analysis.verdict import verdict_of
from rig.journal.read import read_run
from rig.report.json import report_json
from rig.report.markdown import markdown

SAMPLES: Final = Path(__file__).parent / "samples"
WORDS: Final = frozenset({"stamp", "summary", "promise", "evidence", "text", "detail", "reason", "schema"})
"""What reports say in words may be said better; figures, names and verdicts may not change."""


@pytest.fixture(scope="module", params=sorted(path.name for path in SAMPLES.iterdir()))
def sample(request: pytest.FixtureRequest) -> Path:
    return SAMPLES / request.param


@pytest.fixture(scope="module")
def analysis(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("sample")
    (folder / "run.json").write_bytes((sample / "run.json").read_bytes())
    (folder / "journal.jsonl").write_bytes(lzma.decompress((sample / "journal.jsonl.xz").read_bytes()))
    return analyse_run(read_run(folder))


def test_every_figure_is_the_same(sample: Path, analysis: Analysis) -> None:
    before = json.loads((sample / "summary.json").read_text())
    now = json.loads(json.dumps(report_json(analysis, verdict_of(analysis))))
    assert differences("", before, now) == []


def test_the_table_of_faults_is_the_same(sample: Path, analysis: Analysis) -> None:
    """Columns may have been added since."""
    head, rule, *lines = (sample / "summary.md").read_text().partition("| fault | planned |")[2].splitlines()
    rows = lines[: lines.index("")]
    assert (len(rows), head.count("|"), rule.count("|")) == (5, 10, 13)
    now = markdown(analysis, verdict_of(analysis)).splitlines()
    assert [row for row in rows if not any(line.startswith(row) for line in now)] == []


def differences(where: str, before: Any, now: Any) -> list[str]:
    """Keys and checks may have been added since."""
    if where == ".checks":
        before, now = ({check["name"]: check for check in checks} for checks in (before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", now)
        pairs = {key: (value, new.get(key, "gone")) for key, value in old.items() if key not in WORDS}
    elif isinstance(before, list) and isinstance(now, list):
        both = zip_longest(cast("list[Any]", before), cast("list[Any]", now), fillvalue="gone")
        pairs = {str(at): pair for at, pair in enumerate(both)}
    else:
        return [] if before == now else [f"{where}: {before} is now {now}"]
    return [found for key, (old, new) in pairs.items() for found in differences(f"{where}.{key}", old, new)]
