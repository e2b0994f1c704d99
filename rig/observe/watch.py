"""Polling every node's paths, each node on its own, and journalling what changed.

A frozen node delays nobody's polls but its own, and there is never more than one request outstanding per node. Looking
may be dear: a node may dump its whole state for each path, and do nothing else meanwhile. So rounds are few while
nothing happens, and whatever an answer takes, rounds are so far apart that answering them is a bounded share of a
node's time. What a node paid is journalled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from rig.errors import TargetError, TargetMisread, TargetUnreachable
from rig.journal.records import Facet, Finding, Looked, Reachability, ViewChanged
from rig.journal.write import Journal
from rig.observe.changes import Change, FacetTracker
from rig.observe.together import run_together
from rig.targets.target import Answered, Poll, ShowsViews

Attention: TypeAlias = Literal["calm", "sparing", "close"]
"""How closely to look: nothing happens; something does, but the nodes are being probed quickly; it does."""
LONGEST_S: Final = 30.0
"""Between two rounds, however long answers take."""
LEAST_PAUSE_S: Final = 0.001
"""What is left by rounding alone no clock may ever reach."""


@dataclass(frozen=True)
class WatchTiming:
    """Seconds as they pass (already divided by the pace). `…_share`: how much of a node's time answers may take."""

    close_s: float = 1.0  # between the starts of two rounds over the paths
    sparing_s: float = 3.0
    calm_s: float = 5.0
    close_share: float = 0.25  # and `sparing`
    calm_share: float = 0.1
    timeout_s: float = 2.0  # for one answer, whole
    rare_s: float = 10.0  # between two looks at what rarely changes
    index_s: float = 1.0  # the event index changes at every poll: it is journalled no more often than this
    looked_s: float = 30.0  # between two records of what looking cost

    def interval_s(self, attention: Attention, round_s: float) -> float:
        """Between the starts of two rounds, where the answers of the last one took `round_s` together."""
        match attention:
            case "calm":
                least_s, share = self.calm_s, self.calm_share
            case "sparing":
                least_s, share = self.sparing_s, self.close_share
            case "close":
                least_s, share = self.close_s, self.close_share
        return max(least_s, min(round_s / share, LONGEST_S))


async def watch(
    views: ShowsViews,
    urls: Mapping[str, str],
    journal: Journal,
    timing: WatchTiming,
    attention: Callable[[], Attention],
) -> None:
    """Watch all nodes (name → URL) until cancelled. Raises JournalError. `attention` may change at any time."""
    step_s = timing.close_s / max(1, len(urls))  # the nodes are asked in turn, not all in the same moment
    loops = [
        NodeWatch(views, node, url, journal, timing, attention).run(delay_s=position * step_s)
        for position, (node, url) in enumerate(urls.items())
    ]
    await run_together(*loops)


