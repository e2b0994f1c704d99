"""Column files: the same requests, faults and recoveries as in the tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from rig.errors import JournalError
from rig.journal.read import read_run
from rig.report.figures import FAULT, RECOVERY, REQUEST
from rig.report.parquet import FILES, write_parquet
from rig.report.write import read_report

ROOT = Path(__file__).parents[2]


def test_they_hold_what_the_tables_count(lossy_run: Path) -> None:
    written = write_parquet(read_run(lossy_run))
    assert [path.name for path in written] == list(FILES)
    requests, faults, recoveries = (pd.read_parquet(path) for path in written)
    assert [list(frame.columns) for frame in (requests, faults, recoveries)] == [
        list(shape.columns) for shape in (REQUEST, FAULT, RECOVERY)
    ]
    analysis = read_report(lossy_run).analysis
    total = analysis.requests.total
    load = requests[requests["source"] == "load"]
    assert load["outcome"].value_counts().to_dict() == {
        "completed": total.completed, "error": total.error, "lost": total.lost,
    }  # fmt: skip
    assert int(load["exposed"].sum()) == total.exposed
    assert int((load["own"] == "node").sum()) == total.own_node > 0
    assert len(requests) - len(load) == analysis.probes.total.started > 0
    assert faults["kind"].tolist() == [fault.kind for fault in analysis.faults]
    assert faults["lost"].tolist() == [analysis.requests.by_fault[number].lost for number in faults["fault"]]
    assert int(faults["lost"].sum()) > 0
    kinds = {fault.number: fault.kind for fault in analysis.faults}
    rows: list[tuple[str, str]] = list(zip(load["outcome"].tolist(), load["windows"].fillna("").tolist(), strict=True))
    for kind, times in analysis.during.items():
        inside = [outcome for outcome, some in rows if some and kind in [kinds[int(one)] for one in some.split(",")]]
        good, failed = times.latencies.good, times.latencies.failed
        assert (inside.count("completed"), len(inside)) == (good, good + failed)
    assert sum(times.latencies.good for times in analysis.during.values()) > 0
    assert recoveries["class"].tolist() == [recovery.recovery_class for recovery in analysis.recoveries]
    assert load["tokens"].sum() > 1000
    assert load["first_token_t"].notna().sum() > total.completed / 2


def test_a_file_in_the_way_leaves_nothing_behind(sound_run: Path) -> None:
    (sound_run / FILES[1]).mkdir()
    with pytest.raises(JournalError, match=r"faults\.parquet"):
        write_parquet(read_run(sound_run))
    assert not list(sound_run.glob(".*.tmp"))


@pytest.mark.processes
def test_without_pyarrow_it_says_what_to_install(sound_run: Path) -> None:
    """In a process of its own in which pyarrow cannot be imported."""
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from rig.cli.app import main\n"
        f"sys.argv = ['rig', 'report', {str(sound_run.resolve())!r}, '--parquet']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, cwd=sound_run.parent
    )
    assert done.returncode == 2
    assert "pip install 'rig[parquet]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (sound_run / FILES[0]).exists()
