"""The prober: one-token requests to every model through every entry node in turn, apart from the load.

Probes are load too: a model gets one at every interval (`fast_s` while a fault or its recovery is in force, else
`slow_s`), through a node whose last one has ended. A probe is never given up before `limit_s`, which must be well above
the latency of the loaded cluster. But one that hangs must not hide for so long that the others would be served (what
waits at an instance that is gone says nothing of the new one): the next one goes beside it when it has waited for
`patience_s`, the third after twice that, and so on, until `MOST_WAITING` wait. So few hang, and the gap between two
stays in proportion to the outage. Nothing sent before a heal, or before a model had a new instance, holds back what
comes after (time to serve is that of a request *started* after the heal): waits are counted anew, and only
`MOST_OUTSTANDING` bounds all of them together.

No node gets more than `node_per_s`, whatever the others do: when one stands still its share is not put upon the rest.
A turn that this leaves out shows as a longer gap between attempts, which is what the report gives as the resolution.
So that nobody is left out again and again, the model that has waited longest comes first, and goes through the node
through which it was probed longest ago.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from rig.journal.write import Journal
from rig.load.deadlines import GRACE_S, Limits
from rig.load.draw import completions_url
from rig.load.request import Call, perform
from rig.load.tasks import first_error
from rig.load.transport import LoadTransport

MOST_WAITING: Final = 5  # per model and node, since something else may serve
MOST_OUTSTANDING: Final = 3 * MOST_WAITING  # likewise, in all: of an outage, after its heal, at a new instance
_Way: TypeAlias = tuple[str, str]
"""Model and entry node."""
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
        patience_s: float = 3.0,
        connect_s: float = 3.0,
        grace_s: float = GRACE_S,
        token_a_chunk: bool = True,
    ) -> None:
        self._token_a_chunk = token_a_chunk
        self._urls = {name: completions_url(url) for name, url in entries.items()}
        self._models = list(models)  # the one probed longest ago first
        self._nodes = {model: list(entries) for model in models}  # of each model, likewise
        self._journal = journal
        self._fast_s = fast_s
        self._slow_s = slow_s
        self._limits = Limits(min(connect_s, limit_s), progress_s=limit_s, total_s=limit_s, end_s=grace_s)
        self._transport = LoadTransport(journal.now)
        self._numbers = itertools.count(1)
        self._patience_s = patience_s
        self._newest: dict[_Way, tuple[str, float]] = {}  # the last probe and when it was sent, while it is outstanding
        self._waiting: defaultdict[_Way, set[str]] = defaultdict(set)  # outstanding, and sent since it was renewed
        self._outstanding: Counter[_Way] = Counter()
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
        """How many probes have been sent and have not ended."""
        return self._outstanding.total()

    def renew(self, models: Collection[str] | None = None) -> None:
        """Something else may serve now: probe these models (all, if None) at once, whatever is still outstanding."""
        for way in [way for way in self._waiting if models is None or way[0] in models]:
            del self._waiting[way]
            self._newest.pop(way, None)
        self._wake.set()

    def _may_send(self, way: _Way) -> bool:
        """Whether nothing outstanding holds back a new one."""
        waiting, newest = len(self._waiting[way]), self._newest.get(way)
        if waiting >= MOST_WAITING or self._outstanding[way] >= MOST_OUTSTANDING:
            return False
        return newest is None or self._journal.now() >= newest[1] + self._patience_s * 2 ** (waiting - 1)

    async def run(self, stop: asyncio.Event) -> None:
        """Return when every probe has ended after `stop` was set. Raises what a probe raised (JournalError)."""
        stopper = asyncio.ensure_future(self._wake_at(stop))
        try:
            async with asyncio.TaskGroup() as group:
                while not stop.is_set():
                    for model in list(self._models):
                        self._probe(group, model)
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

    def _probe(self, group: asyncio.TaskGroup, model: str) -> None:
        """Send one through the first of its nodes that may get one and to which nothing outstanding holds it back."""
        nodes = self._nodes[model]
        for name in nodes:
            way, now = (model, name), self._journal.now()
            if not self._may_send(way) or not self._allowances[name].take(now):
                continue
            for order, one in ((self._models, model), (nodes, name)):
                order.remove(one)
                order.append(one)
            call = Call(
                id=f"p{next(self._numbers)}",
                source="probe",
                client="prober",
                model=model,
                entry=name,
                url=self._urls[name],
                streamed=True,
                prompt="Say one word.",
                prompt_tokens=4,
                max_tokens=1,
                limits=self._limits,
                planned_t=now,
                token_a_chunk=self._token_a_chunk,
            )
            self._newest[way] = call.id, now
            self._waiting[way].add(call.id)
            self._outstanding[way] += 1
            group.create_task(self._send(call))
            return

    async def _send(self, call: Call) -> None:
        try:
            await perform(call, self._transport, self._journal)
        finally:
            way = call.model, call.entry
            self._waiting[way].discard(call.id)
            self._outstanding[way] -= 1
            if way in self._newest and self._newest[way][0] == call.id:
                del self._newest[way]
