"""Several endless activities that end together: when they are told to stop, or when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_until(stop: asyncio.Event, *activities: Coroutine[Any, Any, None]) -> None:
    """Run all of them until `stop` is set, then cancel them. Raises the first exception of any, as it is."""
    tasks = [asyncio.create_task(activity) for activity in activities]
    stopping = asyncio.create_task(stop.wait())
    pending: set[asyncio.Task[Any]] = {stopping, *tasks}
    try:
        while pending and not stopping.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is not None:
                    await task
    finally:
        for task in (stopping, *tasks):
            task.cancel()
        await asyncio.gather(stopping, *tasks, return_exceptions=True)
