"""The operations a run needs from a node, whether it is reached over SSH, is this machine itself, or is simulated.

Nothing above `rig.nodes` builds shell text or knows which implementation it holds. Every operation is bounded in time.
It raises TransportError when the node was lost and the outcome is unknown, CommandTimeout, or another NodeError.
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
"""`sign`: the last line so far that matches the pattern. `past`: one of the last lines so far. `mark`: the end of the
past, without a text. `new`: written since then."""


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
    """A line of a log that is being followed."""

    age: LineAge
    text: str = ""


@dataclass(frozen=True)
class Evidence:
    """What is kept from a node after a fault: processes, filter and leases in `state`, and the end of its log."""

    state: bytes
    log: bytes


Heard: TypeAlias = Callable[[ScriptEvent], None]
ReadClock: TypeAlias = Callable[[], Awaitable[NodeTime]]


class NodeConnection(Protocol):
    """A node of the inventory on which the node scripts have been installed."""

    name: str
    node: Node
    lock: str
    """The token of the lock that this connection holds on the node; a script strikes only under that lock."""

    async def inspect(
        self, what: What = "all", *, pids: Sequence[int] | None = None, timeout_s: float = 10.0
    ) -> Inspection:
        """What the node reports about itself. Read-only."""
        ...

    async def script(self, script: str, values: Mapping[str, str], *, timeout_s: float) -> str:
        """Runs a node script to its end and returns its output. Raises CommandFailed for a status other than 0."""
        ...

    async def strike(self, script: str, values: Mapping[str, str], heard: Heard, *, timeout_s: float) -> ScriptEnd:
        """Starts the script of a fault and follows it to its end; `heard` is called with each event as it arrives.

        The script continues on its own when this is cancelled or the node is lost.
        """
        ...

    async def heal(self, what: str, heard: Heard, *, timeout_s: float) -> ScriptEnd:
        """Undoes what the leases name, whoever struck. `what` is the id of a fault, `all` or `expired`."""
        ...

    async def fault_log(self, fault_id: str, *, timeout_s: float) -> list[ScriptEvent]:
        """The events of a fault so far, from the log that its script keeps on the node; empty without such a log."""
        ...

    async def carry_out(self, which: Which, *, timeout_s: float) -> None:
        """Runs a command of the inventory to its end; the inventory must have it.

        Raises NodeNotReady when it ends badly, or the node is locked by another rig.
        """
        ...

    def clock(self, *, timeout_s: float) -> AbstractAsyncContextManager[ReadClock]:
        """A session in which the node's clock can be read repeatedly, one round trip a reading."""
        ...

    def follow_log(self, path: str, pattern: str, *, back: int) -> AsyncGenerator[LoggedLine]:
        """Follows a log across rotations: a sign, the last `back` lines, the mark, then every new line.

        `pattern` is an extended regular expression. Close the generator: nothing is left on the node then.
        """
        ...

    async def answering(self, addresses: Sequence[str], port: int, *, timeout_s: float) -> set[str]:
        """The addresses that accept a connection from this node. All of them are tried at once."""
        ...

    async def controller_address(self) -> str:
        """The controller's address as the node sees it; empty when there is no network between them."""
        ...

    async def evidence(self, *, state_bytes: int, log_bytes: int, timeout_s: float) -> Evidence:
        """Never raises NodeError: what could not be collected is explained in its place."""
        ...

    async def close(self) -> None: ...


Nodes: TypeAlias = Mapping[str, NodeConnection]
