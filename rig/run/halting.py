"""Why a run ends before its time: the first reason counts, and everything that waits hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Reason = Literal["finished", "interrupted", "terminated", "aborted", "failed"]
_T = TypeVar("_T")
_HURRIED = frozenset[Reason](("interrupted", "terminated", "failed"))


@dataclass
class Halt:
    """`event` is set by the first `call`; `reason` stays "finished" without one.

    `hurry` is set by any call for which nothing is to be drained for long: somebody is waiting at a terminal, or the
    target is gone. It may come when the run has been ending for a while. `unlocked` is set, with `unlocked_at` on the
    event loop's clock, when a lock on a node may have been another rig's since then.
    """

    event: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    unlocked: asyncio.Event = field(default_factory=asyncio.Event)
    unlocked_at: float = 0.0
    reason: Reason = "finished"
    detail: str = ""

    def call(self, reason: Reason, detail: str = "") -> None:
        if not self.event.is_set():
            self.reason = reason
            self.detail = detail
            self.event.set()
        if reason in _HURRIED:
            self.hurry.set()

    def unlock(self, at: float, detail: str) -> None:
        """A lock was lost: it was last known to be this run's `at` that moment of the event loop's clock."""
        self.unlocked_at = at
        self.unlocked.set()
        self.call("aborted", detail)

    async def within(self, delay_s: float) -> bool:
        """Wait for so long; True when the run is halted before that."""
        if delay_s <= 0:
            return self.event.is_set()
        try:
            async with asyncio.timeout(delay_s):
                await self.event.wait()
        except TimeoutError:
            return False
        return True


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T | None:
    """The work's result, or None when the event was set before it was done; the work is cancelled then."""
    task, waiting = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None
    finally:
        waiting.cancel()
