"""The durations of a fault plan, divided by `pace` once and for all. See `rig.config.paced`."""

from __future__ import annotations

from rig.clock import Pace
from rig.faults.plan.kind import KindPlan
from rig.faults.plan.plan import Plan


def paced_plan(plan: Plan, pace: Pace) -> Plan:
    """The fault plan with gaps, holds, settle, sustained, baseline and the bounds of time to serve divided."""
    return plan.model_copy(
        update={
            "gap": _paced_span(plan.gap, pace),
            "settle": pace.scale(plan.settle),
            "sustained": pace.scale(plan.sustained),
            "baseline": pace.scale(plan.baseline),
            "kinds": {kind: _paced_kind(kind_plan, pace) for kind, kind_plan in plan.kinds.items()},
        }
    )


def _paced_kind(kind: KindPlan, pace: Pace) -> KindPlan:
    bound_s = kind.time_to_serve
    return kind.model_copy(
        update={
            "hold": _paced_span(kind.hold, pace),
            "time_to_serve": None if bound_s is None else pace.scale(bound_s),
        }
    )


def _paced_span(span: tuple[float, float], pace: Pace) -> tuple[float, float]:
    return pace.scale(span[0]), pace.scale(span[1])
