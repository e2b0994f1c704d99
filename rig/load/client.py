"""The load of a run: clients that send one request after another, or arrivals on a schedule of their own.

Closed loop: each of N clients sends, reads to the end, thinks, sends again; after a fast failure it backs off. Open
loop: requests are sent when they are due, whatever the answers do, up to a bound in flight. Either spreads over the
entry nodes in turn and over the models by weight. When `stop` is set nothing new is sent, and every request that is on
its way is awaited to its own deadline.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Final

from rig.config.traces import read_trace
from rig.config.workload import Workload
from rig.errors import UsageError
from rig.journal.records import RequestEnded
from rig.journal.write import Journal
from rig.load.arrivals import Due, due
from rig.load.backoff import Backoff
from rig.load.deadlines import GRACE_S, Limits
from rig.load.draw import Draw, entry_urls
from rig.load.request import Call, perform
from rig.load.tasks import first_error, pause
from rig.load.transport import LoadTransport

MAX_IN_FLIGHT: Final = 4096  # of an open loop
_STAGGER_S: Final = 0.01  # between the first requests of two clients
_STAGGER_MOST_S: Final = 1.0  # between those of the first and the last


class LoadDriver:
    """`entries` are API addresses by node name; all durations given are used as they are.

    `requests`, when given, is how many are sent at most. Raises UsageError for a workload that cannot be run.
    """

    def __init__(
        self,
        workload: Workload,
        entries: Mapping[str, str],
        journal: Journal,
        *,
        seed: int,
        requests: int | None = None,
        backoff: Backoff | None = None,
        grace_s: float = GRACE_S,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self._workload = workload
        self._entries = entry_urls(workload, entries)
        self._journal = journal
        self._seed = seed
        self._requests = requests
        self._backoff = Backoff() if backoff is None else backoff
        self._max_in_flight = max_in_flight
        self._transport = LoadTransport(journal.now)
        self._numbers = itertools.count(1)
        deadlines = workload.deadlines
        self._limits = Limits(deadlines.connect, deadlines.progress, deadlines.total, end_s=grace_s)
        self.in_flight = 0
        self.started = 0
        arrivals = workload.arrivals
        if arrivals.kind not in ("closed", "replay") and not arrivals.rate and not arrivals.stages:
            raise UsageError(f"workload {workload.name!r}: {arrivals.kind} arrivals need a rate")
        self._trace = None if arrivals.trace is None else read_trace(arrivals.trace)
        if arrivals.kind == "replay" and self._trace is None:
            raise UsageError(f"workload {workload.name!r}: a replay needs a trace")
        rows = None if workload.pairs is None else read_trace(workload.pairs, timed=False)
        self._pairs = None if rows is None else [(row.prompt_tokens, row.output_tokens) for row in rows]

    async def run(self, stop: asyncio.Event) -> None:
        """Return when every request has ended after `stop` was set, or after the last of `requests`.

        Raises what one client raised (JournalError above all), after ending the others.
        """
        try:
            if self._workload.arrivals.kind == "closed":
                await self._closed(stop)
            else:
                await self._open(stop)
        except BaseExceptionGroup as group:
            raise first_error(group) from None

    async def _closed(self, stop: asyncio.Event) -> None:
        clients = self._workload.clients
        stagger_s = min(_STAGGER_S, _STAGGER_MOST_S / clients)
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(self._client(stop, number, number * stagger_s))

    async def _client(self, stop: asyncio.Event, number: int, delay_s: float) -> None:
        name = f"client-{number + 1}"
        draw = Draw(self._workload, self._seed, name, self._pairs)
        failures = 0
        if await pause(stop, delay_s):
            return
        for turn in itertools.count(number):
            if stop.is_set() or not self._may_start():
                return
            ended = await self._send(draw, name, turn, self._journal.now())
            failed_fast = ended.outcome != "completed" and ended.ended_t - ended.started_t < self._backoff.fast_s
            failures = failures + 1 if failed_fast else 0
            wait_s = self._workload.arrivals.think
            if failed_fast:
                wait_s += self._backoff.wait_s(failures, draw.rng)
            if wait_s > 0 and await pause(stop, wait_s):
                return

    async def _open(self, stop: asyncio.Event) -> None:
        """Each request at its time, from a task of its own. The one thing that may hold it back is the bound."""
        draw = Draw(self._workload, self._seed, "arrivals", self._pairs)
        start_t = self._journal.now()
        slots = asyncio.Semaphore(self._max_in_flight)

        async def one(turn: int, wanted: Due) -> None:
            try:
                await self._send(draw, "arrivals", turn, start_t + wanted.at_s, wanted)
            finally:
                slots.release()

        async with asyncio.TaskGroup() as group:
            for turn, wanted in enumerate(due(self._workload.arrivals, draw.rng, self._trace)):
                if await pause(stop, start_t + wanted.at_s - self._journal.now()) or not self._may_start():
                    return
                await slots.acquire()
                group.create_task(one(turn, wanted))

    def _may_start(self) -> bool:
        """Count one more request, unless all of them have been sent."""
        if self._requests is not None and self.started >= self._requests:
            return False
        self.started += 1
        return True

    async def _send(
        self, draw: Draw, client: str, turn: int, planned_t: float, wanted: Due | None = None
    ) -> RequestEnded:
        drawn = draw.next() if wanted is None else draw.next(wanted.prompt_tokens, wanted.output_tokens)
        entry, url = self._entries[turn % len(self._entries)]
        call = Call(
            id=f"r{next(self._numbers)}",
            source="load",
            client=client,
            model=drawn.model,
            entry=entry,
            url=url,
            streamed=drawn.streamed,
            prompt=drawn.prompt,
            prompt_tokens=drawn.prompt_tokens,
            max_tokens=drawn.max_tokens,
            limits=self._limits,
            planned_t=planned_t,
            temperature=self._workload.temperature,
        )
        self.in_flight += 1
        try:
            return await perform(call, self._transport, self._journal)
        finally:
            self.in_flight -= 1
