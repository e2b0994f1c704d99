"""What a node tells the cluster about itself: interfaces, memory, backends, and which peers it reaches.

In a new session it arrives in pieces, one after another: placement can use it when it has told the last.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from rig.lab.exo.context import Context
from rig.lab.exo.election import Election
from rig.lab.exo.events import NodeGatheredInfo, NodeInfo, TopologyEdgeCreated, TopologyEdgeDeleted
from rig.lab.exo.replica import Replica
from rig.lab.exo.worker import Worker

_PIECES: Final[tuple[Literal["network", "memory", "backends"], ...]] = ("network", "memory", "backends", "memory")
"""One after another; the last again and again, once a second from the first time on."""
_GAPS: Final = (0.25, 0.25, 0.75)


class Informer:
    def __init__(self, ctx: Context, replica: Replica, election: Election, worker: Worker) -> None:
        self._ctx = ctx
        self._replica = replica
        self._election = election
        self._worker = worker
        self._told = 0  # how many of its pieces this session has
        self._memory_at = math.inf
        self._network_at = math.inf
        self._probe_at = math.inf

    def next_deadline(self) -> float:
        return min(self._memory_at, self._network_at, self._probe_at)

    def start(self, now: float) -> None:
        timers = self._ctx.timers
        self._memory_at = self._network_at = now + timers.first_info_s
        self._probe_at = now + timers.probe_s * self._ctx.rng.uniform(0.5, 1.0)

    def session_changed(self, now: float) -> None:
        """A new session knows nothing of this node until it says something; unless it has not begun to speak yet."""
        self._told = 0
        if self._memory_at < math.inf:
            self._memory_at = min(self._memory_at, now + self._ctx.timers.info_s / 4)

    def tick(self, now: float) -> None:
        timers = self._ctx.timers
        if now >= self._memory_at:
            piece = _PIECES[min(self._told, len(_PIECES) - 1)]
            self._told += 1
            self._memory_at = now + timers.info_s * (_GAPS[self._told - 1] if self._told <= len(_GAPS) else 1.0)
            self._replica.local(NodeGatheredInfo(self._ctx.node_id, self._info(), piece))
        if now >= self._network_at:
            self._network_at = now + timers.network_info_s
            self._replica.local(NodeGatheredInfo(self._ctx.node_id, self._info(), "network"))
        if now >= self._probe_at:
            self._probe_at = now + timers.probe_s
            if self._replica.caught_up:
                self._probe()

    def _info(self) -> NodeInfo:
        name, address, total = self._ctx.name, self._ctx.address, self._ctx.memory_bytes
        if self._told < 2:
            return NodeInfo(name, address, 0, 0, backends=())
        free = max(0, total - self._worker.memory_used())
        return NodeInfo(name, address, total, free) if self._told > 2 else NodeInfo(name, address, total, free, ())

    def _probe(self) -> None:
        """Links from here, as the state has them, become those that stand."""
        state, me = self._replica.state, self._ctx.node_id
        reached = {n for n in self._election.living().values() if n in state.nodes}
        listed = {sink: edge for (source, sink), edge in state.edges.items() if source == me}
        for sink in sorted(reached - set(listed)):
            self._replica.local(TopologyEdgeCreated(me, sink, state.nodes[sink].address))
        for sink in sorted(set(listed) - reached):
            self._replica.local(TopologyEdgeDeleted(me, sink, listed[sink].address))
