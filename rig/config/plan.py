"""The fault plan: which kinds of faults, how often, how long, and what a sound target must manage."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import Field

from rig.config.fields import Duration, Size, Span, Strict, Text

Kind = Literal[
    "node-crash",
    "master-crash",
    "freeze",
    "runner-kill",
    "partition",
    "graceful-stop",
    "rolling-restart",
    "fast-master-restart",
    "one-way-partition",
    "bridge-partition",
    "double",
    "net-delay",
    "net-loss",
    "net-bandwidth",
    "link-down",
    "memory-pressure",
    "cpu-hog",
    "disk-fill",
    "reboot",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)  # new ones at the end: seeded schedules follow this order

CUTS: Final[frozenset[Kind]] = frozenset({"partition", "one-way-partition", "bridge-partition"})
SHAPES: Final[frozenset[Kind]] = frozenset({"net-delay", "net-loss", "net-bandwidth"})
RESTARTS: Final[frozenset[Kind]] = frozenset(
    {"node-crash", "master-crash", "fast-master-restart", "graceful-stop", "rolling-restart"}
)
"""Kinds after which exo is started again by the inventory's `start`."""
AT_ONCE: Final[frozenset[Kind]] = frozenset({"runner-kill", "reboot"})
"""Kinds without a hold."""
HELD: Final[frozenset[Kind]] = frozenset(
    {"freeze", "double", "link-down", "memory-pressure", "cpu-hog", "disk-fill", *CUTS, *SHAPES}
)
"""Kinds that need a hold."""
HALF: Final[tuple[Kind, ...]] = ("freeze", "node-crash", "graceful-stop", "cpu-hog")
"""What a `double` may be made of: each on a node of its own."""
Half = Literal["freeze", "node-crash", "graceful-stop", "cpu-hog"]


class KindPlan(Strict):
    """How one kind of fault is drawn. `nodes` limits what it may hit (names or a group)."""

    weight: float = Field(default=1.0, ge=0, le=1000)
    hold: Span = (0.0, 0.0)  # node-crash, master-crash: the delay before exo is started again
    nodes: list[Text] | None = Field(default=None, min_length=1)
    clients_cut: bool = False  # partition: whether the clients' API path is cut too
    loss: int = Field(default=10, ge=2, le=90)  # net-loss: per cent of the packets to and from peers
    delay: Duration = Field(default=0.2, ge=0.005, le=10)  # net-delay: of every packet to a peer; not divided by a pace
    bandwidth: int = Field(default=10_000, ge=64, le=1_000_000)  # net-bandwidth: kbit/s, to and from each peer
    leave: Size = 2 * 2**30  # memory-pressure, disk-fill: how much is left available or free
    most: Size | None = None  # the same: never take more than this
    load: int | None = Field(default=None, ge=1, le=512)  # cpu-hog: endless loops; None: one per processor
    # link-down: which; None: a peer-facing one that does not carry the SSH session. Partitions: only what goes by it.
    interface: Text | None = None
    halves: list[Half] = Field(default=["freeze", "node-crash"], min_length=2, max_length=2)  # double: on two nodes
    time_to_serve: Duration | None = Field(default=None, gt=0)  # bound from heal, for the verdict; None: none


class Plan(Strict):
    name: Text
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    gap: Span = (60.0, 150.0)  # from the end of a fault's recovery to the next strike
    settle: Duration = Field(default=240.0, gt=0)  # no recovery by then: "not recovered"
    sustained: Duration = Field(default=15.0, gt=0)  # nothing fails for so long: recovered
    baseline: Duration = 300.0  # load without faults before the first
    blast_radius: int = Field(default=1, ge=1)
    abort_after_unrecovered: int = Field(default=3, ge=1)
    calm_errors: float = Field(default=0.005, ge=0, le=0.5)  # share of the requests that no fault touched; more: fail
    shuffle: bool = True  # draw kinds by weighted shuffle (every kind comes early) instead of independently
    kinds: dict[Kind, KindPlan] = Field(min_length=1, description="the kinds of faults, such as `freeze:`")
    requires: list[Text] = Field(default_factory=list)  # checks that must have been exercised

    @property
    def struck(self) -> list[Kind]:
        """The kinds that a run strikes: those with a weight, in the plan's order."""
        return [kind for kind, settings in self.kinds.items() if settings.weight > 0]
