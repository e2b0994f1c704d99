"""Observation as one activity of a run: views, logs, the rig's own health; and, when asked, events.

`Observer.view` is the latest of everything by inventory names, for aiming faults and for the live view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from rig.errors import TargetError
from rig.journal.records import InstanceServed
from rig.journal.write import Journal
from rig.nodes.node import Nodes
from rig.observe.cluster_view import ClusterView
from rig.observe.events import EventLogs
from rig.observe.logs import LogFollower
from rig.observe.own import own_health
from rig.observe.together import run_until
from rig.observe.watch import Attention, WatchTiming, watch
from rig.targets.target import Target


class Observer:
    """`urls` maps inventory nodes to their API; `connections` (may be empty) are the nodes whose logs are followed."""

    def __init__(
        self,
        target: Target,
        urls: Mapping[str, str],
        journal: Journal,
        *,
        connections: Nodes | None = None,
        timing: WatchTiming | None = None,
    ) -> None:
        self._target = target
        self._urls = dict(urls)
        self._journal = journal
        self._connections: Nodes = connections or {}
        self._timing = timing or WatchTiming()
        log = target.event_log
        self._events = None if log is None else EventLogs(log, journal, connections=self._connections)
        self._reading = asyncio.Lock()
        self.attention: Attention = "close"
        self.view = ClusterView(list(urls), target.instances)
        journal.subscribe(self.view.apply)

    async def run(self, stop: asyncio.Event) -> None:
        """Observe until `stop`. Raises JournalError; what goes wrong with the target or with SSH is journalled."""
        views, primary = self._target.views, self._target.primary
        watching = list[Coroutine[Any, Any, None]]()
        if views is not None:
            watching.append(watch(views, self._urls, self._journal, self._timing, lambda: self.attention))
        if primary is not None:
            watching += [LogFollower(node, primary, self._journal).run() for node in self._connections.values()]
        await run_until(stop, own_health(self._journal), *watching)

    async def read_events(self, nodes: Iterable[str] | None = None, *, most_events: int | None = None) -> int:
        """Read the event logs of these nodes, by default of the masters, else of the node that knows most.

        Where its file cannot be read it costs the node the whole log: call it around faults and at the end, not in
        between. Such a log that is known to be longer than `most_events` is left for later, with a finding. Returns the
        records written.
        """
        written = 0
        if self._events is None:
            return written
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
        wanted, asked = set(response_ids), self._target.who_served
        found: dict[str, str] = {}
        if asked is None:
            return found
        best = self.view.best()
        for node in sorted(self._urls, key=lambda name: name != best):
            if not wanted or self.view.reachable(node) is False:
                continue
            try:
                told = await asked.served_by(self._urls[node], wanted)
            except TargetError:
                continue  # that it does not answer is in the journal by its polls
            for instance in dict.fromkeys(told.values()):
                response_ids = [response_id for response_id, its in told.items() if its == instance]
                t = self._journal.now()
                self._journal.write(InstanceServed(t=t, node=node, instance=instance, response_ids=response_ids))
            found |= told
            wanted -= told.keys()
        return found
