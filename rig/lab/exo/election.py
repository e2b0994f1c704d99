"""Links and elections: which peers live, and whose session this node is in.

Any change in the set of living peers starts an election: every node votes for itself with what speaks for it, and
`election_s` later takes the best of what it heard. In exo seniority decides (so that a resumed old master wins and
brings its old state); in the sound behaviour the candidate that stayed in touch with most nodes does, and seniority
only breaks ties. A peer is silent after `silence_low_s`..`silence_high_s` without a message; a closed connection is
noticed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rig.lab.exo.context import Context
from rig.lab.exo.effects import DropLink, Send
from rig.lab.exo.messages import AnyMessage, Candidate, Heartbeat, Hello, Session


@dataclass(slots=True)
class _Peer:
    linked: bool = False
    node_id: str | None = None  # known for this link
    last_id: str | None = None  # known from any link
    last_heard: float = 0.0
    silence_s: float = 0.0
    disagrees_since: float | None = None

    @property
    def alive(self) -> bool:
        return self.linked and self.node_id is not None


class Election:
    """`session` is whose events count; `applied` and `knows` are set by the node and told to the peers."""

    def __init__(self, ctx: Context, peers: Sequence[str]) -> None:
        self._ctx = ctx
        self._peers = {name: _Peer() for name in peers}
        self.session = Session(0, ctx.node_id)
        self.applied = 0
        self.knows = False
        self._lineage = self._next_lineage = ctx.node_id
        self._clock = 0
        self._until: float | None = None
        self._candidates: dict[str, Candidate] = {}
        self._winner: Candidate | None = None
        self._deaf = False
        self._group = 1
        self._seniority = 0
        self._next_beat = 0.0
        self._elected = False  # others have once taken this node for their master
        self._disturbed = False  # a peer was lost

    # questions

    @property
    def campaigning(self) -> bool:
        return self._until is not None

    @property
    def disturbed(self) -> bool:
        """Whether a peer was ever lost."""
        return self._disturbed

    def master_peer(self) -> str | None:
        """The name of the living peer that is master of this session."""
        return self.peer_of(self.session.master)

    def peer_of(self, node_id: str) -> str | None:
        return next((name for name, p in self._peers.items() if p.alive and p.node_id == node_id), None)

    def living(self) -> dict[str, str]:
        """Living peers: name → node id."""
        return {name: p.node_id for name, p in self._peers.items() if p.linked and p.node_id is not None}

    def silence_of(self, node_id: str, now: float) -> float | None:
        """Seconds since a living peer was heard; None when there is no such peer."""
        peer = next((p for p in self._peers.values() if p.alive and p.node_id == node_id), None)
        return None if peer is None else now - peer.last_heard

    def next_deadline(self) -> float:
        due = [self._next_beat]
        if self._until is not None:
            due.append(self._until)
        due += [p.last_heard + p.silence_s for p in self._peers.values() if p.linked]
        return min(due)

    # what happens

    def start(self, now: float) -> None:
        self._next_beat = now + self._ctx.timers.heartbeat_s

    def link_up(self, now: float, name: str) -> None:
        if self._peers[name].linked:
            self.link_down(now, name)
        ctx, peer = self._ctx, self._peers[name]
        peer.linked, peer.node_id, peer.last_heard = True, None, now
        peer.silence_s = ctx.rng.uniform(ctx.timers.silence_low_s, ctx.timers.silence_high_s)
        ctx.out.add(Send(name, Hello(ctx.node_id, ctx.name, ctx.address)))

    def link_down(self, now: float, name: str, *, silent: bool = False) -> None:
        """Idempotent: a host reports the end of a link that was dropped from here, too."""
        peer = self._peers[name]
        was_alive = peer.alive
        peer.linked, peer.node_id, peer.disagrees_since = False, None, None
        self._candidates.pop(name, None)
        if was_alive:
            self._disturbed = True
            self._group = min(self._group, 1 + len(self.living()))
            self._campaign(now, deaf=silent and self._ctx.rng.random() < self._ctx.behaviour.deaf_election_chance)

    def hello(self, now: float, name: str, message: Hello) -> str | None:
        """The id the peer had before, when it was started anew since."""
        peer = self._peers[name]
        before = peer.last_id
        peer.node_id = peer.last_id = message.node_id
        self._campaign(now)
        return before if before is not None and before != message.node_id else None

    def heard(self, now: float, name: str) -> None:
        self._peers[name].last_heard = now

    def heartbeat(self, now: float, name: str, message: Heartbeat) -> None:
        peer = self._peers[name]
        if message.session == self.session or self.campaigning:
            peer.disagrees_since = None
        elif peer.disagrees_since is None:
            peer.disagrees_since = now

    def candidate(self, now: float, name: str, message: Candidate) -> None:
        if not self._peers[name].alive:
            return
        if message.clock > self._clock:
            self._begin(now, message.clock)
        if message.clock < self._clock:
            self._ctx.out.add(Send(name, self._own()))
            return
        self._candidates[name] = message
        late = not self.campaigning and self._winner is not None
        if late and self._winner is not None and self._best([self._winner, message]) is message:
            self._campaign(now)

    def silent(self, now: float) -> list[str]:
        """Peers given up just now; their links are dropped."""
        quiet = [n for n, p in self._peers.items() if p.linked and now >= p.last_heard + p.silence_s]
        for name in quiet:
            self._ctx.out.add(DropLink(name, "silent"))
            self.link_down(now, name, silent=True)
        return quiet

    def tick(self, now: float) -> Session | None:
        """The winner's session, when an election ended just now."""
        ctx = self._ctx
        if now >= self._next_beat:
            self._next_beat = now + ctx.timers.heartbeat_s
            self._to_all(Heartbeat(ctx.node_id, self.session, self.applied))
            since = [p.disagrees_since for p in self._peers.values() if p.disagrees_since is not None]
            if since and now - min(since) >= ctx.timers.disagreement_s and not self.campaigning:
                self._campaign(now)
        if self._until is None or now < self._until:
            return None
        return self._end(now)

    def caught_up(self) -> None:
        """This node holds the state of the session it is in."""
        self._lineage = self._next_lineage

    def shift(self, gap: float) -> None:
        """This process stood still for `gap` seconds: nobody was silent, no time was given to vote."""
        for peer in self._peers.values():
            peer.last_heard += gap
        if self._until is not None:
            self._until += gap

    # voting

    def _campaign(self, now: float, *, deaf: bool = False) -> None:
        self._begin(now, self._clock + 1, deaf=deaf)

    def _begin(self, now: float, clock: int, *, deaf: bool = False) -> None:
        self._deaf = deaf or (self._deaf and self.campaigning)
        self._clock = clock
        self._until = now + self._ctx.timers.election_s
        self._candidates = {}
        for peer in self._peers.values():
            peer.disagrees_since = None
        self._to_all(self._own())

    def _own(self) -> Candidate:
        ctx = self._ctx
        mine = self.session.master == ctx.node_id
        proposed = self.session if mine else Session(self._clock, ctx.node_id)
        return Candidate(self._clock, ctx.node_id, self._group, self._seniority, proposed, self._lineage, self.knows)

    def _key(self, candidate: Candidate, known: set[str]) -> tuple[int, int, int, int, str]:
        """The greatest wins. `known`: lineages of which some candidate knows deployments or instances."""
        if self._ctx.behaviour.senior_master_wins:
            return (0, candidate.seniority, candidate.group, 0, candidate.node_id)
        # Nodes that were started anew must not bring their empty state to those who know better. And a master
        # that kept its nodes goes before others of its group: no change of master without need.
        knows = int(candidate.lineage in known)
        reigns = int(candidate.proposed.clock != candidate.clock)
        return (knows, candidate.group, reigns, candidate.seniority, candidate.node_id)

    def _best(self, candidates: Sequence[Candidate]) -> Candidate:
        known = {c.lineage for c in candidates if c.knows}
        return max(candidates, key=lambda c: self._key(c, known))

    def _end(self, now: float) -> Session:
        own = self._own()
        heard = [] if self._deaf else [c for name, c in self._candidates.items() if self._peers[name].alive]
        best = own if self._stays() else self._best([own, *heard])
        self._until = None
        self._winner = best
        self._elected = self._elected or (best is own and bool(heard))
        self._group = 1 + len(heard)
        if best is own:
            self._seniority = max(self._seniority, 1 + len(heard))
        self.session = best.proposed
        self._next_lineage = best.lineage
        if self._ctx.behaviour.endless_election and self._disturbed:
            self._campaign(now)
        return best.proposed

    def _stays(self) -> bool:
        """With `masters_stay`: this master yields to nobody."""
        return self._ctx.behaviour.masters_stay and self._elected and self.session.master == self._ctx.node_id

    def _to_all(self, message: AnyMessage) -> None:
        for name, peer in self._peers.items():
            if peer.linked:
                self._ctx.out.add(Send(name, message))
