"""The rig's own health: a controller that stalls, swaps or sleeps must not be taken for a sick target.

One record a second, at any pace: event-loop lag, CPU, memory, open files, and the wall clock against the monotonic one.
"""

from __future__ import annotations

import asyncio
from typing import Final

import psutil

from rig.journal.records import Own
from rig.journal.write import Journal

INTERVAL_S: Final = 1.0
TICK_S: Final = 0.025  # a stall shows to within this


async def own_health(journal: Journal, *, interval_s: float = INTERVAL_S) -> None:
    """Write `Own` every interval until cancelled, and once more then, so that no time is unwatched."""
    process = psutil.Process()
    process.cpu_percent()  # the first call only marks the beginning
    started = slept_from = journal.now()
    lag_max_s = 0.0

    def write() -> None:
        now = journal.now()
        with process.oneshot():
            record = Own(
                t=now,
                interval_s=round(now - started, 3),
                lag_max_s=round(max(lag_max_s, now - slept_from - TICK_S, 0.0), 4),
                cpu_percent=process.cpu_percent(),
                rss_bytes=process.memory_info().rss,
                open_files=process.num_fds(),
                wall_drift_s=round(journal.wall_drift(), 4),
            )
        journal.write(record)

    try:
        while True:
            slept_from = journal.now()
            await asyncio.sleep(TICK_S)
            now = journal.now()
            lag_max_s = max(lag_max_s, now - slept_from - TICK_S)
            if now - started >= interval_s:
                slept_from = now
                write()
                started, lag_max_s = now, 0.0
    except asyncio.CancelledError:
        if not journal.failed:
            write()
        raise
