"""Every packet to a peer comes later."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rig.config.fields import Duration
from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode
from rig.faults.plan.shaping import shape_values


class NetDelayPlan(KindPlan):
    delay: Duration = Field(default=0.2, ge=0.005, le=10)  # s, of every packet to a peer; not divided by a pace


def _values(acting: Acting[NetDelayPlan]) -> Mapping[str, str]:
    return shape_values(acting, "delay", round(acting.settings.delay * 1000))


KIND = FaultKind(
    name="net-delay",
    place=11,
    summary="every packet to a peer comes later: dummynet on a Mac, tc netem on Linux",
    struck_by="a longer round trip, and the rule's own counters",
    healed_by="the rules are gone",
    wants="`dnctl`, or netem in the kernel",
    script="shape.sh",
    aim=SingleNode(),
    effect="paths-shaped",
    recovery_s=1.0,
    settings=NetDelayPlan,
    values=_values,
    needs=frozenset({"delay"}),
    right="shape",
)
