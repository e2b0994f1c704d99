"""A report that is killed at any moment leaves no half file under its final name, and no litter for long."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from rig.report.parquet import FILES
from rig.report.write import read_report, write_report
from tests.analysis.generate import Shape, info_of, records_of, write_journal

FINAL = ("summary.md", "summary.json", "junit.xml", "report.html", *FILES)

# Reads the run once. Then, for each number asked for, a child writes all reports and is killed by SIGKILL before it
# runs its so-manieth line of the code that writes files; says `killed`, or `done` when it came to its end before that.
BY_LINE = """
import os, signal, sys
from pathlib import Path
from rig.journal.read import read_run
from rig.report.parquet import write_parquet
from rig.report.write import read_report, write_report
import pyarrow

pytestmark = pytest.mark.processes
pyarrow.Table.from_pylist([{"warm": 1}])  # what it imports late, once for all children
folder, left = Path(sys.argv[1]), 0
found = read_report(folder)
def line(frame, event, _):
    global left
    left -= event == "line"
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return line
def call(frame, event, _):
    writes = frame.f_code.co_name in ("write_report", "write_whole", "_whole", "_sweep", "write_parquet")
    return line if writes and "report" in frame.f_code.co_filename else None
print("ready", flush=True)
for asked in sys.stdin:
    child = os.fork()
    if child == 0:
        left = int(asked)
        sys.settrace(call)
        write_report(folder, found)
        write_parquet(read_run(folder))
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print({-signal.SIGKILL: "killed", 0: "done"}[status], flush=True)
"""

# Writes reports once it is told to.
SCRIPT = """
import sys
from pathlib import Path
from rig.journal.read import read_run
from rig.report.parquet import write_parquet
from rig.report.write import read_report, write_report
folder = Path(sys.argv[1])
found = read_report(folder)
print("ready", flush=True)
sys.stdin.readline()
print("begun", flush=True)
write_report(folder, found)
write_parquet(read_run(folder))
"""
MAX_LINES = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shape = Shape(seed=5, duration_s=150, faults=1, requests=60, views=12)
    return write_journal(tmp_path / "run", info_of(shape, run="run"), records_of(shape))


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    """Imported and about to write."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert said(process) == "ready"
    return process


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def present(folder: Path) -> list[str]:
    """The reports that are there; each must be whole."""
    found = [name for name in FINAL if (folder / name).exists()]
    assert [name for name in found if not whole(folder / name)] == []
    return found


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


def test_kill_9_before_any_line_that_writes(folder: Path) -> None:
    """Every line of the code that makes files, one after the other, each time with no report there before."""
    process = started(BY_LINE, folder)
    seen: set[int] = set()
    number = 0
    for number in range(MAX_LINES):
        for name in FINAL:
            (folder / name).unlink(missing_ok=True)
        tell(process, str(number))
        ended = said(process)
        seen.add(len(present(folder)))
        if ended == "done":
            break
    process.communicate(timeout=30)
    assert 60 < number < MAX_LINES - 1
    assert seen == set(range(len(FINAL) + 1)), "kills came between all files"
    write_report(folder, read_report(folder))
    assert not list(folder.glob(".*.tmp"))


def test_kill_9_at_any_moment(folder: Path) -> None:
    """From outside, in the middle of whatever it is doing."""
    rng = random.Random(1)
    for _ in range(4):
        for name in FINAL:
            (folder / name).unlink(missing_ok=True)
        process = started(SCRIPT, folder)
        tell(process, "go")
        assert said(process) == "begun"
        for _ in range(rng.randrange(0, 60)):
            sum(range(10_000))  # some moment of the report: as long as a bit of work takes
        process.kill()
        process.communicate(timeout=30)
        assert process.returncode in (-signal.SIGKILL, 0)
        present(folder)


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
