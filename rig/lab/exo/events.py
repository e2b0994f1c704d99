"""The events of a cluster's log: every change of its state is one of these, numbered by the master.

Names and fields are exo's (snake_case, as `GET /events` shows them), but for `StateCarried`, with which a new master
of the sound behaviour begins its log. Large values (a model card, the shards of an instance) are kept short here and
written out in `views`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

RunnerState: TypeAlias = Literal[
    "RunnerIdle",
    "RunnerConnecting",
    "RunnerConnected",
    "RunnerLoading",
    "RunnerLoaded",
    "RunnerWarmingUp",
    "RunnerReady",
    "RunnerRunning",
    "RunnerShuttingDown",
    "RunnerShutdown",
    "RunnerFailed",
]
TaskStatus: TypeAlias = Literal["Pending", "Running", "Complete", "Failed", "Cancelled"]
TaskKind: TypeAlias = Literal[
    "CreateRunner", "ConnectToGroup", "LoadModel", "StartWarmup", "TextGeneration", "Shutdown"
]


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """Compact on the wire."""


class Instance(Struct, frozen=True):
    """`nodes`, `runners`, `addresses` and `layers` (of the model, each rank's; empty: about the same number each) are
    in order of rank. `by_hand`: placed by a user, not by the keeper.
    """

    instance_id: str
    model_id: str
    sharding: str
    instance_meta: str
    nodes: tuple[str, ...]
    runners: tuple[str, ...]
    addresses: tuple[str, ...]
    port: int
    by_hand: bool = False
    layers: tuple[int, ...] = ()

    def layers_of(self, rank: int, total: int) -> tuple[int, int]:
        """First and end of the layers of a rank, of so many; all of them where each rank holds a part of every one."""
        if self.sharding == "Tensor":
            return 0, total
        if self.layers:
            return sum(self.layers[:rank]), sum(self.layers[: rank + 1])
        world = len(self.nodes)
        return rank * total // world, (rank + 1) * total // world

    def runner_on(self, node_id: str) -> str | None:
        return self.runners[self.nodes.index(node_id)] if node_id in self.nodes else None


class Deployment(Struct, frozen=True):
    deployment_id: str
    model_id: str
    sharding: str
    instance_meta: str
    min_nodes: int
    instance_id: str | None = None
    placement_error: str | None = None


class Task(Struct, frozen=True):
    """`command_id`, the lengths and the prompt belong to TextGeneration, `runner_id` to CreateRunner."""

    task_id: str
    kind: TaskKind
    status: TaskStatus
    instance_id: str
    command_id: str = ""
    runner_id: str = ""
    prompt_tokens: int = 0
    max_tokens: int = 0
    prompt_hash: int = 0


class RunnerStatus(Struct, frozen=True):
    state: RunnerState
    layers_loaded: int = 0
    total_layers: int = 0
    error: str = ""


class NodeInfo(Struct, frozen=True):
    """What a node says of itself. Memory in bytes; without a total, or without backends, it has not told them yet."""

    name: str
    address: str
    ram_total: int
    ram_available: int
    backends: tuple[str, ...] = ("MlxCpu",)
    rdma: bool = False


class NodeGatheredInfo(Struct, frozen=True, tag="NodeGatheredInfo"):
    node_id: str
    info: NodeInfo
    what: Literal["memory", "network", "backends"] = "memory"


class NodeTimedOut(Struct, frozen=True, tag="NodeTimedOut"):
    node_id: str


class TopologyEdgeCreated(Struct, frozen=True, tag="TopologyEdgeCreated"):
    source: str
    sink: str
    address: str
    rdma: bool = False


class TopologyEdgeDeleted(Struct, frozen=True, tag="TopologyEdgeDeleted"):
    source: str
    sink: str
    address: str


class InstanceCreated(Struct, frozen=True, tag="InstanceCreated"):
    instance: Instance


class InstanceDeleted(Struct, frozen=True, tag="InstanceDeleted"):
    instance_id: str


class DeploymentCreated(Struct, frozen=True, tag="DeploymentCreated"):
    deployment: Deployment


class DeploymentPlaced(Struct, frozen=True, tag="DeploymentPlaced"):
    deployment_id: str
    instance_id: str


class DeploymentPlacementFailed(Struct, frozen=True, tag="DeploymentPlacementFailed"):
    deployment_id: str
    error: str


class DeploymentDeleted(Struct, frozen=True, tag="DeploymentDeleted"):
    deployment_id: str


class TaskCreated(Struct, frozen=True, tag="TaskCreated"):
    task: Task


class TaskStatusUpdated(Struct, frozen=True, tag="TaskStatusUpdated"):
    task_id: str
    task_status: TaskStatus


class TaskDeleted(Struct, frozen=True, tag="TaskDeleted"):
    task_id: str


class RunnerStatusUpdated(Struct, frozen=True, tag="RunnerStatusUpdated"):
    runner_id: str
    status: RunnerStatus


class ChunkGenerated(Struct, frozen=True, tag="ChunkGenerated"):
    """One token, progress of a prefill, or an error of one request."""

    command_id: str
    kind: Literal["token", "prefill", "error"]
    text: str = ""  # the token, or the error's message
    n: int = 0  # prompt tokens processed; with a finish reason: tokens generated
    total: int = 0  # prompt tokens
    finish_reason: str = ""


class StateCarried(Struct, frozen=True, tag="StateCarried"):
    """First event of a new master's session: what it takes over."""

    nodes: tuple[tuple[str, NodeInfo], ...] = ()
    edges: tuple[TopologyEdgeCreated, ...] = ()
    instances: tuple[Instance, ...] = ()
    runners: tuple[tuple[str, RunnerStatus], ...] = ()
    deployments: tuple[Deployment, ...] = ()
    ready_once: tuple[str, ...] = ()


Event: TypeAlias = (
    NodeGatheredInfo
    | NodeTimedOut
    | TopologyEdgeCreated
    | TopologyEdgeDeleted
    | InstanceCreated
    | InstanceDeleted
    | DeploymentCreated
    | DeploymentPlaced
    | DeploymentPlacementFailed
    | DeploymentDeleted
    | TaskCreated
    | TaskStatusUpdated
    | TaskDeleted
    | RunnerStatusUpdated
    | ChunkGenerated
    | StateCarried
)


class Entry(Struct, frozen=True):
    """An event and where it came from: `seq` counts what node `origin` said since its start; "" is the master."""

    origin: str
    seq: int
    event: Event


BLOCK = 512
MAX_BLOCKS = 8192  # 4 million events; older ones are dropped, so that a log cannot grow for ever
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Entry])


