"""A share of the packets to and from peers is lost."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode
from rig.faults.plan.shaping import shape_values


class NetLossPlan(KindPlan):
    loss: int = Field(default=10, ge=2, le=90)  # per cent of the packets to and from peers


def _values(acting: Acting[NetLossPlan]) -> Mapping[str, str]:
    return shape_values(acting, "loss", acting.settings.loss)


KIND = FaultKind(
    name="net-loss",
    place=12,
    summary="a share of the packets to and from peers is lost: dummynet on a Mac, nftables on Linux",
    struck_by="a lost packet, and the rule's own counters",
    healed_by="the rules are gone",
    wants="`dnctl` or nftables",
    script="shape.sh",
    aim=SingleNode(),
    effect="paths-shaped",
    recovery_s=5.0,
    settings=NetLossPlan,
    values=_values,
    needs=frozenset({"filter"}),
    right="shape",
)
