"""An event loop whose time is that of a simulation: it never waits, it goes on to the next thing that is due."""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from rig.clock import RunClock
from rig.errors import ClusterError
from rig.lab.exo.simulation import Simulation

T = TypeVar("T")

Dial = Callable[[Callable[[], asyncio.Protocol], int], asyncio.Transport]
"""Makes a connection to a port: the protocol is told of it. Raises ConnectionRefusedError."""

_LOOK_EVERY: Final = 4096  # turns between two looks at the real clock


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` begins where the simulation is.

    Raises ClusterError out of `run_until_complete`: nothing will ever happen again, or `limit_s` real seconds are over.
    """

    def __init__(self, sim: Simulation, dial: Dial, *, limit_s: float) -> None:
        self._turning = _Turning(sim, limit_s)
        self._dial = dial
        super().__init__(self._turning)

    def time(self) -> float:
        return self._turning.now

    async def create_connection(  # pyright: ignore[reportIncompatibleMethodOverride] (the few arguments that are used)
        self, protocol_factory: Callable[[], asyncio.Protocol], host: str, port: int, **kwargs: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """To a node's API by its port; what the rig's load connects with."""
        del host, kwargs
        made: list[asyncio.Protocol] = []

        def make() -> asyncio.Protocol:
            made.append(protocol_factory())
            return made[0]

        transport = self._dial(make, port)
        return transport, made[0]


class LoopClock(RunClock):
    """The clock of a run on such a loop: seconds since it was made."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._began = loop.time()

    def now(self) -> float:
        return self._loop.time() - self._began

    def wall_drift(self) -> float:
        """Virtual time misses nothing."""
        return 0.0


class _Turning(selectors.DefaultSelector):
    """Instead of waiting for files: the simulation goes on, as far as the loop would have waited."""

    def __init__(self, sim: Simulation, limit_s: float) -> None:
        super().__init__()
        self.now = sim.now
        self._sim = sim
        self._turns = 0
        self._until = time.monotonic() + limit_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if self._turns % _LOOK_EVERY == 0 and time.monotonic() > self._until:
            raise ClusterError(f"the simulation is not done in time; it came to {self.now:.0f} s")
        until = math.inf if timeout is None else self.now + max(0.0, timeout)
        due = self._sim.next_at()
        if min(due, until) == math.inf:
            raise ClusterError(f"nothing will ever happen again after {self.now:.0f} s of the simulation")
        if due <= until:
            self.now = max(self.now, due)
            self._sim.run_until(self.now)
        else:
            self.now = until
            self._sim.run_until(self.now)
        return []


def run_virtual(
    sim: Simulation, dial: Dial, main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], limit_s: float
) -> T:
    """Run to its end; whatever it left running is cancelled. Raises what it raises, and ClusterError."""
    loop = VirtualLoop(sim, dial, limit_s=limit_s)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main(loop))
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
