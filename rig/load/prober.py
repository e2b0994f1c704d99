"""The prober: one-token requests to every model through every entry node in turn, apart from the load.

Probes are load too: a model gets one at every interval (`fast_s` while a fault or its recovery is in force, else
`slow_s`), and at most one is outstanding per model and node. A probe is never given up before `limit_s`, which must be
well above the latency of the loaded cluster; while all nodes of a model have one outstanding, none is sent.

No node gets more than `node_per_s`, whatever the others do: when one stands still its share is not put upon the rest.
A turn that this leaves out shows as a longer gap between attempts, which is what the report gives as the resolution.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Mapping
from typing import Final

from rig.journal.write import Journal
from rig.load.deadlines import GRACE_S, Limits
from rig.load.draw import completions_url
from rig.load.request import Call, perform
from rig.load.tasks import first_error
from rig.load.transport import LoadTransport

_AT_ONCE: Final = 2.0


class Allowance:
    """So many a second on average, and at most two at once. Pure."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = _AT_ONCE
        self._at = 0.0

    def take(self, now: float) -> bool:
        self._left = min(_AT_ONCE, self._left + max(now - self._at, 1e-6) * self._per_s)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Prober:
    """`entries` are API addresses by node name. Intervals and limits are used as they are, in seconds."""

    def __init__(  # noqa: PLR0913 (each is a setting of its own)
        self,
        models: list[str],
        entries: Mapping[str, str],
        journal: Journal,
        *,
        fast_s: float = 0.25,
        slow_s: float = 10.0,
        node_per_s: float = math.inf,
        limit_s: float = 60.0,
        connect_s: float = 3.0,
        grace_s: float = GRACE_S,
    ) -> None:
        self._models = models
        self._entries = [(name, completions_url(url)) for name, url in entries.items()]
        self._journal = journal
        self._fast_s = fast_s
        self._slow_s = slow_s
        self._limits = Limits(min(connect_s, limit_s), progress_s=limit_s, total_s=limit_s, end_s=grace_s)
        self._transport = LoadTransport(journal.now)
        self._numbers = itertools.count(1)
        self._outstanding: set[tuple[str, str]] = set()
        self._allowances = {name: Allowance(node_per_s) for name in entries}
        self._fast = False
        self._wake = asyncio.Event()

    @property
    def fast(self) -> bool:
        return self._fast

    @fast.setter
    def fast(self, value: bool) -> None:
        """Switching to fast probes at once."""
        if value and not self._fast:
            self._wake.set()
        self._fast = value

    @property
    def outstanding(self) -> int:
        return len(self._outstanding)

    async def run(self, stop: asyncio.Event) -> None:
        """Return when every probe has ended after `stop` was set. Raises what a probe raised (JournalError)."""
        stopper = asyncio.ensure_future(self._wake_at(stop))
        try:
            async with asyncio.TaskGroup() as group:
                for turn in itertools.count():
                    if stop.is_set():
                        break
                    for step in range(len(self._models)):  # the first in turn, too: it may leave nothing for the last
                        place = (turn + step) % len(self._models)
                        self._probe(group, self._models[place], turn + place)
                    await self._interval(stop)
        except BaseExceptionGroup as group:
            raise first_error(group) from None
        finally:
            stopper.cancel()

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    async def _interval(self, stop: asyncio.Event) -> None:
        """Wait for the interval that is in force when it began; a switch to fast, or the stop, ends it."""
        if not stop.is_set():
            self._wake.clear()
        try:
            async with asyncio.timeout(self._fast_s if self._fast else self._slow_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _probe(self, group: asyncio.TaskGroup, model: str, turn: int) -> None:
        """Send one through the first node, from this turn's on, that may get one and has none outstanding."""
        count = len(self._entries)
        for step in range(count):
            name, url = self._entries[(turn + step) % count]
            if (model, name) in self._outstanding or not self._allowances[name].take(self._journal.now()):
                continue
            self._outstanding.add((model, name))
            call = Call(
                id=f"p{next(self._numbers)}",
                source="probe",
                client="prober",
                model=model,
                entry=name,
                url=url,
                streamed=True,
                prompt="Say one word.",
                prompt_tokens=4,
                max_tokens=1,
                limits=self._limits,
                planned_t=self._journal.now(),
            )
            group.create_task(self._send(call))
            return

    async def _send(self, call: Call) -> None:
        try:
            await perform(call, self._transport, self._journal)
        finally:
            self._outstanding.discard((call.model, call.entry))
