"""This node's copy of the log and state of a session, and its own events on their way to the master.

A master appends; a follower installs what the master sends. Own events are kept until they come back in the log, and
sent again after a while or on a new link, so that none is lost while the session lasts.
"""

from __future__ import annotations

import math
from collections import deque

from rig.lab.exo.context import Context
from rig.lab.exo.effects import Send
from rig.lab.exo.events import Entry, Event, EventLog, NodeGatheredInfo, TopologyEdgeCreated
from rig.lab.exo.messages import Events, Follow, LocalEvents, Session, Snapshot
from rig.lab.exo.state import ClusterState

_MAX_UNACKED = 50_000  # own events waiting for the master; the oldest go first
_BATCH = 500


class Replica:
    """`state`, `log` and `session` are for reading; `local` is how the parts of a node announce events."""

    def __init__(self, ctx: Context, session: Session) -> None:
        self._ctx = ctx
        self.session = session
        self.state = ClusterState(**ctx.behaviour.keeps)
        self.log = EventLog()
        self.caught_up = True
        self._stale = False  # the state is of the session before this one
        self._local: list[Event] = []  # not yet numbered
        self._next_seq = 0  # never goes back, so that what an earlier session said is not taken for this one's
        self._base = 0
        self._unacked: deque[tuple[int, Event]] = deque()
        self._unsent_from = 0  # the first own event not sent on this link
        self._flush_at = math.inf
        self._resend_at = math.inf
        self._follow_at = math.inf

    @property
    def next_index(self) -> int:
        return self.log.next_index

    def next_deadline(self) -> float:
        return min(self._flush_at, self._resend_at, self._follow_at)

    # the session

    def begin(self, session: Session, *, keep: bool | None = None) -> None:
        """Enter a session with an empty log. The old state is shown until a snapshot comes where one will come."""
        self.session = session
        keep = self._ctx.behaviour.snapshot if keep is None else keep
        self._stale = keep
        if not keep:
            self.state = ClusterState(**self._ctx.behaviour.keeps)
        self.log = EventLog()
        self.caught_up = False
        self._local.clear()
        self._unacked.clear()
        self._base = self._unsent_from = self._next_seq
        self._flush_at = self._resend_at = math.inf

    def append(self, now: float, entry: Entry) -> None:
        self.log.append(entry)
        if self._sees(entry.event):
            self.state.apply(entry.event, now)

    def _sees(self, event: Event) -> bool:
        """With `restarted_sees_itself` a node that was started again learns of no other one."""
        ctx = self._ctx
        if not (ctx.restarted and ctx.behaviour.restarted_sees_itself):
            return True
        match event:
            case NodeGatheredInfo(node_id):
                return node_id == ctx.node_id
            case TopologyEdgeCreated():
                return False
            case _:
                return True

    def follow_now(self) -> None:
        """Ask the master for what is missing, at the next flush; own events go again from the first one unconfirmed."""
        self._follow_at = -math.inf
        self._unsent_from = self._unacked[0][0] if self._unacked else self._next_seq
        if self._unacked:
            self._flush_at = -math.inf

    def reign(self) -> None:
        """This node is the master of its session: nothing to follow."""
        self.caught_up = True
        self._follow_at = math.inf

    # own events

    def local(self, event: Event) -> None:
        self._local.append(event)

    def take_local(self) -> LocalEvents | None:
        """What was announced since the last call, numbered."""
        if not self._local:
            return None
        batch = LocalEvents(self.session, self._ctx.node_id, self._base, self._next_seq, self._local)
        self._next_seq += len(self._local)
        self._local = []
        return batch

    def queue(self, now: float, batch: LocalEvents) -> None:
        """To be sent to the master."""
        self._unacked.extend(enumerate(batch.events, batch.first_seq))
        while len(self._unacked) > _MAX_UNACKED:
            self._base = self._unacked.popleft()[0] + 1
        self._flush_at = min(self._flush_at, now + self._ctx.timers.flush_s)
        if self._resend_at == math.inf:
            self._resend_at = now + self._ctx.timers.resend_s

    def flush(self, now: float, *, master: str | None) -> None:
        """Send what is due to the master, the peer of this name."""
        out = self._ctx.out
        if now >= self._follow_at:
            self._follow_at = now + self._ctx.timers.follow_retry_s
            if master is not None:
                out.add(Send(master, Follow(self.session, self.next_index)))
        if now >= self._resend_at:
            self._resend_at = now + self._ctx.timers.resend_s if self._unacked else math.inf
            if self._unacked:
                self._unsent_from = self._unacked[0][0]
                self._flush_at = now
        if now < self._flush_at:
            return
        self._flush_at = math.inf
        if master is None or not self._unacked:
            return
        skip = max(0, self._unsent_from - self._unacked[0][0])
        unsent = list(self._unacked)[skip:]
        self._unsent_from = self._next_seq
        for start in range(0, len(unsent), _BATCH):
            part = unsent[start : start + _BATCH]
            events = [event for _, event in part]
            out.add(Send(master, LocalEvents(self.session, self._ctx.node_id, self._base, part[0][0], events)))

    def _confirmed(self, now: float, entry: Entry) -> None:
        if entry.origin == self._ctx.node_id:
            while self._unacked and self._unacked[0][0] <= entry.seq:
                self._unacked.popleft()
            self._resend_at = now + self._ctx.timers.resend_s if self._unacked else math.inf

    # following

    def install(self, now: float, message: Events | Snapshot) -> list[Entry]:
        """Take what the master sent; the events applied just now. A gap is asked for again."""
        if isinstance(message, Snapshot):
            if message.next_index >= self.next_index:
                self._install_snapshot(now, message)
            return []
        fresh = message.entries[max(0, self.next_index - message.first) :]
        if message.first > self.next_index:
            self._follow_at = min(self._follow_at, now)
            return []
        if self._stale and fresh:
            seen, self._stale = self.state.last_seen, False
            self.state = ClusterState(**self._ctx.behaviour.keeps)
            self.state.last_seen.update(seen)
        for entry in fresh:
            self.append(now, entry)
            self._confirmed(now, entry)
        self._followed(message.caught_up)
        return fresh

    def _install_snapshot(self, now: float, message: Snapshot) -> None:
        seen, self._stale = self.state.last_seen, False
        self.state = ClusterState.from_wire(message.state, now, **self._ctx.behaviour.keeps)
        if self._ctx.restarted and self._ctx.behaviour.restarted_sees_itself:
            self.state.forget_others(self._ctx.node_id)
        self.state.last_seen = {n: seen.get(n, now) for n in self.state.nodes}
        self.log = EventLog(message.log_first, list(message.log_blocks), list(message.log_tail))
        while self._unacked and self._unacked[0][0] < message.confirmed:
            self._unacked.popleft()
        self._followed(caught_up=True)

    def _followed(self, caught_up: bool) -> None:  # noqa: FBT001
        self._follow_at = math.inf
        self.caught_up = self.caught_up or caught_up