class NodeWatch:
    """The poll loop of one node."""

    def __init__(
        self,
        views: ShowsViews,
        node: str,
        url: str,
        journal: Journal,
        timing: WatchTiming,
        attention: Callable[[], Attention],
    ) -> None:
        self._views = views
        self._node = node
        self._url = url
        self._journal = journal
        self._timing = timing
        self._attention = attention
        self._tracker = FacetTracker()
        self._round = 0
        self._round_s = 0.0  # what the answers of the present round took
        self._rare_at = 0.0  # on the run's clock
        self._reachable: bool | None = None
        self._asked_t: float | None = None  # when the latest poll of which the outcome is known was sent
        self._unreadable: set[str] = set()
        self._held_index: Change | None = None
        self._index_at = float("-inf")
        self._cost = Cost(journal.now())

    async def run(self, *, delay_s: float = 0.0) -> None:
        """Rounds at the interval until cancelled; one that took longer is followed by the next at once, not by two."""
        await asyncio.sleep(delay_s)
        try:
            while True:
                begun_t = self._journal.now()
                await self.round()
                await self._pause(begun_t)
                if self._journal.now() - self._cost.since_t >= self._timing.looked_s:
                    self.tell_cost()
        finally:
            if not self._journal.failed:
                self.tell_cost()

    async def _pause(self, begun_t: float) -> None:
        """Until the next round is due; that may come nearer while it is awaited."""
        while (left_s := begun_t + self._interval_s() - self._journal.now()) > LEAST_PAUSE_S:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, self._timing.close_s))

    def _interval_s(self) -> float:
        return self._timing.interval_s(self._attention(), self._round_s)

    async def round(self) -> None:
        """One round over what is due. It ends with the first request that nobody answers."""
        rare = self._journal.now() >= self._rare_at
        often = self._attention() != "close"  # rounds are few then, and look at everything
        polls = [poll for poll in self._views.polls if (rare if poll.rare else often or self._round % poll.every == 0)]
        self._round += 1
        self._round_s = 0.0
        for poll in polls:
            if not await self._ask(poll):
                self._rare_at = 0.0  # it may be another process when it answers again
                return
        if rare:
            self._rare_at = self._journal.now() + self._timing.rare_s

    async def _ask(self, poll: Poll) -> bool:
        asked_t = self._journal.now()
        self._cost.asked += 1
        try:
            answered = await self._views.read(self._url, poll, timeout_s=self._timing.timeout_s)
        except TargetUnreachable as error:
            self._cost.unanswered += 1
            self._tell_reachable(asked_t, reachable=False, detail=error.message)
            return False
        except TargetError as error:
            self._paid(asked_t)
            self._tell_reachable(asked_t, reachable=True)
            self._tell_unreadable(poll, error.message, misread=isinstance(error, TargetMisread))
            return True
        self._paid(asked_t)
        self._tell_reachable(asked_t, reachable=True)
        if answered.doubts:
            self._tell_unreadable(poll, f"{poll.name}: {'; '.join(answered.doubts)}", misread=True)
        else:
            self._unreadable.discard(poll.name)
        self._take(answered, asked_t)
        return True

    def _paid(self, asked_t: float) -> None:
        took_s = self._journal.now() - asked_t
        self._round_s += took_s
        self._cost.answer_s += took_s
        self._cost.longest_s = max(self._cost.longest_s, took_s)

    def _take(self, answered: Answered, asked_t: float) -> None:
        for facet, value in answered.facets.items():
            change = self._tracker.take(facet, value, asked_t)
            if facet == "event_index":
                self._tell_index(change)
            elif change is not None:
                self._tell(change)

    def tell_cost(self) -> None:
        """Journal what looking cost since the last time."""
        now, cost = self._journal.now(), self._cost
        if not cost.asked:
            return
        self._journal.write(
            Looked(
                t=now,
                node=self._node,
                since_t=cost.since_t,
                asked=cost.asked,
                unanswered=cost.unanswered,
                answer_s=round(cost.answer_s, 4),
                longest_s=round(cost.longest_s, 4),
                interval_s=round(self._interval_s(), 3),
                misread=cost.misread,
            )
        )
        self._cost = Cost(now)

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

    def _tell_unreadable(self, poll: Poll, message: str, *, misread: bool) -> None:
        """Once, until the path can be read again. `misread`: it was a good answer, but not understood; counted."""
        if misread:
            self._cost.misread[poll.facets[0]] = self._cost.misread.get(poll.facets[0], 0) + 1
        if poll.name in self._unreadable:
            return
        self._unreadable.add(poll.name)
        code = "answer-not-understood" if misread else "unreadable-answer"
        data = {"node": self._node, "path": poll.name} | ({"facets": list(poll.facets)} if misread else {})
        self._journal.write(Finding(t=self._journal.now(), code=code, text=message[:500], data=data))


@dataclass
class Cost:
    """Of looking at one node since `since_t`; see `Looked`."""

    since_t: float
    asked: int = 0
    unanswered: int = 0
    answer_s: float = 0.0
    longest_s: float = 0.0
    misread: dict[Facet, int] = field(default_factory=dict[Facet, int])
