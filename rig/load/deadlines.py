"""The deadlines of one request: connect, progress, total, and the grace for an end whose outcome is already decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from rig.clock import Pace

Deadline: TypeAlias = Literal["progress", "total", "grace"]

GRACE_S: Final = 5.0
_GRACE_FLOOR_S: Final = 1.0
_LEAST_S: Final = 1e-4  # what is left may be less than a clock can tell
_CONFIRM_S: Final = 0.005
_CONFIRM_WITHIN_S: Final = 0.5  # a server that never pauses must not put its deadline off


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines of a request in seconds, as they are applied. `progress_s` is for streams alone; `end_s` is how long
    what follows a decided outcome is awaited, at most `progress_s`."""

    connect_s: float = 3.0
    progress_s: float = 120.0
    total_s: float = 300.0
    end_s: float = GRACE_S

    @property
    def grace_s(self) -> float:
        return min(self.end_s, self.progress_s)


def paced_grace_s(pace: Pace) -> float:
    """The grace where everything goes faster. It has a floor: a busy machine is not faster."""
    return max(pace.scale(GRACE_S), _GRACE_FLOOR_S)


class Progress(Protocol):
    """When the answer last got further, on the clock of the watch; None: not yet."""

    last_progress_t: float | None


class Arriving(Protocol):
    """How often something has come in from the server."""

    arrivals: int

    def take_in(self) -> None:
        """Read what has arrived and waits to be read."""
        ...


class Watch:
    """The deadlines of one request, by one timer that is set again when it comes early: progress costs nothing.

    Before it strikes it lets the loop read until nothing more comes in, so that what had already arrived counts (a
    stalled rig must not make a request hung).
    """

    def __init__(self, now: Callable[[], float], started_t: float, limits: Limits, *, streamed: bool) -> None:
        self._limits = limits
        self._now = now
        self._started_t = started_t
        self._decided_t: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timeout: asyncio.Timeout | None = None
        self._due_t: float | None = None  # since when it has been due, and how much had come in by the last look
        self._arrivals = -1
        self._streamed = streamed
        self.reader: Progress | None = None
        self.exchange: Arriving | None = None
        self.struck: Deadline = "total"

    def start(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._check()

    def decide(self, t: float) -> None:
        """The outcome is settled: only the grace remains."""
        self._decided_t = t
        self._check()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next(self) -> tuple[float, Deadline]:
        total = (self._started_t + self._limits.total_s, "total")
        if self._decided_t is not None:
            return min(total, (self._decided_t + self._limits.grace_s, "grace"))
        if not self._streamed:
            return total
        progress_t = self.reader.last_progress_t if self.reader is not None else None
        since_t = self._started_t if progress_t is None else progress_t
        return min((since_t + self._limits.progress_s, "progress"), total)

    def _check(self) -> None:
        self.stop()
        if self.exchange is not None:
            self.exchange.take_in()
        at_t, what = self._next()
        left_s = at_t - self._now()
        if left_s > 0:
            self._due_t, self._arrivals = None, -1
            self._set(max(left_s, _LEAST_S))
        elif self._unsettled():
            self._set(_CONFIRM_S)
        elif self._timeout is not None:
            self.struck = what
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def _unsettled(self) -> bool:
        """Whether something came in since the last look, or this is the first. By the clock, and not by how often it
        looked: under a flood one turn of the loop takes seconds."""
        now = self._now()
        self._due_t = now if self._due_t is None else self._due_t
        before, self._arrivals = self._arrivals, 0 if self.exchange is None else self.exchange.arrivals
        return self._arrivals != before and now - self._due_t <= _CONFIRM_WITHIN_S

    def _set(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._check)
