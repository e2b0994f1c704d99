from __future__ import annotations

import asyncio

import pytest

from rig.load.deadlines import Limits, Watch
from tests.load.servers import until


class Flood:
    """A server that never pauses: something has come in whenever one looks, and reading it takes `turn_s`."""

    def __init__(self, turn_s: float) -> None:
        self.arrivals = 0
        self.now_t = 0.0
        self._turn_s = turn_s

    def take_in(self) -> None:
        self.arrivals += 1
        self.now_t += self._turn_s


@pytest.mark.parametrize("turn_s", [0.001, 0.1, 2.0])
async def test_a_flood_does_not_put_a_deadline_off(turn_s: float) -> None:
    flood, late_s = Flood(turn_s), 0.5
    watch = Watch(lambda: flood.now_t, 0.0, Limits(progress_s=8.0, total_s=60.0), streamed=True)
    watch.exchange = flood
    flood.now_t = 8.0
    with pytest.raises(TimeoutError):
        await watched(watch)
    assert watch.struck == "progress"
    assert 8.0 < flood.now_t <= 8.0 + late_s + 2 * turn_s, "in the clock's time, however many looks that is"


async def watched(watch: Watch) -> None:
    """Nothing else happens until the watch strikes."""
    async with asyncio.timeout(None) as timeout:
        watch.start(timeout)
        await asyncio.Event().wait()


class Backlog:
    """What had arrived while the rig stood still: so many turns to read it, and progress is in the last one."""

    def __init__(self, turns: int) -> None:
        self.arrivals = 0
        self.last_progress_t: float | None = None
        self._turns = turns

    def take_in(self) -> None:
        if self.arrivals < self._turns:
            self.arrivals += 1
            self.last_progress_t = 20.0 if self.arrivals == self._turns else None


async def test_what_had_arrived_is_read_before_a_deadline_strikes() -> None:
    backlog = Backlog(turns=30)
    watch = Watch(lambda: 20.0, 0.0, Limits(progress_s=8.0, total_s=60.0), streamed=True)
    watch.exchange = watch.reader = backlog
    async with asyncio.timeout(None) as timeout:
        watch.start(timeout)
        await until(lambda: backlog.last_progress_t is not None)
        assert timeout.when() is None
    watch.stop()
