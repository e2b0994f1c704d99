"""Observation as one activity of a run: views, logs, the rig's own health; and, when asked, events.

`Observer.view` is the latest of everything by inventory names, for aiming faults and for the live view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from rig.errors import TargetError
from rig.journal.records import InstanceServed
from rig.journal.write import Journal
from rig.nodes.node import Nodes
from rig.observe.cluster_view import ClusterView
from rig.observe.events import EventLogs
from rig.observe.logs import LogFollower
from rig.observe.together import run_until
from rig.observe.watch import Attention, WatchTiming, watch
from rig.targets.target import Target


class Observer:
    """`urls` maps inventory nodes to their API; `connections` (may be empty) are the nodes whose logs are followed.

    `health` journals that of the rig itself until it is cancelled.
    """

    def __init__(
        self,
        target: Target,
        urls: Mapping[str, str],
        journal: Journal,
        *,
        connections: Nodes,
        timing: WatchTiming,
        health: Callable[[Journal], Coroutine[Any, Any, None]],
    ) -> None:
        self._target = target
        self._urls = dict(urls)
        self._journal = journal
        self._connections = connections
        self._timing = timing
        self._health = health
        self._events = EventLogs(target, journal, connections=self._connections)
        self._reading = asyncio.Lock()
        self.attention: Attention = "close"
        self.view = ClusterView(list(urls))
        journal.subscribe(self.view.apply)

    async def run(self, stop: asyncio.Event) -> None:
        """Observe until `stop`. Raises JournalError; what goes wrong with the target or with SSH is journalled."""
        followers = [LogFollower(node, self._target, self._journal).run() for node in self._connections.values()]
        await run_until(
            stop,
            watch(self._target, self._urls, self._journal, self._timing, lambda: self.attention),
            self._health(self._journal),
            *followers,
        )

    async def read_events(self, nodes: Iterable[str] | None = None, *, most_events: int | None = None) -> int:
        """Read the event logs of these nodes, by default of the masters, else of the node that knows most.

        Where its file cannot be read it costs the node the whole log: call it around faults and at the end, not in
        between. Such a log that is known to be longer than `most_events` is left for later, with a finding. Returns the
        records written.
        """
        written = 0
        async with self._reading:
            for node in self._worth_reading() if nodes is None else nodes:
                known = self.view.event_index(node) or 0
                written += await self._events.read(node, self._urls[node], most_events=most_events, known_events=known)
        return written

    def _worth_reading(self) -> list[str]:
        masters = sorted(node for node in self.view.masters if node in self._urls)
        best = self.view.best()
        return masters or ([] if best is None else [best])

    async def who_served(self, response_ids: Iterable[str]) -> dict[str, str]:
        """Response id → instance, asked of the nodes in turn; journalled. Those that nobody knows are left out."""
        wanted = set(response_ids)
        found: dict[str, str] = {}
        best = self.view.best()
        for node in sorted(self._urls, key=lambda name: name != best):
            if not wanted or self.view.reachable(node) is False:
                continue
            try:
                told = await self._target.served_by(self._urls[node], wanted)
            except TargetError:
                continue  # that it does not answer is in the journal by its polls
            for instance in dict.fromkeys(told.values()):
                response_ids = [response_id for response_id, its in told.items() if its == instance]
                t = self._journal.now()
                self._journal.write(InstanceServed(t=t, node=node, instance=instance, response_ids=response_ids))
            found |= told
            wanted -= told.keys()
        return found
