from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.clock import RunClock
from rig.journal.records import AnyRecord
from rig.journal.write import Journal


class Recorded:
    """A journal on disk, and everything that was written to it."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder, RunClock())
        self.records: list[AnyRecord] = []
        self.journal.subscribe(self.records.append)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path)
    yield recorded
    recorded.journal.close()


@pytest.fixture(scope="session")
def sse_mock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mock server of the bench, compiled."""
    binary = tmp_path_factory.mktemp("mock") / "sse_mock"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None, "a C compiler is needed for the mock server"
    source = Path(__file__).parents[2] / "bench" / "sse_mock.c"
    subprocess.run([compiler, "-O2", "-w", "-o", binary, source], check=True, timeout=60)
    return binary
