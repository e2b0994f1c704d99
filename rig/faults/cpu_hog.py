"""Endless loops keep the processors busy."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rig.faults.plan.kind import Acting, FaultKind, KindPlan, SingleNode
from rig.faults.plan.witness import AT_WORK

TOKEN_LOOPS = 1


class CpuHogPlan(KindPlan):
    load: int | None = Field(default=None, ge=1, le=512)  # endless loops; None: one per processor


def _values(acting: Acting[CpuHogPlan]) -> Mapping[str, str]:
    return {"load": str((TOKEN_LOOPS if acting.emulated else acting.settings.load) or "")}


KIND = FaultKind(
    name="cpu-hog",
    place=16,
    summary="endless loops, one a processor",
    struck_by="the processor time that they used",
    healed_by="they are gone",
    script="cpu-hog.sh",
    aim=SingleNode(),
    effect="elsewhere",
    recovery_s=1.0,
    settings=CpuHogPlan,
    values=_values,
    witness=AT_WORK,
    half=True,
)