class EventLog:
    """The log of a session, in memory: full blocks are compressed. `first` is the index of the oldest kept event."""

    def __init__(self, first: int = 0, blocks: list[bytes] | None = None, tail: list[Entry] | None = None) -> None:
        self.first = first
        self.blocks: list[bytes] = blocks if blocks is not None else []
        self.tail: list[Entry] = tail if tail is not None else []

    @property
    def next_index(self) -> int:
        return self.first + len(self.blocks) * BLOCK + len(self.tail)

    def append(self, entry: Entry) -> None:
        self.tail.append(entry)
        if len(self.tail) >= BLOCK:
            self.blocks.append(zlib.compress(_encoder.encode(self.tail), 1))
            self.tail = []
            if len(self.blocks) > MAX_BLOCKS:
                del self.blocks[0]
                self.first += BLOCK

    def read(self, start: int, limit: int) -> list[Entry]:
        """At most `limit` entries from index `start` on, `start` being no older than `first`."""
        offset = start - self.first
        block, within = divmod(offset, BLOCK)
        found: list[Entry] = []
        while len(found) < limit and block < len(self.blocks):
            found += _decoder.decode(zlib.decompress(self.blocks[block]))[within:]
            block, within = block + 1, 0
        if block >= len(self.blocks) and len(found) < limit:
            found += self.tail[within:]
        return found[:limit]

    def __iter__(self) -> Iterator[Entry]:
        for block in list(self.blocks):
            yield from _decoder.decode(zlib.decompress(block))
        yield from list(self.tail)
