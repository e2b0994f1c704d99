"""The state of a cluster, as every node derives it from the master's events, applied in order."""

from __future__ import annotations

import msgspec

from rig.lab.exo.events import (
    ChunkGenerated,
    Deployment,
    DeploymentCreated,
    DeploymentDeleted,
    DeploymentPlaced,
    DeploymentPlacementFailed,
    Event,
    Instance,
    InstanceCreated,
    InstanceDeleted,
    NodeGatheredInfo,
    NodeInfo,
    NodeTimedOut,
    RunnerStatus,
    RunnerStatusUpdated,
    StateCarried,
    Struct,
    Task,
    TaskCreated,
    TaskDeleted,
    TaskStatusUpdated,
    TopologyEdgeCreated,
    TopologyEdgeDeleted,
)

READY = frozenset({"RunnerReady", "RunnerRunning"})
ACTIVE = frozenset({"Pending", "Running"})


class _Wire(Struct, frozen=True):
    carried: StateCarried
    known: dict[str, NodeInfo]
    tasks: list[Task]
    failures: dict[str, int]


def _with_what_was_told(info: NodeInfo, before: NodeInfo | None) -> NodeInfo:
    """A node joins in pieces, and a piece takes nothing back that was told before."""
    if before is None or (info.ram_total and info.backends):
        return info
    memory = info if info.ram_total else before
    return msgspec.structs.replace(
        info,
        ram_total=memory.ram_total,
        ram_available=memory.ram_available,
        backends=info.backends or before.backends,
    )


