"""Waiting for a condition, or watching that it lasts: by the journal as it grows, within bounds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal

from rig.clock import Pace
from rig.journal.write import Journal
from rig.run.scenarios.known import Before, Known
from rig.run.scenarios.scenario import Condition

LOOK_S: Final = 0.05
BUSY_S: Final = 2.0
"""What a busy machine may add to anything, at any pace."""


@dataclass(frozen=True)
class Outcome:
    status: Literal["pass", "fail", "unknown"]
    seen: str


@dataclass(frozen=True)
class Waiting:
    known: Known
    journal: Journal
    pace: Pace

    async def until(self, condition: Condition, before: Before) -> Outcome:
        """Until it holds, at most `within`; or, with `lasting`, that it holds all the time for so long.

        Nothing is said about a time in which no view tells: then it is unknown.
        """
        if condition.lasting is not None:
            return await self._lasts(condition, before, self.pace.scale(condition.lasting))
        began_t = self.journal.now()
        limit_s = self.pace.scale(condition.within) + BUSY_S
        holds, seen = self.known.holds(condition, before)
        while not holds and self.journal.now() - began_t < limit_s:
            await asyncio.sleep(LOOK_S)
            holds, seen = self.known.holds(condition, before)
        took_s = self.journal.now() - began_t
        if holds:
            return Outcome("pass", f"after {took_s:.1f} s: {seen}")
        return Outcome("unknown" if holds is None else "fail", f"not within {took_s:.1f} s: {seen}")

    async def _lasts(self, condition: Condition, before: Before, for_s: float) -> Outcome:
        began_t = self.journal.now()
        seen = ""
        while (now := self.journal.now()) - began_t < for_s:
            holds, seen = self.known.holds(condition, before)
            if holds is False:
                return Outcome("fail", f"no longer after {now - began_t:.1f} s: {seen}")
            await asyncio.sleep(LOOK_S)
        holds, seen = self.known.holds(condition, before)
        if holds is None:
            return Outcome("unknown", seen)
        return Outcome("pass" if holds else "fail", f"for {for_s:.1f} s: {seen}")
