"""Places in flight: an open loop sends when a request is due, but never has more than so many on their way.

Each request on its way holds a connection and memory, and a target that answers nothing would take all there is. What
finds no place waits for one, and that wait is counted: it is the one thing that may hold an open loop back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Places:
    """`held` counts the requests that found no place when they were due, `longest_s` is the longest wait for one."""

    def __init__(self, count: int, now: Callable[[], float]) -> None:
        self.count = count
        self.held = 0
        self.longest_s = 0.0
        self._free = asyncio.Semaphore(count)
        self._now = now

    async def take(self, stop: asyncio.Event) -> bool:
        """Take a place, at once where one is free. False, without a place, when `stop` is set before there is one."""
        if not self._free.locked():
            return await self._free.acquire()
        self.held += 1
        began = self._now()
        place, stopped = asyncio.ensure_future(self._free.acquire()), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({place, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.longest_s = max(self.longest_s, self._now() - began)
            stopped.cancel()
            if not place.done():
                place.cancel()
        if not place.done() or place.cancelled():
            return False
        if stop.is_set():
            self.leave()
            return False
        return True

    def leave(self) -> None:
        self._free.release()
