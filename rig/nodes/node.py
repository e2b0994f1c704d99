"""What a run asks of a node, whatever stands behind it: a machine over SSH, this machine itself, or a simulated one.

Nothing above `rig.nodes` builds shell text or knows which of them it holds. Every operation is bounded in time, and
raises TransportError when nothing is known of how it went, CommandTimeout, or another NodeError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from rig.config.inventory import Node
from rig.nodes.inspect import Inspection, What
from rig.nodes.scripts import ScriptEvent

Which = Literal["start", "stop", "hold", "release"]
"""A command of the inventory."""
LineAge = Literal["sign", "past", "mark", "new"]
"""`sign`: the last line before now that has the pattern. `past`: one of the last before now. `new`: written since.
`mark`, without a text: all that was there has been told."""


@dataclass(frozen=True)
class NodeTime:
    """A reading of a node's monotonic clock (s), cut off to `resolution_s`."""

    node_t: float
    resolution_s: float


@dataclass(frozen=True)
class ScriptEnd:
    """How a node script ended: its status (128 + n when signal n, named in `signal`, ended it) and its last error."""

    status: int
    signal: str | None = None
    message: str = ""


@dataclass(frozen=True)
class LoggedLine:
    """A line of a log that is followed."""

    age: LineAge
    text: str = ""


@dataclass(frozen=True)
class Evidence:
    """What is kept of a node after a fault: processes, packet filter and leases in `state`, the end of its log."""

    state: bytes
    log: bytes


Heard: TypeAlias = Callable[[ScriptEvent], None]
ReadClock: TypeAlias = Callable[[], Awaitable[NodeTime]]


class NodeConnection(Protocol):
    """A node of the inventory. The node scripts are there."""

    name: str
    node: Node
    lock: str
    """The token of the lock that is held there through this connection; a script strikes under that lock alone."""

    async def inspect(
        self, what: What = "all", *, pids: Sequence[int] | None = None, timeout_s: float = 10.0
    ) -> Inspection:
        """What the node says of itself. Changes nothing."""
        ...

    async def script(self, script: str, values: Mapping[str, str], *, timeout_s: float) -> str:
        """Runs a node script to its end and returns what it said. Raises CommandFailed for a status other than 0."""
        ...

    async def strike(self, script: str, values: Mapping[str, str], heard: Heard, *, timeout_s: float) -> ScriptEnd:
        """Starts the script of a fault and follows it to its end; `heard` gets each of its events as it comes.

        The script goes on by itself when this is cancelled or the node is lost.
        """
        ...

    async def heal(self, what: str, heard: Heard, *, timeout_s: float) -> ScriptEnd:
        """Undoes what the leases name (`what`: the id of a fault, `all` or `expired`), whoever struck."""
        ...

    async def fault_log(self, fault_id: str, *, timeout_s: float) -> list[ScriptEvent]:
        """What the script of a fault has said so far, as the node keeps it; empty where there is nothing."""
        ...

    async def carry_out(self, which: Which, *, timeout_s: float) -> None:
        """Runs a command that the inventory must have to its end.

        Raises NodeNotReady when it ends badly, or the node is locked by another rig.
        """
        ...

    def clock(self, *, timeout_s: float) -> AbstractAsyncContextManager[ReadClock]:
        """A session in which the node's clock can be read again and again, each time within a round trip."""
        ...

    def follow_log(self, path: str, pattern: str, *, back: int) -> AsyncGenerator[LoggedLine]:
        """A log as it grows, over its rotations: a sign, the `back` last lines, the mark, then every new line.

        `pattern` is an extended regular expression. To be closed; nothing is left on the node then.
        """
        ...

    async def answering(self, addresses: Sequence[str], port: int, *, timeout_s: float) -> set[str]:
        """Those of the addresses that take a connection from this node; all are tried at once."""
        ...

    async def controller_address(self) -> str:
        """This machine's address as the node sees it; empty when it comes by none."""
        ...

    async def evidence(self, *, state_bytes: int, log_bytes: int, timeout_s: float) -> Evidence:
        """Never raises NodeError: what cannot be had is said in its place."""
        ...

    async def close(self) -> None: ...


Nodes: TypeAlias = Mapping[str, NodeConnection]
