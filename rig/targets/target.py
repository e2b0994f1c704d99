"""The seam of a system under test: one value a target, with an ability for each thing that the rig may ask of it.

An OpenAI-compatible chat endpoint is all that a target must have. Every other ability is `None` where it is missing;
what the rig would have done with it is then left out, of the run and of its reports. Which processes are the target's
own is said by its `rig.config.process.Process`, what is judged of it by `rig.analysis.recovery.judged`.

Every call is bounded in time and size. It raises TargetUnreachable without an answer, TargetMisread for one that is not
understood, TargetError for one that says of an error. URLs are those of a node's API as the controller reaches it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from rig.errors import TargetError
from rig.journal.records import Facet
from rig.nodes.node import NodeConnection
from rig.targets import registry
from rig.targets.views import Deployments, Instances


@dataclass(frozen=True)
class Poll:
    """One cheap request that answers some facets. Sent in every `every`-th round; with `rare`, at a slow pace."""

    name: str
    facets: tuple[Facet, ...]
    every: int = 1
    rare: bool = False


@dataclass(frozen=True)
class Answered:
    """What a poll told. `doubts`: what is missing of it or not understood, as sentences; `facets` hold all the rest."""

    facets: Mapping[Facet, Any]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Posted:
    """A deployment was taken, or was there already (`created` False). `id` is `None` when the target did not say it."""

    id: str | None
    created: bool


@dataclass(frozen=True)
class TargetEvent:
    """An entry of the target's own event log that matters, in canonical form."""

    name: str
    data: dict[str, Any]


@dataclass(frozen=True)
class ServedBy:
    """A request's response id, and the instance it went to."""

    response_id: str
    instance: str


@dataclass(frozen=True)
class Reported:
    """A node made its periodic report: no news, but a clock within the log, which has no times."""

    node: str


@dataclass(frozen=True)
class NotUnderstood:
    """An entry that matters, by its name, but does not say what it should."""

    why: str


@dataclass(frozen=True)
class LogSign:
    """What a line of the target's log says of mastership (`None`: nothing), and whether it deserves the journal.

    `elected` is the id of the other node that it names as master.
    """

    claims_master: bool | None
    matters: bool
    elected: str = ""


@dataclass(frozen=True)
class Piece:
    """Of an event log's file. `head`: its first bytes, by which one that was begun anew is told. `size`: the file's."""

    path: str
    inode: str
    size: int
    head: bytes
    data: bytes


class ShowsViews(Protocol):
    """Each node tells how it sees the cluster, to polls."""

    @property
    def polls(self) -> tuple[Poll, ...]: ...

    async def read(self, url: str, poll: Poll, *, timeout_s: float) -> Answered:
        """One poll's facets; those that this target does not have are left out."""
        ...


class Deploys(Protocol):
    """Models are deployed by request, and stay so."""

    async def deployments(self, url: str) -> Deployments: ...

    async def deploy(self, url: str, request: Mapping[str, Any]) -> Posted:
        """Post a deployment. That there is one of this model already is no error."""
        ...

    async def delete_deployment(self, url: str, deployment: str) -> bool:
        """False when there is no such deployment."""
        ...


class ListsInstances(Protocol):
    """Instances of models are listed, with the nodes that they are on."""

    async def node_id(self, url: str) -> str: ...

    async def instances(self, url: str) -> Instances: ...

    def listed(self, facets: Mapping[Facet, Any]) -> Instances:
        """Those in the facets of one node's view. Pure."""
        ...

    def doing(self, facets: Mapping[Facet, Any]) -> Mapping[str, str]:
        """What their workers do, by the workers' ids, in the target's words. Pure."""
        ...

    async def place(self, url: str, request: Mapping[str, Any]) -> None:
        """Ask for an instance by hand, without a deployment. Being taken does not mean that it fits."""
        ...

    async def delete_instance(self, url: str, instance: str) -> bool:
        """False when there is no such instance."""
        ...


class HasPrimary(Protocol):
    """One node is master; the lines of its log say which."""

    @property
    def master_ere(self) -> str:
        """Extended regular expression for those lines."""
        ...

    def log_sign(self, line: str) -> LogSign: ...


class EventRecords(Protocol):
    """Feed it the bytes of an event log's file from its beginning."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The entries that are complete by now. Raises ValueError for what is no event log."""
        ...


class KeepsEventLog(Protocol):
    """Each node has an event log, over its API and in a file."""

    def events(self, url: str, *, timeout_s: float, limit_bytes: int) -> AsyncGenerator[tuple[int, bytes]]:
        """The node's event log from its beginning, as (index, entry), in flat memory.

        Raises TargetError when it is cut or longer than `limit_bytes`; what came before that has been yielded.
        """
        ...

    async def flush_events(self, url: str, *, timeout_s: float) -> None:
        """Have the node write out what its event log's file still lacks. Cheap, however long the log is."""
        ...

    async def read_piece(self, conn: NodeConnection, offset: int) -> Piece | None:
        """What is in the file from byte `offset` on, bounded; None where there is no such file. NodeError."""
        ...

    def records(self) -> EventRecords: ...

    def event(self, entry: bytes) -> TargetEvent | ServedBy | Reported | NotUnderstood | None:
        """What an entry says, `None` for one that does not matter."""
        ...

    def repeats(self, event: TargetEvent, known: dict[str, str]) -> bool:
        """Whether it says again what is `known` of its log, or what changes with every request; takes note of it."""
        ...


class TellsWhoServed(Protocol):
    """A node knows which instance a request went to."""

    async def served_by(self, url: str, response_ids: Iterable[str]) -> dict[str, str]:
        """Response id → instance, as far as this node's state still tells."""
        ...


async def _nothing_to_close() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Target:
    """A system under test. `close` ends its connections, which are made at the first call.

    That each node's API serves chat completions goes without saying: `rig.load` asks for nothing else.
    """

    name: str
    token_a_chunk: bool = False  # it streams each token in a chunk of its own, so that they can be counted
    views: ShowsViews | None = None
    deploys: Deploys | None = None
    instances: ListsInstances | None = None
    primary: HasPrimary | None = None
    event_log: KeepsEventLog | None = None
    who_served: TellsWhoServed | None = None
    close: Callable[[], Awaitable[None]] = _nothing_to_close

    @property
    def polls(self) -> tuple[Poll, ...]:
        return () if self.views is None else self.views.polls

    def deploying(self) -> Deploys:
        """For what makes no sense without. Raises TargetError."""
        if self.deploys is None:
            raise TargetError(f"{self.name} takes no deployments")
        return self.deploys

    def listing(self) -> ListsInstances:
        """For what makes no sense without. Raises TargetError."""
        if self.instances is None:
            raise TargetError(f"{self.name} lists no instances")
        return self.instances


@dataclass(frozen=True)
class Opener:
    """The table of a target's module `target`: how it is made, anew for each event loop."""

    open: Callable[[], Target]


def open_target(name: str) -> Target:
    """The target that an inventory names. To be closed by whoever opened it."""
    return registry.table(name, "target", Opener).open()


@asynccontextmanager
async def opened_target(name: str) -> AsyncGenerator[Target]:
    target = open_target(name)
    try:
        yield target
    finally:
        await target.close()
