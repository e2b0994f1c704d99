"""The master: numbers every event, feeds the followers, times out nodes, places instances, hands out tasks."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from rig.lab.exo.context import Context
from rig.lab.exo.effects import Send
from rig.lab.exo.election import Election
from rig.lab.exo.events import (
    ChunkGenerated,
    Deployment,
    DeploymentCreated,
    DeploymentDeleted,
    DeploymentPlaced,
    DeploymentPlacementFailed,
    Entry,
    Event,
    Instance,
    InstanceCreated,
    InstanceDeleted,
    NodeTimedOut,
    RunnerStatusUpdated,
    StateCarried,
    Task,
    TaskCreated,
    TaskDeleted,
    TaskStatusUpdated,
)
from rig.lab.exo.keeper import Decision, Keeper, Place, PromisedKeeper, Refuse, Remove
from rig.lab.exo.messages import Command, Events, Follow, Heartbeat, LocalEvents, Snapshot
from rig.lab.exo.placement import CannotPlace, Placed, place
from rig.lab.exo.replica import Replica
from rig.lab.exo.state import READY
from rig.lab.exo.upstream import UpstreamKeeper

WINDOW = 5000  # events sent ahead of what a follower has confirmed
_BATCH = 500
_REPLAY_STEP_S = 0.05
_SNAPSHOT_BEHIND = 256  # a newcomer that lacks fewer events gets the events
_REMEMBERED_COMMANDS = 4096
_OLD_TASKS = 32  # finished text generations that stay listed


@dataclass(slots=True)
class _Feed:
    """What one follower has been sent, and how fast it is fed while it replays."""

    next: int
    confirmed: int
    replaying: bool = False
    budget: float = 0.0
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class _OnItsWay:
    """A placement that was decided and has not become an event yet, or an event that has not come back yet."""

    at: float
    what: Place | Event


class Master:
    """One reign. `applied` is called after each event."""

    def __init__(
        self,
        ctx: Context,
        replica: Replica,
        election: Election,
        now: float,
        applied: Callable[[float, Entry], None],
    ) -> None:
        self._ctx = ctx
        self._replica = replica
        self._election = election
        self._applied = applied
        self.session = replica.session
        self._upstream = ctx.behaviour.keeper == "upstream"
        self._keeper: Keeper = UpstreamKeeper(ctx, now) if self._upstream else PromisedKeeper(ctx, now)
        self._origins: dict[str, int] = {}
        self._feeds: dict[str, _Feed] = {}
        self._commands: OrderedDict[str, None] = OrderedDict()
        self._on_its_way: list[_OnItsWay] = []
        self._lost: Counter[str] = Counter()  # placements that never arrived, by deployment
        self._deleted: dict[str, str] = {}  # deployments that were deleted, with their models
        self._old_tasks: deque[str] = deque()
        self._timeout_at = now + ctx.timers.timeout_pass_s
        self._flush_at = math.inf
        replica.reign()

    def open_session(self, now: float, carried: Event, last_seen: dict[str, float]) -> None:
        """Take over what is carried; nodes count as last seen when this node last heard of them."""
        if carried != StateCarried():
            self._emit(now, carried)
        seen = self._replica.state.last_seen
        seen.update({n: last_seen[n] for n in seen if n in last_seen})

    @property
    def in_flight(self) -> int:
        return sum(isinstance(flight.what, Place | InstanceCreated) for flight in self._on_its_way)

    # time

    def next_deadline(self) -> float:
        flights = min((f.at for f in self._on_its_way), default=math.inf)
        return min(self._timeout_at, self._flush_at, self._keeper.next_deadline(), flights)

    def shift(self, gap: float) -> None:
        """This process stood still: nodes were not silent for that time."""
        seen = self._replica.state.last_seen
        seen.update({n: t + gap for n, t in seen.items()})
        self._timeout_at += gap
        self._keeper.shift(gap)

    def tick(self, now: float) -> None:
        if now >= self._timeout_at:
            self._timeout_at = now + self._ctx.timers.timeout_pass_s
            self._timeout_pass(now)
        landed = [f for f in self._on_its_way if f.at <= now]
        self._on_its_way = [f for f in self._on_its_way if f.at > now]
        for flight in landed:
            if isinstance(flight.what, Place):
                self._land(now, flight.what)
            else:
                self._emit(now, flight.what)
        for decision in self._keeper.step(now, self._replica.state):
            self._carry_out(now, decision)

    def _carry_out(self, now: float, decision: Decision) -> None:
        match decision:
            case Refuse(deployment_id, reason):
                self._tell(now, DeploymentPlacementFailed(deployment_id, reason))
            case Remove(instance_id):
                self._delete_instance(now, instance_id)
            case Place(deployment, placed, instance_id) if self._upstream:
                instance = self._new_instance(deployment.model_id, placed, instance_id=instance_id)
                self._tell(now, InstanceCreated(instance), DeploymentPlaced(deployment.deployment_id, instance_id))
            case Place(deployment):
                self._lost[deployment.deployment_id] += 1
                if self._lost[deployment.deployment_id] <= self._ctx.behaviour.placements_lost:
                    return
                at = now + self._ctx.timers.placement_flight_s
                self._on_its_way.append(_OnItsWay(at, decision))
                if self._ctx.behaviour.double_placement:
                    self._on_its_way.append(_OnItsWay(at, replace(decision, instance_id=self._ctx.new_id())))

    def _tell(self, now: float, *events: Event) -> None:
        """Of instances and deployments: upstream's master hears of its own events when they come back to it."""
        for event in events:
            if self._upstream:
                self._on_its_way.append(_OnItsWay(now + self._ctx.timers.placement_flight_s, event))
            else:
                self._emit(now, event)

    def _land(self, now: float, decision: Place) -> None:
        state, deployment = self._replica.state, decision.deployment
        wanted = deployment.deployment_id in state.deployments or self._ctx.behaviour.deleted_comes_back
        beside = bool(state.instances_of(deployment.model_id)) and not self._may_double()
        if not wanted or beside or any(n not in state.nodes for n in decision.placed.nodes):
            return
        instance = self._new_instance(deployment.model_id, decision.placed, instance_id=decision.instance_id)
        self._emit(now, InstanceCreated(instance))
        self._emit(now, DeploymentPlaced(deployment.deployment_id, instance.instance_id))
        if deployment.placement_error is not None and not self._ctx.behaviour.keeper_clears_reason:
            self._emit(now, DeploymentPlacementFailed(deployment.deployment_id, deployment.placement_error))
        self._keeper.arrived(deployment)

    def _may_double(self) -> bool:
        behaviour = self._ctx.behaviour
        return behaviour.double_placement or not (behaviour.keeper_adopts and behaviour.keeper_waits_in_flight)

    def _timeout_pass(self, now: float) -> None:
        """What is to go is told at each pass, until it has gone."""
        state, behaviour = self._replica.state, self._ctx.behaviour
        limit = now - self._ctx.timers.node_timeout_s
        silent = [n for n, t in state.last_seen.items() if t < limit and n in state.nodes]
        if behaviour.ghost_nodes:
            silent = []
        if not behaviour.instances_in_same_pass:
            self._drop_dead_instances(now, without=[])
        for node_id in silent:
            self._ctx.out.log(f"Manually removing node {node_id} due to inactivity")
            self._tell(now, NodeTimedOut(node_id))
        if behaviour.instances_in_same_pass:
            self._drop_dead_instances(now, without=silent)

    def _drop_dead_instances(self, now: float, without: list[str]) -> None:
        state = self._replica.state
        if self._ctx.behaviour.zombie_instances:
            return
        alive = state.nodes.keys() - set(without)
        for instance in list(state.instances.values()):
            if not alive.issuperset(instance.nodes):
                self._delete_instance(now, instance.instance_id)

    # followers

    def follow(self, now: float, peer: str, message: Follow) -> None:
        """A follower lacks the events from `start` on: it gets them, or the state at once."""
        log = self._replica.log
        behind = log.next_index - message.start
        fresh = message.start == 0 and behind > _SNAPSHOT_BEHIND and self._ctx.behaviour.snapshot
        if message.start < log.first or behind < 0 or fresh:
            self._send_snapshot(peer)
            self._feeds[peer] = _Feed(log.next_index, log.next_index)
            return
        replaying = behind > _BATCH and not self._ctx.behaviour.snapshot
        self._feeds[peer] = _Feed(message.start, message.start, replaying, since=now)
        if behind == 0:
            self._ctx.out.add(Send(peer, Events(self.session, message.start, [], caught_up=True)))
        self._flush_at = now

    def acknowledge(self, peer: str, message: Heartbeat) -> None:
        feed = self._feeds.get(peer)
        if feed is not None and message.session == self.session:
            feed.confirmed = max(feed.confirmed, message.applied)
            if feed.next < self._replica.log.next_index:
                self._flush_at = min(self._flush_at, -math.inf)

    def link_down(self, peer: str) -> None:
        self._feeds.pop(peer, None)

    def flush(self, now: float) -> None:
        """Send the followers what they lack, in batches, within their windows."""
        if now < self._flush_at:
            return
        self._flush_at = math.inf
        for peer, feed in self._feeds.items():
            self._feed(now, peer, feed)

    def _feed(self, now: float, peer: str, feed: _Feed) -> None:
        log = self._replica.log
        room = min(log.next_index, feed.confirmed + WINDOW) - feed.next
        if feed.replaying:
            rate = self._ctx.timers.replay_events_per_s
            feed.budget = min(feed.budget + (now - feed.since) * rate, rate)
            feed.since = now
            room = min(room, int(feed.budget))
            feed.budget -= max(0, room)
            self._flush_at = min(self._flush_at, now + _REPLAY_STEP_S)
        while room > 0:
            entries = log.read(feed.next, min(room, _BATCH))
            first, feed.next = feed.next, feed.next + len(entries)
            room -= len(entries)
            caught_up = feed.next >= log.next_index
            feed.replaying = feed.replaying and not caught_up
            self._ctx.out.add(Send(peer, Events(self.session, first, entries, caught_up)))

    def _send_snapshot(self, peer: str) -> None:
        replica = self._replica
        node_id = self._election.living().get(peer, "")
        log = replica.log
        self._ctx.out.add(
            Send(
                peer,
                Snapshot(
                    session=self.session,
                    next_index=log.next_index,
                    state=replica.state.to_wire(),
                    log_first=log.first,
                    log_blocks=list(log.blocks),
                    log_tail=list(log.tail),
                    confirmed=self._origins.get(node_id, 0),
                ),
            )
        )

    # events

    def local_events(self, now: float, message: LocalEvents) -> None:
        """Number what a node announces, once each, in its own order. After a gap its sender begins again."""
        expected = max(self._origins.get(message.origin, 0), message.base)
        if message.first_seq > expected:
            return
        for event in message.events[expected - message.first_seq :]:
            self._append(now, Entry(message.origin, expected, event))
            expected += 1
            self._origins[message.origin] = expected
            self._react(now, event)

    def _emit(self, now: float, event: Event) -> None:
        self._append(now, Entry("", 0, event))

    def _append(self, now: float, entry: Entry) -> None:
        self._replica.append(now, entry)
        if self._feeds:
            self._flush_at = min(self._flush_at, now + self._ctx.timers.flush_s)
        self._applied(now, entry)

    def _react(self, now: float, event: Event) -> None:
        state = self._replica.state
        if isinstance(event, TaskStatusUpdated):
            task = state.tasks.get(event.task_id)
            if task is not None and task.kind == "TextGeneration" and event.task_status in ("Complete", "Failed"):
                self._retire(now, event.task_id)
        elif isinstance(event, RunnerStatusUpdated):
            instance = state.instance_of_runner(event.runner_id)
            if instance is None:
                return
            if event.status.state in READY and state.is_ready(instance):
                self._keeper.ready(instance, state)
            elif event.status.state == "RunnerFailed" and self._is_given_up(instance):
                self._delete_instance(now, instance.instance_id)

    def _is_given_up(self, instance: Instance) -> bool:
        state, behaviour = self._replica.state, self._ctx.behaviour
        if behaviour.failed_start_deletes and instance.instance_id not in state.ready_once:
            return True
        limit = behaviour.instance_dies_at_kill
        return limit is not None and state.failures.get(instance.instance_id, 0) >= limit

    def _retire(self, now: float, task_id: str) -> None:
        self._old_tasks.append(task_id)
        while len(self._old_tasks) > _OLD_TASKS:
            self._emit(now, TaskDeleted(self._old_tasks.popleft()))

    def _delete_instance(self, now: float, instance_id: str) -> None:
        state = self._replica.state
        if instance_id in state.instances:
            self._keeper.lost(now, state.instances[instance_id], state)
            self._tell(now, InstanceDeleted(instance_id))

    # commands

    def command(self, now: float, command: Command) -> None:
        """Carried out once, however often it is sent."""
        if command.session != self.session or command.command_id in self._commands:
            return
        self._commands[command.command_id] = None
        if len(self._commands) > _REMEMBERED_COMMANDS:
            self._commands.popitem(last=False)
        match command.kind:
            case "TextGeneration":
                self._generate(now, command)
            case "TaskCancelled":
                self._cancel(now, command.target)
            case "PlaceInstance" | "CreateInstance":
                self._place_by_hand(now, command)
            case "DeleteInstance":
                self._delete_instance(now, command.target)
            case "CreateDeployment":
                self._create_deployment(now, command)
            case "DeleteDeployment":
                self._delete_deployment(now, command.target)

    def _generate(self, now: float, command: Command) -> None:
        state = self._replica.state
        candidates = state.instances_of(command.model_id)
        if not candidates:
            self._ctx.out.log(f"No instance found for model {command.model_id}")
            if self._ctx.behaviour.reject_unservable:
                text = f"No instance found for model {command.model_id}"
                self._emit(now, ChunkGenerated(command.command_id, "error", text))
            return
        chosen = min(candidates, key=lambda i: (len(state.active_tasks(i.instance_id)), i.instance_id))
        task = Task(
            task_id=self._ctx.new_id(),
            kind="TextGeneration",
            status="Pending",
            instance_id=chosen.instance_id,
            command_id=command.command_id,
            prompt_tokens=command.prompt_tokens,
            max_tokens=command.max_tokens,
            prompt_hash=command.prompt_hash,
        )
        self._emit(now, TaskCreated(task))

    def _cancel(self, now: float, command_id: str) -> None:
        for task in list(self._replica.state.tasks.values()):
            if task.command_id == command_id and task.status in ("Pending", "Running"):
                self._emit(now, TaskStatusUpdated(task.task_id, "Cancelled"))
                self._retire(now, task.task_id)

    def _place_by_hand(self, now: float, command: Command) -> None:
        state, model = self._replica.state, self._ctx.models.get(command.model_id)
        if model is None or self._ctx.behaviour.lose_hand_placements:
            return
        placed = Placed(command.nodes, (), command.sharding, command.instance_meta)
        if command.kind == "PlaceInstance":
            try:
                placed = place(
                    state,
                    model,
                    sharding=command.sharding,
                    instance_meta=command.instance_meta,
                    min_nodes=command.min_nodes,
                )
            except (CannotPlace, TypeError) as refusal:
                self._ctx.out.log(f"Cannot place {command.model_id}: {refusal}")
                return
        if not placed.nodes or any(n not in state.nodes for n in placed.nodes):
            return
        instance_id = command.target or self._ctx.new_id()
        self._tell(
            now, InstanceCreated(self._new_instance(command.model_id, placed, instance_id=instance_id, by_hand=command))
        )

    def _create_deployment(self, now: float, command: Command) -> None:
        deployed = {d.model_id for d in self._replica.state.deployments.values()}
        if command.model_id in deployed and self._ctx.behaviour.duplicates_refused:
            return
        deployment = Deployment(
            command.target, command.model_id, command.sharding, command.instance_meta, command.min_nodes
        )
        self._tell(now, DeploymentCreated(deployment))

    def _delete_deployment(self, now: float, deployment_id: str) -> None:
        state, behaviour = self._replica.state, self._ctx.behaviour
        deployment = state.deployments.get(deployment_id)
        if deployment is None:
            self._delete_again(now, deployment_id)
            return
        self._deleted[deployment_id] = deployment.model_id
        self._tell(now, DeploymentDeleted(deployment_id))
        on_its_way = self._keeper.deleting(deployment)
        if on_its_way is not None:
            self._tell(now, InstanceDeleted(on_its_way))
        doomed = [deployment.instance_id] if deployment.instance_id and behaviour.delete_takes_instance else []
        if behaviour.delete_takes_others:
            doomed = [i.instance_id for i in state.instances_of(deployment.model_id)]
        for instance_id in doomed:
            self._delete_instance(now, instance_id)

    def _delete_again(self, now: float, deployment_id: str) -> None:
        """One that is gone takes nothing with it."""
        model_id = self._deleted.get(deployment_id)
        if model_id is not None and self._ctx.behaviour.delete_by_model:
            for instance in self._replica.state.instances_of(model_id):
                self._delete_instance(now, instance.instance_id)

    def _new_instance(
        self, model_id: str, placed: Placed, *, instance_id: str, by_hand: Command | None = None
    ) -> Instance:
        ctx, state, nodes = self._ctx, self._replica.state, placed.nodes
        given = by_hand is not None and len(by_hand.runners) == len(nodes)
        return Instance(
            instance_id=instance_id,
            model_id=model_id,
            sharding=placed.sharding,
            instance_meta=placed.instance_meta,
            nodes=nodes,
            runners=by_hand.runners if by_hand is not None and given else tuple(ctx.new_id() for _ in nodes),
            addresses=tuple(state.nodes[n].address for n in nodes),
            port=by_hand.port if by_hand is not None and by_hand.port else ctx.rng.randint(49153, 65535),
            by_hand=by_hand is not None,
            layers=placed.layers,
        )
