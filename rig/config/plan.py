"""The fault plan: which kinds of faults, how often, how long, and what a sound target must manage."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from rig.config.fields import Duration, Span, Strict, Text

Kind = Literal["node-crash", "master-crash", "freeze", "runner-kill", "partition"]
KINDS: Final[tuple[Kind, ...]] = ("node-crash", "master-crash", "freeze", "runner-kill", "partition")


class KindPlan(Strict):
    """How one kind of fault is drawn. `nodes` limits what it may hit (names or a group)."""

    weight: float = Field(default=1.0, ge=0, le=1000)
    hold: Span = (0.0, 0.0)  # node-crash, master-crash: the delay before exo is started again
    nodes: list[Text] | None = Field(default=None, min_length=1)
    clients_cut: bool = False  # partition: whether the clients' API path is cut too
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
    shuffle: bool = True  # draw kinds by weighted shuffle (every kind comes early) instead of independently
    kinds: dict[Kind, KindPlan] = Field(min_length=1, description="the kinds of faults, such as `freeze:`")
    requires: list[Text] = Field(default_factory=list)  # checks that must have been exercised
