"""The load of a run: clients that send one request after another, or arrivals on a schedule of their own.

Closed loop: each of N clients sends, reads to the end, thinks, sends again; after a fast failure it backs off. Open
loop: requests are sent when they are due, whatever the answers do, up to a bound in flight; what the bound holds back
is said in the journal, also what was due and never sent. Either spreads over the entry nodes in turn and over the
models by weight. When `stop` is set nothing new is sent, and every request that is on its way is awaited to its own
deadline.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from rig.config.traces import read_trace
from rig.config.workload import Workload
from rig.errors import UsageError
from rig.journal.records import HeldBack, RequestEnded
from rig.journal.write import Journal
from rig.load.access import Access
from rig.load.arrivals import Due, due
from rig.load.backoff import Backoff
from rig.load.canary import CanaryTurns, Learning, Texts
from rig.load.deadlines import GRACE_S, Limits
from rig.load.draw import Draw, Drawn, drawn_canary, entry_urls
from rig.load.places import Places
from rig.load.request import Call, perform
from rig.load.tasks import first_error, pause, pause_until
from rig.load.transport import LoadTransport

ALONE: Final = "alone"
"""The client that asks canaries one by one."""
_NOTICED_S: Final = 0.005  # what was due so shortly before a stop is noticed may have been due after it
_COUNT_AT_ONCE: Final = 1000  # requests that were never sent, before others have a turn
_STAGGER_S: Final = 0.01  # between the first requests of two clients
_STAGGER_MOST_S: Final = 1.0  # between those of the first and the last


class LoadDriver:
    """`entries` are API addresses by node name; all durations given are used as they are.

    `requests`, when given, is how many are sent at most. Raises UsageError for a workload that cannot be
    run.
    """

    def __init__(  # noqa: PLR0913 (each is a setting of its own)
        self,
        workload: Workload,
        entries: Mapping[str, str],
        journal: Journal,
        *,
        seed: int,
        requests: int | None = None,
        backoff: Backoff | None = None,
        grace_s: float = GRACE_S,
        token_a_chunk: bool = True,
        learning: Learning | None = None,
        access: Access | None = None,
    ) -> None:
        self._workload = workload
        self._entries = entry_urls(workload, entries)
        self._journal = journal
        self._canaries = CanaryTurns(workload, len(self._entries))
        self._texts = Texts()
        self._learning = Learning() if learning is None else learning
        self._learn_until_t = math.inf
        self._seed = seed
        self._token_a_chunk = token_a_chunk
        self._requests = requests
        self._backoff = Backoff() if backoff is None else backoff
        self._transport = LoadTransport(journal.now, access)
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
            await self._alone(stop)
            if self._workload.arrivals.kind == "closed":
                await self._closed(stop)
            else:
                await self._open(stop)
        except BaseExceptionGroup as group:
            raise first_error(group) from None

    async def _alone(self, stop: asyncio.Event) -> None:
        """What each canary is answered while nothing else is asked."""
        now_t = self._journal.now()
        until_t, self._learn_until_t = now_t + self._learning.alone_s, now_t + self._learning.until_s
        for asked in self._canaries.alone():
            if stop.is_set() or self._all_sent() or self._journal.now() >= until_t:
                return
            self.started += 1
            await self._send(drawn_canary(asked), ALONE, asked.entry, self._journal.now())

    def _canary(self, draw: Draw) -> tuple[Drawn, int] | None:
        """The canary that is asked next, if one is, and through which entry node, counting on."""
        if self._journal.now() >= self._learn_until_t:
            self._canaries.learnt()
        if not self._canaries.due(draw.canary_rng):
            return None
        asked = self._canaries.next()
        return drawn_canary(asked), asked.entry

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
            if stop.is_set() or self._all_sent():
                return
            self.started += 1
            drawn, entry = self._canary(draw) or (draw.next(), turn)
            ended = await self._send(drawn, name, entry, self._journal.now())
            failed_fast = ended.outcome != "completed" and ended.ended_t - ended.started_t < self._backoff.fast_s
            failures = failures + 1 if failed_fast else 0
            wait_s = self._workload.arrivals.think
            if failed_fast:
                wait_s += self._backoff.wait_s(failures, draw.rng)
            if wait_s > 0 and await pause(stop, wait_s):
                return

    async def _open(self, stop: asyncio.Event) -> None:
        """Each request at its time, from a task of its own. The one thing that may hold it back is the bound.

        Times and requests have random numbers of their own, and are drawn in the order of the times: the same seed
        gives the same load however late or early anything is.
        """
        arrivals, now = self._workload.arrivals, self._journal.now
        draw = Draw(self._workload, self._seed, "arrivals", self._pairs)
        times = due(arrivals, Random(f"{self._seed}/arrivals/times"), self._trace)
        places = Places(arrivals.max_concurrency, now)
        start_t = now()

        async def one(drawn: Drawn, turn: int, planned_t: float) -> None:
            try:
                await self._send(drawn, "arrivals", turn, planned_t)
            finally:
                places.leave()

        async with asyncio.TaskGroup() as group:
            unsent = 0
            for turn, wanted in enumerate(times):
                planned_t = start_t + wanted.at_s
                usual = draw.next(wanted.prompt_tokens, wanted.output_tokens, wanted.blocks), turn
                drawn, entry = self._canary(draw) or usual
                stopped = await pause_until(stop, planned_t, now)
                if not stopped and self._all_sent():
                    break
                if stopped or not await places.take(stop):
                    unsent = await _due_by(itertools.chain([wanted], times), now() - _NOTICED_S - start_t)
                    break
                self.started += 1
                group.create_task(one(drawn, entry, planned_t))
            if places.held or unsent:
                held = HeldBack(
                    t=now(), bound=places.count, held=places.held, longest_s=places.longest_s, unsent=unsent
                )
                self._journal.write(held)

    def _all_sent(self) -> bool:
        return self._requests is not None and self.started >= self._requests

    async def _send(self, drawn: Drawn, client: str, turn: int, planned_t: float) -> RequestEnded:
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
            token_a_chunk=self._token_a_chunk,
            canary=drawn.canary,
            alone=client == ALONE,
        )
        self.in_flight += 1
        try:
            return await perform(call, self._transport, self._journal, self._texts)
        finally:
            self.in_flight -= 1


async def _due_by(times: Iterator[Due], at_s: float) -> int:
    """How many of them; others have a turn meanwhile."""
    count = 0
    for wanted in times:
        if wanted.at_s > at_s:
            break
        count += 1
        if count % _COUNT_AT_ONCE == 0:
            await asyncio.sleep(0)
    return count
