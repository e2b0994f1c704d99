"""The path to and from each peer carries less."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode
from rig.faults.plan.shaping import shape_values


class NetBandwidthPlan(KindPlan):
    bandwidth: int = Field(default=10_000, ge=64, le=1_000_000)  # kbit/s, to and from each peer


def _values(acting: Acting[NetBandwidthPlan]) -> Mapping[str, str]:
    return shape_values(acting, "bandwidth", acting.settings.bandwidth)


KIND = FaultKind(
    name="net-bandwidth",
    place=13,
    summary="less bandwidth to and from each peer: dummynet on a Mac, nftables on Linux",
    struck_by="what a connection carries, and the rule's own counters",
    healed_by="the rules are gone",
    wants="`dnctl` or nftables",
    script="shape.sh",
    aim=SingleNode(),
    effect="paths-shaped",
    recovery_s=5.0,
    settings=NetBandwidthPlan,
    values=_values,
    needs=frozenset({"filter"}),
    right="shape",
)
