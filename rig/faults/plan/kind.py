"""What a kind of fault is: everything that the rest of the rig wants to know of it, in one value.

Each kind is one file beside this package that makes one `FaultKind` named `KIND`, and one script in `faults/`.
Schedule, validation, command line, doctor, bootstrap, reports, simulation and audit ask the registry; none of them has
a list of kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field

from rig.config.fields import Duration, Span, Strict, Text
from rig.config.inventory import Node
from rig.faults.plan.witness import Witness

__all__ = [
    "Acting",
    "AnyKind",
    "CannotAim",
    "Effect",
    "EveryNode",
    "FaultKind",
    "KindPlan",
    "Pair",
    "PairPlan",
    "RoleNode",
    "RoleProcess",
    "SingleNode",
    "Split",
]


class CannotAim(Exception):
    """The fault cannot be struck now, for the reason given. It is skipped, not failed."""


class KindPlan(Strict):
    """How one kind of fault is drawn. `nodes` limits what it may hit (names or a group).

    A kind with settings of its own adds them in a subclass, each with its unit.
    """

    weight: float = Field(default=1.0, ge=0, le=1000)
    hold: Span = (0.0, 0.0)  # kinds that restart something: the delay before it is started again
    nodes: list[Text] | None = Field(default=None, min_length=1)
    time_to_serve: Duration | None = Field(default=None, gt=0)  # bound from heal, for the verdict; None: none


class PairPlan(KindPlan):
    """Settings of a `Pair`."""

    halves: list[Text] = Field(default=["freeze", "node-crash"], min_length=2, max_length=2)  # on two nodes


S = TypeVar("S", bound=KindPlan)

# What a fault is aimed at


@dataclass(frozen=True)
class SingleNode:
    """One node that may be hit."""


@dataclass(frozen=True)
class EveryNode:
    """Every node that may be hit in turn, a fault a node, without waiting for a recovery in between."""


@dataclass(frozen=True)
class RoleNode:
    """The node that has a role of the target when it is struck, such as `master`."""

    role: str


@dataclass(frozen=True)
class RoleProcess:
    """One process that has a role of the target, such as a worker, and serves a deployed model."""

    role: str


@dataclass(frozen=True)
class Split:
    """Two sides that do not hear each other.

    `bridge`: single nodes that all others still reach. `one_way`: only one direction is cut.
    """

    bridge: bool = False
    one_way: bool = False

    @property
    def nodes_needed(self) -> int:
        return 3 if self.bridge else 2


@dataclass(frozen=True)
class Pair:
    """Two nodes at the same moment, each with a kind of its own (`halves`)."""


Aiming: TypeAlias = SingleNode | EveryNode | RoleNode | RoleProcess | Split | Pair

Effect: TypeAlias = Literal[
    "tree-killed", "tree-ended", "tree-stopped", "process-killed", "paths-cut", "paths-shaped", "restarted", "elsewhere"
]
"""What it does to the target's processes and paths, as a simulated node carries it out and as a ledger must show it.

`restarted`: the machine. `elsewhere`: to the machine only (its memory, disk, processors), which no process notices.
"""
Need: TypeAlias = Literal["filter", "delay", "disk", "link", "reboot"]
"""What a node must have for it, as the doctor looks: a packet filter, a queue that delays, a writable home, …"""
Right: TypeAlias = Literal["cut", "shape", "link", "reboot"]
"""What of root's the rig's user must be allowed there (`rig bootstrap`)."""


@dataclass(frozen=True, kw_only=True)
class Acting(Generic[S]):
    """What the arguments of a script follow from, on one node. `peers`: the addresses of the other nodes.

    `emulated`: the nodes share one machine, so that what is taken from it must be a token amount.
    """

    name: str
    node: Node
    settings: S
    peers: Sequence[str] = ()
    emulated: bool = False


def _nothing(acting: Acting[Any]) -> Mapping[str, str]:
    del acting
    return {}


@dataclass(frozen=True, kw_only=True)
class FaultKind(Generic[S]):
    """One kind of fault."""

    name: str
    place: int
    """In the order of kinds that seeded schedules follow. A new kind takes the next free number; none is used again."""
    summary: str
    """What happens, in a few words."""
    struck_by: str
    """By what the strike is proved, in words; `witness` is the controller's own look."""
    healed_by: str
    """By what the heal is proved, in words."""
    wants: str = ""
    """What a node must have or allow for it, in words."""
    script: str
    """In `faults/`; a `Pair` has none of its own."""
    aim: Aiming
    effect: Effect
    recovery_s: float
    """Usual seconds at pace 1 from heal to the first request served. Only for what to expect of a schedule."""
    hold: Literal["needed", "optional", "none"] = "needed"
    settings: type[S]
    values: Callable[[Acting[S]], Mapping[str, str]] = _nothing
    """The script's arguments beside those of every script. Raises CannotAim."""
    witness: Witness | None = None
    """How the controller sees the strike with its own eyes; a `Split` is seen from its other side."""
    restarts: bool = False
    """What the target runs there is started again by the inventory's `start`."""
    half: bool = False
    """It may be one of the two halves of a pair."""
    needs: frozenset[Need] = field(default_factory=frozenset[Need])
    right: Right | None = None

    @property
    def cuts(self) -> bool:
        """Whether peers do not reach each other."""
        return isinstance(self.aim, Split)

    @property
    def hits_process(self) -> bool:
        """Whether the main process of its node is killed, stopped or ended (own-node rule)."""
        return self.effect in ("tree-killed", "tree-ended", "tree-stopped", "restarted")

    @property
    def ends_process(self) -> bool:
        """Whether that process is gone afterwards."""
        return self.hits_process and self.effect != "tree-stopped"

    @property
    def heals_at_strike(self) -> bool:
        """Whether there is nothing to give back: the target may recover from the strike on."""
        return self.effect == "process-killed"

    @property
    def nodes_needed(self) -> int:
        """How many nodes the cluster must have."""
        match self.aim:
            case Split():
                return self.aim.nodes_needed
            case Pair():
                return 2
            case _:
                return 1

    @property
    def nodes_hit(self) -> int:
        """How many nodes must be there that may be hit."""
        return 2 if self.aim in (Pair(), Split(bridge=True)) else 1


AnyKind: TypeAlias = FaultKind[Any]
