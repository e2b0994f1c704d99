"""One node of the cluster: election, state, master, keeper, worker and API, put together. This is the seam for hosts.

A host (a real process, or a simulation) creates a `NodeLogic`, calls `start`, and then tells it what happens:

  - `link_up(now, peer)` when a connection to `peer` (a name) stands, `link_down(now, peer)` when it ended, for
    whatever reason. One connection a pair of nodes carries both directions; a new one replaces an old one
    (`link_down`, then `link_up`). The host dials peers without a link every `timers.redial_s`, each attempt with a
    time-out of its own, as attempts may be swallowed by a filter.
- `receive(now, peer, message)` for each message, in order.
- `runner_report(now, runner_id, report)` and `runner_exited(now, runner_id, signal)`, both at once when they happen.
  (That a death is noticed late is the logic's business.)
- `chat`, `client_gone`, `create_deployment`, … for what clients ask of its API.
- `tick(now)` at the latest when `next_deadline()` has come.

Each call returns effects to be carried out in order. `now` is seconds on any monotonic clock of the node and never
goes back. Hosts send keep-alives to waiting clients by themselves, every `timers.keepalive_s`, until `EndStream`.

Nothing here reads a clock, opens a socket or draws from a global random source.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from rig.lab.exo import views
from rig.lab.exo.api import Api
from rig.lab.exo.api_types import Accepted as ChatAccepted
from rig.lab.exo.api_types import ChatRequest, Reply
from rig.lab.exo.behaviour import Behaviour, Timers
from rig.lab.exo.context import Context
from rig.lab.exo.effects import Effect, Exit, MasterLog, Send
from rig.lab.exo.election import Election
from rig.lab.exo.events import Entry, Event, NodeGatheredInfo, StateCarried
from rig.lab.exo.habits import Costs
from rig.lab.exo.informer import Informer
from rig.lab.exo.master import Master
from rig.lab.exo.messages import (
    Accepted,
    AnyMessage,
    Candidate,
    Command,
    Events,
    Fatal,
    Follow,
    Heartbeat,
    Hello,
    LocalEvents,
    RingBroken,
    RingHung,
    Session,
    Snapshot,
)
from rig.lab.exo.models import STOCK_MODELS, Model
from rig.lab.exo.replica import Replica
from rig.lab.exo.runner import RunnerReport
from rig.lab.exo.state import ClusterState
from rig.lab.exo.worker import Worker

DEFAULT_MEMORY_BYTES: Final = 8 * 1024**3
_MAX_ROUNDS: Final = 16


class NodeLogic:
    """`name`, `address` (for its API, as peers see it) and `peers` (names) are fixed; the node id is new each time."""

    def __init__(  # noqa: PLR0913 - who it is and how it behaves, each said once at its creation
        self,
        name: str,
        address: str,
        peers: Sequence[str],
        *,
        behaviour: Behaviour,
        timers: Timers,
        rng: random.Random,
        models: Mapping[str, Model] = STOCK_MODELS,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        restarted: bool = False,
    ) -> None:
        self._ctx = Context(name, address, behaviour, timers, rng, models, memory_bytes, restarted)
        self._election = Election(self._ctx, peers)
        self._replica = Replica(self._ctx, self._election.session)
        self._worker = Worker(self._ctx, self._replica, self._election)
        self._api = Api(self._ctx, self._replica, self._election)
        self._costs = Costs(self._ctx)
        self._informer = Informer(self._ctx, self._replica, self._election, self._worker)
        self._master: Master | None = None
        self._exited = False
        self._last_call: float | None = None

    # what it is

    @property
    def name(self) -> str:
        return self._ctx.name

    @property
    def node_id(self) -> str:
        return self._ctx.node_id

    @property
    def is_master(self) -> bool:
        return self._master is not None

    @property
    def session(self) -> Session:
        return self._election.session

    @property
    def state(self) -> ClusterState:
        return self._replica.state

    @property
    def replica(self) -> Replica:
        """State, log and index, for `views`."""
        return self._replica

    @property
    def open_requests(self) -> Mapping[str, object]:
        """Requests this API has not ended, by command id."""
        return self._api.requests

    @property
    def placements_in_flight(self) -> int:
        """Placements the keeper has decided and that are no event yet."""
        return 0 if self._master is None else self._master.in_flight

    @property
    def memory_used(self) -> int:
        """Bytes held by this node's runners."""
        return self._worker.memory_used()

    # time and links

    def start(self, now: float) -> list[Effect]:
        """Once, first. The node begins as its own master; elections with its peers follow as links come up."""
        self._last_call = now
        self._election.start(now)
        self._informer.start(now)
        self._ctx.out.log(f"Starting node {self.node_id}")
        self._become_master(now, StateCarried())
        self._ctx.out.log("Node elected Master - promoting self")
        return self._finish(now)

    def link_up(self, now: float, peer: str) -> list[Effect]:
        self._notice_pause(now)
        self._election.link_up(now, peer)
        return self._finish(now)

    def link_down(self, now: float, peer: str) -> list[Effect]:
        self._notice_pause(now)
        self._link_lost(now, peer)
        return self._finish(now)

    def receive(self, now: float, peer: str, message: AnyMessage) -> list[Effect]:
        """A message that came over the link to `peer`."""
        self._notice_pause(now)
        self._election.heard(now, peer)
        self._dispatch(now, peer, message)
        return self._finish(now)

    def tick(self, now: float) -> list[Effect]:
        self._notice_pause(now)
        for peer in self._election.silent(now):
            self._link_lost(now, peer)
        self._conclude(now, self._election.tick(now))
        self._informer.tick(now)
        if self._master is not None:
            self._master.tick(now)
        self._worker.tick(now)
        self._api.tick(now)
        return self._finish(now)

    def next_deadline(self) -> float:
        """The time by which `tick` must be called again (it may lie in the past: then at once)."""
        parts = (self._election, self._replica, self._informer, self._worker, self._api)
        due = min(part.next_deadline() for part in parts)
        return due if self._master is None else min(due, self._master.next_deadline())

    # runners

    def runner_report(self, now: float, runner_id: str, report: RunnerReport) -> list[Effect]:
        self._notice_pause(now)
        self._worker.report(now, runner_id, report)
        return self._finish(now)

    def runner_exited(self, now: float, runner_id: str, signal: int | None) -> list[Effect]:
        """`signal`: what killed it, None for an ordinary end."""
        self._notice_pause(now)
        self._worker.exited(now, runner_id, signal)
        return self._finish(now)

    # API

    def chat(self, now: float, request: ChatRequest) -> tuple[ChatAccepted | Reply, list[Effect]]:
        """Either taken (200, then effects with its id until `EndStream`) or answered with an error at once."""
        answer = self._api.chat(now, request)
        return answer, self._finish(now)

    def client_gone(self, now: float, command_id: str) -> list[Effect]:
        """The client closed its connection, or asked for a cancel: the request is dropped and its task cancelled."""
        self._api.client_gone(now, command_id)
        return self._finish(now)

    def create_deployment(
        self,
        now: float,
        model_id: str,
        *,
        sharding: str = "Pipeline",
        instance_meta: str = "MlxRing",
        min_nodes: int = 1,
    ) -> tuple[Reply, list[Effect]]:
        reply = self._api.create_deployment(now, model_id, sharding, instance_meta, min_nodes)
        return reply, self._finish(now)

    def delete_deployment(self, now: float, deployment_id: str) -> tuple[Reply, list[Effect]]:
        reply = self._api.delete_deployment(now, deployment_id)
        return reply, self._finish(now)

    def place_instance(
        self,
        now: float,
        model_id: str,
        *,
        sharding: str = "Pipeline",
        instance_meta: str = "MlxRing",
        min_nodes: int = 1,
    ) -> tuple[Reply, list[Effect]]:
        """200 whether it fits or not, as exo does."""
        reply = self._api.place_instance(now, model_id, sharding, instance_meta, min_nodes)
        return reply, self._finish(now)

    def create_instance(self, now: float, instance: object) -> tuple[Reply, list[Effect]]:
        """`POST /instance`: `instance` is the `instance` value of a preview, as parsed JSON."""
        reply = self._api.create_instance(now, instance)
        return reply, self._finish(now)

    def delete_instance(self, now: float, instance_id: str) -> tuple[Reply, list[Effect]]:
        reply = self._api.delete_instance(now, instance_id)
        return reply, self._finish(now)

    def takes(self, now: float, method: str, path: Sequence[str]) -> float:
        """Seconds that the host is to wait before it answers such a request (`path` in its parts)."""
        requests = len(self._api.requests)
        match method, path:
            case "GET", ["state", *rest]:
                return self._costs.state(now, whole=not rest, open_requests=requests)
            case "GET", ["events"]:
                return self._costs.events(self._replica.next_index, open_requests=requests)
            case "POST", ["deployments"]:
                return self._costs.deployment(now)
            case _:
                return 0.0

    def deployments(self) -> dict[str, object]:
        """`GET /deployments`."""
        by_name = self._ctx.behaviour.status_by_name
        return views.deployments(self._replica.state, self._ctx.models, by_name=by_name)

    # inner workings

    def _notice_pause(self, now: float) -> None:
        """A process that was stopped must not take its own pause for everybody else's silence."""
        last, self._last_call = self._last_call, now
        if last is None or not self._ctx.behaviour.notice_own_pause:
            return
        gap = now - last
        if gap > self._ctx.timers.pause_s:
            self._election.shift(gap)
            self._worker.shift(gap)
            if self._master is not None:
                self._master.shift(gap)

    def _link_lost(self, now: float, peer: str) -> None:
        self._election.link_down(now, peer)
        if self._master is not None:
            self._master.link_down(peer)

    def _dispatch(self, now: float, peer: str, message: AnyMessage) -> None:
        master = self._master
        match message:
            case Hello():
                gone = self._election.hello(now, peer, message)
                if gone is not None:
                    self._worker.peer_restarted(now, gone)
            case Heartbeat():
                self._election.heartbeat(now, peer, message)
                if master is not None:
                    master.acknowledge(peer, message)
            case Candidate():
                self._election.candidate(now, peer, message)
            case Events() | Snapshot():
                self._install(now, message)
            case Accepted():
                self._api.accepted(now, message)
            case RingBroken():
                self._worker.ring_broken(now, message)
            case RingHung(instance_id):
                self._worker.ring_hung(now, instance_id)
            case Fatal(text):
                self._exit(text)
            case Follow() | LocalEvents() | Command():
                if master is not None and message.session == master.session:
                    self._to_master(now, master, peer, message)

    def _to_master(self, now: float, master: Master, peer: str, message: Follow | LocalEvents | Command) -> None:
        match message:
            case Follow():
                master.follow(now, peer, message)
            case LocalEvents():
                master.local_events(now, message)
            case Command():
                master.command(now, message)
                self._ctx.out.add(Send(peer, Accepted(message.session, message.command_id)))

    def _install(self, now: float, message: Events | Snapshot) -> None:
        if self._master is not None or message.session != self._election.session:
            return
        for entry in self._replica.install(now, message):
            self._applied(now, entry)
        if isinstance(message, Snapshot):
            self._api.snapshot_installed(now)
        if self._replica.caught_up:
            self._election.caught_up()
            self._worker.caught_up(now)

    def _applied(self, now: float, entry: Entry) -> None:
        """After each event, on every node."""
        event = entry.event
        if isinstance(event, NodeGatheredInfo):
            return
        self._worker.on_event(now, event)
        self._api.on_event(now, event)

    def _conclude(self, now: float, winner: Session | None) -> None:
        """An election is over: its winner's session is everybody's."""
        if winner is None:
            return
        out = self._ctx.out
        changed = winner != self._replica.session
        if winner.master == self.node_id:
            out.log(f"Node elected Master - {'promoting' if changed else 'maintaining'} self")
            if changed:
                behaviour = self._ctx.behaviour
                carried = self._replica.state.carried(
                    instances=behaviour.carry_instances,
                    deployments=behaviour.deployments_outlive_master,
                )
                self._become_master(now, carried)
        else:
            demoted = self._master is not None
            out.log(f"Node {winner.master} elected master{' - demoting self' if demoted else ''}")
            if demoted:
                self._master = None
                out.add(MasterLog(open=False))
            if changed:
                self._replica.begin(winner)
                self._session_changed(now)
            self._replica.follow_now()
        self._api.election_over(now)

    def _become_master(self, now: float, carried: Event) -> None:
        session = self._election.session
        seen = dict(self._replica.state.last_seen)
        was_master = self._master is not None
        self._replica.begin(session, keep=False)
        self._master = Master(self._ctx, self._replica, self._election, now, self._applied)
        if not was_master:
            self._ctx.out.add(MasterLog(open=True))
        self._session_changed(now)
        self._master.open_session(now, carried, seen)
        self._worker.caught_up(now)

    def _session_changed(self, now: float) -> None:
        self._worker.session_changed(now)
        self._api.session_changed(now)
        self._informer.session_changed(now)

    def _exit(self, reason: str) -> None:
        if not self._exited:
            self._exited = True
            self._ctx.out.log(f"EXO terminated due to unhandled exception: {reason}")
            self._ctx.out.add(Exit(reason))

    def _finish(self, now: float) -> list[Effect]:
        """Hand on what this call produced: own events to the master, the master's events to the followers."""
        for command in self._api.take_commands():
            self._route(now, command)
        for _ in range(_MAX_ROUNDS):  # numbering an event may bring about more of them
            pending = self._replica.take_local()
            if pending is None:
                break
            if self._master is not None:
                self._master.local_events(now, pending)
            else:
                self._replica.queue(now, pending)
        self._replica.flush(now, master=self._election.master_peer())
        self._election.applied = self._replica.next_index
        self._election.knows = bool(self.state.deployments or self.state.instances)
        if self._master is not None:
            self._master.flush(now)
        return self._ctx.out.drain()

    def _route(self, now: float, command: Command) -> None:
        if self._master is not None:
            self._master.command(now, command)
            self._api.accepted(now, Accepted(command.session, command.command_id))
        elif (peer := self._election.master_peer()) is not None:
            self._ctx.out.add(Send(peer, command))
