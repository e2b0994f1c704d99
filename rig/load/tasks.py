"""Small things every activity with tasks needs: waits that a stop ends, and the one error out of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def pause(stop: asyncio.Event, seconds: float) -> bool:
    """Wait so long (0 or less: not at all), or until `stop` is set. Whether it is set."""
    if seconds <= 0 or stop.is_set():
        return stop.is_set()
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True


async def pause_until(stop: asyncio.Event, at_t: float, now: Callable[[], float]) -> bool:
    """Wait until `now` is there (past: not at all), or until `stop` is set. Whether it is set.

    Never too short: a timer of whole milliseconds, as uvloop's is, may go off before its time.
    """
    while not await pause(stop, at_t - now()):
        if now() >= at_t:
            return False
    return True


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first plain exception in a group, however deep; the others came with or after it."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return error  # pyright: ignore[reportUnknownVariableType]
