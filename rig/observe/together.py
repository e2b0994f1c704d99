"""Several endless activities that end together: when they are told to stop, or when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_together(*activities: Coroutine[Any, Any, None]) -> None:
    """Run all of them to their end. When one fails the others are cancelled, and its exception is raised as it is."""
    tasks = [asyncio.create_task(activity) for activity in activities]
    pending: set[asyncio.Task[None]] = set(tasks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_until(stop: asyncio.Event, *activities: Coroutine[Any, Any, None]) -> None:
    """Run all of them until `stop` is set, then cancel them. Raises the first exception of any, as it is."""
    together = asyncio.create_task(run_together(*activities))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((together, stopping), return_when=asyncio.FIRST_COMPLETED)
        if together.done():
            await together
    finally:
        stopping.cancel()
        together.cancel()
        await asyncio.gather(together, stopping, return_exceptions=True)
