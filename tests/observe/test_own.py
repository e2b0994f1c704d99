from __future__ import annotations

import asyncio
import time

from rig.journal.records import Own
from rig.observe.own import own_health
from tests.observe.conftest import Written


async def test_a_stalled_event_loop_shows_and_a_calm_one_does_not(written: Written) -> None:
    def records() -> list[Own]:
        return [record for record in written.records if isinstance(record, Own)]

    written.journal.wall_drift = lambda: 0.25
    task = asyncio.create_task(own_health(written.journal, interval_s=0.2))
    try:
        await written.until(lambda: len(records()) == 1)
        time.sleep(0.3)  # noqa: ASYNC251  # the stall that is to be seen
        await written.until(lambda: len(records()) >= 3)
    finally:
        task.cancel()
    stalled = max(records(), key=lambda record: record.lag_max_s)
    assert 0.25 <= stalled.lag_max_s < 1.0
    assert min(record.lag_max_s for record in records()) < 0.25
    for record in records():
        assert record.interval_s >= 0.2
        assert record.rss_bytes > 10_000_000
        assert record.open_files > 2
        assert record.wall_drift_s == 0.25
