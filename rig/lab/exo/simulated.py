"""What a simulation keeps of its nodes, their processes, connections and clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from rig.lab.exo.api_types import Accepted, Reply
from rig.lab.exo.effects import EndStream, StreamPrefill, StreamToken
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.runner import RunnerLogic

Seen: TypeAlias = StreamPrefill | StreamToken | EndStream | Reply | Accepted | None
"""What a client is sent: that it was accepted, what of the answer, a whole answer, or (None) the connection broke."""
Sink: TypeAlias = Callable[[Seen], None]


@dataclass(slots=True)
class Request:
    """One client request. `how` is None while it is open; else an `EndHow`, "http STATUS", "refused" or "broken"."""

    node: str
    model: str
    streamed: bool
    started: float
    id: str = ""
    how: str | None = None
    ended: float | None = None
    tokens: int = 0
    message: str = ""
    sink: Sink | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a node; the main process has no runner."""

    pid: int
    runner_id: str | None
    cpu_s: float  # used since its start


@dataclass(slots=True)
class Conn:
    """A connection; `held` are deliveries that wait behind a cut, by direction."""

    ends: tuple[str, str]
    held: dict[tuple[str, str], list[Callable[[], None]]] = field(
        default_factory=dict[tuple[str, str], list[Callable[[], None]]]
    )


@dataclass(slots=True)
class SimRunner:
    logic: RunnerLogic
    pid: int
    began: float
    asked: float | None = None  # when its first request came
    alive: bool = True
    tick_at: float = float("inf")


@dataclass(slots=True)
class SimNode:
    name: str
    logic: NodeLogic | None = None
    frozen: bool = False
    life: int = 0  # counts processes
    pid: int = 0
    began: float = 0.0
    orphans: list[Process] = field(default_factory=list[Process])
    kept_bytes: int = 0  # memory that nobody gave back
    deferred: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    runners: dict[str, SimRunner] = field(default_factory=dict[str, SimRunner])
    conns: dict[str, Conn] = field(default_factory=dict[str, Conn])
    requests: dict[str, Request] = field(default_factory=dict[str, Request])
    unanswered: list[Request] = field(default_factory=list[Request])  # connected to a process that is stopped
    tick_at: float = float("inf")
    log: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
