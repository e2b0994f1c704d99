"""What the nodes of a cluster say to each other. A link carries them in order, or breaks.

`encode`/`decode` are the wire form (msgpack). Events and commands carry the session (which master's reign) they
belong to; a receiver in another session ignores them.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from rig.lab.exo.events import Entry, Event, Struct


class Session(Struct, frozen=True, order=True):
    """One reign of one master: its node id, and the election in which it won."""

    clock: int
    master: str


class Hello(Struct, frozen=True, tag="Hello"):
    """First on a new link."""

    node_id: str
    name: str
    address: str


class Heartbeat(Struct, frozen=True, tag="Heartbeat"):
    node_id: str
    session: Session
    applied: int  # index of the next event this node needs


class Candidate(Struct, frozen=True, tag="Candidate"):
    """A vote in election `clock`: who stands, and what speaks for it."""

    clock: int
    node_id: str
    group: int  # how many nodes it was still in touch with since the last election, itself included
    seniority: int
    proposed: Session
    lineage: str  # whose state it holds: the id of the node with which that state began
    knows: bool  # that state has deployments or instances in it


class Follow(Struct, frozen=True, tag="Follow"):
    """To the master: send me the events of this session from index `start` on."""

    session: Session
    start: int


class Events(Struct, frozen=True, tag="Events"):
    session: Session
    first: int
    entries: list[Entry]
    caught_up: bool  # nothing more is waiting at the master


class Snapshot(Struct, frozen=True, tag="Snapshot"):
    """The whole state at `next_index`, with the log so far; `state` is `state.ClusterState` in its wire form."""

    session: Session
    next_index: int
    state: bytes
    log_first: int
    log_blocks: list[bytes]
    log_tail: list[Entry]
    confirmed: int  # how many of the receiver's own events are in it


class LocalEvents(Struct, frozen=True, tag="LocalEvents"):
    """From a node to the master, to be numbered: its events `first_seq`, …, which it counts from its start on.

    `base` is the first one it has for this session: after an absence those before it are void.
    """

    session: Session
    origin: str
    base: int
    first_seq: int
    events: list[Event]


CommandKind: TypeAlias = Literal[
    "TextGeneration",
    "TaskCancelled",
    "PlaceInstance",
    "CreateInstance",
    "DeleteInstance",
    "CreateDeployment",
    "DeleteDeployment",
]


class Command(Struct, frozen=True, tag="Command"):
    """From an API to the master. Which fields count depends on `kind`; `target` is the id of what it is about."""

    session: Session
    command_id: str
    kind: CommandKind
    model_id: str = ""
    target: str = ""
    prompt_tokens: int = 0
    max_tokens: int = 0
    prompt_hash: int = 0
    sharding: str = "Pipeline"
    instance_meta: str = "MlxRing"
    min_nodes: int = 1
    nodes: tuple[str, ...] = ()  # CreateInstance: the wanted nodes in order of rank
    runners: tuple[str, ...] = ()
    port: int = 0


class Accepted(Struct, frozen=True, tag="Accepted"):
    """The master has this command and will act on it."""

    session: Session
    command_id: str


class RingBroken(Struct, frozen=True, tag="RingBroken"):
    """From the node of a dead rank to those of the others: what the closing of its ring socket tells."""

    instance_id: str
    runner_id: str


class RingHung(Struct, frozen=True, tag="RingHung"):
    """From the node of a hung rank, again and again: nothing moves in this ring."""

    instance_id: str


class Fatal(Struct, frozen=True, tag="Fatal"):
    """A diagnostic that ends exo where it is read (exo 0.3.70, after the kill of a hung runner)."""

    text: str


AnyMessage: TypeAlias = (
    Hello
    | Heartbeat
    | Candidate
    | Follow
    | Events
    | Snapshot
    | LocalEvents
    | Command
    | Accepted
    | RingBroken
    | RingHung
    | Fatal
)

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024  # a snapshot with a long log; a host refuses more

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes) -> AnyMessage:
    """Raises msgspec.DecodeError for what is no message."""
    return _decoder.decode(data)
