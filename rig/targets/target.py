"""The seam of a system under test: everything that the rig asks of one.

exo comes first (`rig.targets.exo.api`). Another target fits when it can answer polls with some of the canonical facets,
take deployments and serve an OpenAI-compatible chat endpoint; facets that it does not have are absent, and what it
cannot do raises TargetError. URLs are those of a node's API as the controller reaches it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rig.journal.records import Facet
from rig.observe.views import Deployments, Instances


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
    """An entry of the target's own event log that matters, in canonical form (see `rig.targets.exo.events`)."""

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


class Target(Protocol):
    """Every call is bounded in time and size. Raises TargetUnreachable without an answer, TargetMisread for one that is
    not understood, TargetError for one that says of an error.
    """

    name: str
    chat_path: str  # of an OpenAI-compatible chat completions endpoint, below a node's URL
    polls: tuple[Poll, ...]
    master_ere: str  # extended regular expression for the lines of its log that say who is master

    async def read(self, url: str, poll: Poll, *, timeout_s: float) -> Answered:
        """One poll's facets in canonical form; those that this target does not have are left out."""
        ...

    async def node_id(self, url: str) -> str: ...

    async def instances(self, url: str) -> Instances: ...

    async def deployments(self, url: str) -> Deployments: ...

    async def deploy(self, url: str, request: Mapping[str, Any]) -> Posted:
        """Post a deployment. That there is one of this model already is no error."""
        ...

    async def delete_deployment(self, url: str, deployment: str) -> bool:
        """False when there is no such deployment."""
        ...

    async def place(self, url: str, request: Mapping[str, Any]) -> None:
        """Ask for an instance by hand, without a keeper. Being taken does not mean that it fits."""
        ...

    async def delete_instance(self, url: str, instance: str) -> bool:
        """False when there is no such instance."""
        ...

    async def served_by(self, url: str, response_ids: Iterable[str]) -> dict[str, str]:
        """Response id → instance, as far as this node's state still tells."""
        ...

    async def serving_instance(self, url: str, response_id: str) -> str | None:
        """The instance that served a request; `None` when it cannot be told."""
        ...

    def events(self, url: str, *, timeout_s: float, limit_bytes: int) -> AsyncGenerator[tuple[int, bytes]]:
        """The node's event log from its beginning, as (index, entry), in flat memory.

        Raises TargetError when it is cut or longer than `limit_bytes`; what came before that has been yielded.
        """
        ...

    async def flush_events(self, url: str, *, timeout_s: float) -> None:
        """Have the node write out what its event log's file still lacks. Cheap, however long the log is."""
        ...

    def event(self, entry: bytes) -> TargetEvent | ServedBy | Reported | NotUnderstood | None:
        """What an entry says, `None` for one that does not matter."""
        ...

    def log_sign(self, line: str) -> LogSign: ...

    async def close(self) -> None: ...