class ClusterState:
    """Mutable; changed by `apply` alone. `last_seen` is on the local clock and not part of what is carried.

    `names_gone`: a deployment goes on naming its last instance when that is gone.
    """

    def __init__(self, *, keep_dead_entries: bool = False, names_gone: bool = False) -> None:
        self._keep_dead = keep_dead_entries
        self._names_gone = names_gone
        self.nodes: dict[str, NodeInfo] = {}  # in the topology
        self.known: dict[str, NodeInfo] = {}  # every node whose identity is listed
        self.last_seen: dict[str, float] = {}
        self.edges: dict[tuple[str, str], TopologyEdgeCreated] = {}
        self.instances: dict[str, Instance] = {}
        self.runners: dict[str, RunnerStatus] = {}
        self.deployments: dict[str, Deployment] = {}
        self.tasks: dict[str, Task] = {}
        self.ready_once: set[str] = set()  # instances that were ready at some time
        self.failures: dict[str, int] = {}  # runner failures by instance
        self._instance_of: dict[str, str] = {}  # runner → instance

    # questions

    def is_ready(self, instance: Instance) -> bool:
        """Every runner is RunnerReady or RunnerRunning."""
        runners = self.runners
        return all((status := runners.get(r)) is not None and status.state in READY for r in instance.runners)

    def instances_of(self, model_id: str) -> list[Instance]:
        return [i for i in self.instances.values() if i.model_id == model_id]

    def instance_of_runner(self, runner_id: str) -> Instance | None:
        return self.instances.get(self._instance_of.get(runner_id, ""))

    def active_tasks(self, instance_id: str) -> list[Task]:
        """Text generations of an instance that are pending or running."""
        return [
            t
            for t in self.tasks.values()
            if t.instance_id == instance_id and t.kind == "TextGeneration" and t.status in ACTIVE
        ]

    def connected(self, a: str, b: str) -> bool:
        """Both ways."""
        return (a, b) in self.edges and (b, a) in self.edges

    # change

    def apply(self, event: Event, now: float) -> None:
        match event:
            case ChunkGenerated():
                pass
            case NodeGatheredInfo() | NodeTimedOut() | TopologyEdgeCreated() | TopologyEdgeDeleted():
                self._apply_topology(event, now)
            case TaskCreated() | TaskStatusUpdated() | TaskDeleted():
                self._apply_task(event)
            case RunnerStatusUpdated(runner_id, status):
                self._apply_runner(runner_id, status)
            case InstanceCreated(instance):
                self._add_instance(instance)
            case InstanceDeleted(instance_id):
                self._remove_instance(instance_id)
            case StateCarried():
                self._carry(event, now)
            case _:
                self._apply_deployment(event)

    def _apply_topology(
        self, event: NodeGatheredInfo | NodeTimedOut | TopologyEdgeCreated | TopologyEdgeDeleted, now: float
    ) -> None:
        match event:
            case NodeGatheredInfo(node_id, info):
                info = _with_what_was_told(info, self.nodes.get(node_id))
                self.nodes[node_id] = info
                self.known[node_id] = info
                self.last_seen[node_id] = now
            case NodeTimedOut(node_id):
                self._remove_node(node_id)
            case TopologyEdgeCreated(source, sink):
                self.edges[source, sink] = event
            case TopologyEdgeDeleted(source, sink):
                self.edges.pop((source, sink), None)

    def _apply_task(self, event: TaskCreated | TaskStatusUpdated | TaskDeleted) -> None:
        match event:
            case TaskCreated(task):
                self.tasks[task.task_id] = task
            case TaskStatusUpdated(task_id, status):
                if task_id in self.tasks:
                    self.tasks[task_id] = msgspec.structs.replace(self.tasks[task_id], status=status)
            case TaskDeleted(task_id):
                self.tasks.pop(task_id, None)

    def _apply_deployment(
        self, event: DeploymentCreated | DeploymentPlaced | DeploymentPlacementFailed | DeploymentDeleted
    ) -> None:
        match event:
            case DeploymentCreated(deployment):
                self.deployments[deployment.deployment_id] = deployment
            case DeploymentPlaced(deployment_id, instance_id):
                if deployment_id in self.deployments:
                    self.deployments[deployment_id] = msgspec.structs.replace(
                        self.deployments[deployment_id], instance_id=instance_id, placement_error=None
                    )
            case DeploymentPlacementFailed(deployment_id, error):
                if deployment_id in self.deployments:
                    self.deployments[deployment_id] = msgspec.structs.replace(
                        self.deployments[deployment_id], placement_error=error
                    )
            case DeploymentDeleted(deployment_id):
                self.deployments.pop(deployment_id, None)

    def _apply_runner(self, runner_id: str, status: RunnerStatus) -> None:
        instance = self.instance_of_runner(runner_id)
        if instance is None and not self._keep_dead:
            return  # of an instance that is gone
        self.runners[runner_id] = status
        if instance is None:
            return
        if status.state == "RunnerFailed":
            self.failures[instance.instance_id] = self.failures.get(instance.instance_id, 0) + 1
        elif status.state in READY and self.is_ready(instance):
            self.ready_once.add(instance.instance_id)

    def _add_instance(self, instance: Instance) -> None:
        self.instances[instance.instance_id] = instance
        for runner_id in instance.runners:
            self._instance_of[runner_id] = instance.instance_id

    def _remove_instance(self, instance_id: str) -> None:
        instance = self.instances.pop(instance_id, None)
        self.failures.pop(instance_id, None)
        self.ready_once.discard(instance_id)
        if instance is None:
            return
        for runner_id in instance.runners:
            self._instance_of.pop(runner_id, None)
            if not self._keep_dead:
                self.runners.pop(runner_id, None)
        for task_id in [t.task_id for t in self.tasks.values() if t.instance_id == instance_id]:
            del self.tasks[task_id]
        for deployment in self.deployments.values():
            if deployment.instance_id == instance_id and not self._names_gone:
                self.deployments[deployment.deployment_id] = msgspec.structs.replace(deployment, instance_id=None)
                break

    def _remove_node(self, node_id: str) -> None:
        self.nodes.pop(node_id, None)
        self.last_seen.pop(node_id, None)
        if not self._keep_dead:
            self.known.pop(node_id, None)
        for edge in [e for e in self.edges if node_id in e]:
            del self.edges[edge]

    def forget_others(self, node_id: str) -> None:
        """A view of this one node alone; instances stay."""
        self.nodes = {n: i for n, i in self.nodes.items() if n == node_id}
        self.edges.clear()

    # carrying it elsewhere

    def carried(self, *, instances: bool, deployments: bool) -> StateCarried:
        """What a new master takes over. Without its instances a deployment is to be placed anew."""
        kept = tuple(self.deployments.values()) if deployments else ()
        if not instances:
            return StateCarried(
                deployments=tuple(msgspec.structs.replace(d, instance_id=None, placement_error=None) for d in kept)
            )
        return StateCarried(
            nodes=tuple(self.nodes.items()),
            edges=tuple(self.edges.values()),
            instances=tuple(self.instances.values()),
            runners=tuple(self.runners.items()),
            deployments=kept,
            ready_once=tuple(sorted(self.ready_once)),
        )

    def _carry(self, carried: StateCarried, now: float) -> None:
        for node_id, info in carried.nodes:
            self.nodes[node_id] = info
            self.known[node_id] = info
            self.last_seen.setdefault(node_id, now)
        self.edges.update({(e.source, e.sink): e for e in carried.edges})
        for instance in carried.instances:
            self._add_instance(instance)
        self.runners.update(carried.runners)
        self.deployments.update({d.deployment_id: d for d in carried.deployments})
        self.ready_once.update(carried.ready_once)

    def to_wire(self) -> bytes:
        wire = _Wire(
            carried=self.carried(instances=True, deployments=True),
            known=self.known,
            tasks=list(self.tasks.values()),
            failures=self.failures,
        )
        return msgspec.msgpack.encode(wire)

    @classmethod
    def from_wire(
        cls, data: bytes, now: float, *, keep_dead_entries: bool = False, names_gone: bool = False
    ) -> ClusterState:
        """Every node counts as seen `now`. Raises msgspec.DecodeError."""
        wire = msgspec.msgpack.decode(data, type=_Wire)
        state = cls(keep_dead_entries=keep_dead_entries, names_gone=names_gone)
        state.apply(wire.carried, now)
        state.known.update(wire.known)
        state.tasks = {t.task_id: t for t in wire.tasks}
        state.failures = dict(wire.failures)
        return state
