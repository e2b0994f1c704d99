"""A report that is killed at any moment leaves no half file under its final name, and no litter for long."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from rig.report.parquet import FILES
from rig.report.write import read_report, write_report
from tests.analysis.generate import Shape, info_of, records_of, write_journal

FINAL = ("summary.md", "summary.json", "junit.xml", "report.html", *FILES)

# Writes reports over and over, so that every moment of a report is as likely as it is long; says when it begins.
SCRIPT = """
import sys
from pathlib import Path
from rig.journal.read import read_run
from rig.report.parquet import write_parquet
from rig.report.write import read_report, write_report
folder = Path(sys.argv[1])
found = read_report(folder)
write_parquet(read_run(folder))
print("ready", flush=True)
while True:
    sys.stdin.readline()
    print("begun", flush=True)
    write_report(folder, found)
    write_parquet(read_run(folder))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shape = Shape(seed=5, duration_s=240, faults=3, requests=400, views=60)
    return write_journal(tmp_path / "run", info_of(shape, run="run"), records_of(shape))


def writers(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Processes that have all imported and are about to write. As many as needed, one after the other."""
    while True:
        yield subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )


def whole(path: Path) -> bool:
    """Whether a file is all there, by its own measure."""
    if path.suffix == ".parquet":
        return len(pd.read_parquet(path)) > 0
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".json":
            return "checks" in json.loads(text)
        case ".xml":
            return ET.fromstring(text).tag == "testsuites"
        case ".html":
            return text.endswith("</html>\n")
        case _:
            return text.endswith("\n") and "### Checks" in text


def test_kill_9_at_any_moment(folder: Path) -> None:
    rng = random.Random(1)
    cut = 0
    spare = writers(folder)
    process = next(spare)
    for _ in range(8):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for name in FINAL:
            (folder / name).unlink(missing_ok=True)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "begun\n"
        _wait_a_little(rng)
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
        present = [name for name in FINAL if (folder / name).exists()]
        assert all(whole(folder / name) for name in present)
        cut += len(present) < len(FINAL)
        process.stdin.close()
        process.stdout.close()
        process = next(spare)
    process.kill()
    process.communicate(timeout=30)
    assert cut > 0, "no kill came before the end of a report: the test shows nothing"
    write_report(folder, read_report(folder))
    assert not list(folder.glob(".*.tmp"))


def _wait_a_little(rng: random.Random) -> None:
    """Some moment of the report: as long as it takes this process to do a bit of work."""
    for _ in range(rng.randrange(0, 60)):
        sum(range(10_000))


def test_a_full_disk_costs_no_earlier_report(folder: Path) -> None:
    write_report(folder, read_report(folder))
    before = {name: (folder / name).read_bytes() for name in FINAL[:4]}
    (folder / "journal.jsonl").open("ab").close()
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy)
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from rig.report.write import read_report, write_report\n"
        "found = read_report(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write_report(Path(sys.argv[1]), found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "JournalError: cannot write" in done.stderr
    assert {name: (copy / name).read_bytes() for name in FINAL[:4]} == before
    assert not [name for name in os.listdir(copy) if name.endswith(".tmp")]
