from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rig.clock import RunClock
from rig.journal.records import AnyRecord
from rig.journal.write import Journal
from rig.targets.exo.api import Exo
from tests.observe.api import Api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api()
    await api.start()
    yield api
    await api.stop()


@pytest.fixture
async def exo() -> AsyncIterator[Exo]:
    exo = Exo()
    yield exo
    await exo.close()


class Written:
    """A journal, and what was written to it."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder, RunClock())
        self.records: list[AnyRecord] = []
        self.journal.subscribe(self.records.append)

    async def until(self, condition: Callable[[], bool], *, timeout_s: float = 10.0) -> None:
        """Wait for it, looking often; an AssertionError at the deadline."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"not in {timeout_s} s; the last records: {self.records[-5:]}"
            await asyncio.sleep(0.005)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)
