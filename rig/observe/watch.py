"""Polling every node's cheap paths, each node on its own, and journalling what changed.

A frozen node delays nobody's polls but its own, and there is never more than one request outstanding per node. At the
stock interval of 1.1 s exo is asked 4.3 times a second per node; while probes are quick, every 3 s, that is 1.9 times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rig.errors import TargetError, TargetUnreachable
from rig.journal.records import Facet, Finding, Reachability, ViewChanged
from rig.journal.write import Journal
from rig.observe.target import Poll, Target
from rig.observe.together import run_together
from rig.observe.views import Change, FacetTracker


@dataclass(frozen=True)
class WatchTiming:
    """Seconds as they pass (already divided by the pace)."""

    interval_s: float = 1.0  # between the starts of two rounds over the cheap paths
    timeout_s: float = 2.0  # for one answer, whole
    rare_s: float = 10.0  # between two looks at what rarely changes
    index_s: float = 1.0  # the event index changes at every poll: it is journalled no more often than this
    sparing_s: float = 3.0  # instead of `interval_s` while a node's requests are needed for something else


def _never() -> bool:
    return False


async def watch(
    target: Target,
    urls: Mapping[str, str],
    journal: Journal,
    timing: WatchTiming,
    sparing: Callable[[], bool] = _never,
) -> None:
    """Watch all nodes (name → URL) until cancelled. Raises JournalError. `sparing` is asked before each round."""
    step_s = timing.interval_s / max(1, len(urls))  # the nodes are asked in turn, not all in the same moment
    loops = [
        NodeWatch(target, node, url, journal, timing, sparing).run(delay_s=position * step_s)
        for position, (node, url) in enumerate(urls.items())
    ]
    await run_together(*loops)


class NodeWatch:
    """The poll loop of one node."""

    def __init__(
        self,
        target: Target,
        node: str,
        url: str,
        journal: Journal,
        timing: WatchTiming,
        sparing: Callable[[], bool] = _never,
    ) -> None:
        self._target = target
        self._node = node
        self._url = url
        self._journal = journal
        self._timing = timing
        self._sparing = sparing
        self._tracker = FacetTracker()
        self._round = 0
        self._rare_at = 0.0  # on the run's clock
        self._reachable: bool | None = None
        self._asked_t: float | None = None  # when the latest poll of which the outcome is known was sent
        self._unreadable: set[str] = set()
        self._held_index: Change | None = None
        self._index_at = float("-inf")

    async def run(self, *, delay_s: float = 0.0) -> None:
        """Rounds at the interval until cancelled; one that took longer is followed by the next at once, not by two."""
        await asyncio.sleep(delay_s)
        next_at = self._journal.now()
        while True:
            await self.round()
            now = self._journal.now()
            next_at = max(next_at + (self._timing.sparing_s if self._sparing() else self._timing.interval_s), now)
            await asyncio.sleep(next_at - now)

    async def round(self) -> None:
        """One round over what is due. It ends with the first request that nobody answers."""
        rare = self._journal.now() >= self._rare_at
        often = self._sparing()  # rounds are few then, and look at everything
        polls = [poll for poll in self._target.polls if (rare if poll.rare else often or self._round % poll.every == 0)]
        self._round += 1
        for poll in polls:
            if not await self._ask(poll):
                self._rare_at = 0.0  # it may be another process when it answers again
                return
        if rare:
            self._rare_at = self._journal.now() + self._timing.rare_s

    async def _ask(self, poll: Poll) -> bool:
        asked_t = self._journal.now()
        try:
            facets = await self._target.read(self._url, poll, timeout_s=self._timing.timeout_s)
        except TargetUnreachable as error:
            self._tell_reachable(asked_t, reachable=False, detail=error.message)
            return False
        except TargetError as error:
            self._tell_reachable(asked_t, reachable=True)
            self._tell_unreadable(poll, error.message)
            return True
        self._tell_reachable(asked_t, reachable=True)
        self._unreadable.discard(poll.name)
        for facet, value in facets.items():
            change = self._tracker.take(facet, value, asked_t)
            if facet == "event_index":
                self._tell_index(change)
            elif change is not None:
                self._tell(change)
        return True

    def _tell(self, change: Change) -> None:
        t = self._journal.now()
        record = ViewChanged(t=t, node=self._node, facet=change.facet, since_t=change.since_t, value=change.value)
        self._journal.write(record)

    def _tell_index(self, change: Change | None) -> None:
        """Held back for `index_s`, but never lost: an index that stands still after a change is told in the end."""
        before = self._held_index
        held = change or before
        if held is None:
            return
        self._held_index = held
        if self._journal.now() - self._index_at >= self._timing.index_s:
            self._tell(held)
            self._held_index, self._index_at = None, self._journal.now()

    def _tell_reachable(self, asked_t: float, *, reachable: bool, detail: str = "") -> None:
        since_t, self._asked_t = self._asked_t, asked_t
        if reachable is self._reachable:
            return
        self._reachable = reachable
        t = self._journal.now()
        self._journal.write(
            Reachability(t=t, node=self._node, since_t=since_t, reachable=reachable, detail=detail[:300])
        )

    def _tell_unreadable(self, poll: Poll, message: str) -> None:
        """Once, until the path can be read again."""
        if poll.name in self._unreadable:
            return
        self._unreadable.add(poll.name)
        data = {"node": self._node, "path": poll.name}
        self._journal.write(Finding(t=self._journal.now(), code="unreadable-answer", text=message[:500], data=data))


def facets_of(target: Target) -> frozenset[Facet]:
    """The facets that this target has."""
    return frozenset(facet for poll in target.polls for facet in poll.facets)
