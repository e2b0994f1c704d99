"""Settings and arguments of the scripts that take memory or disk from a machine.

A cluster that is emulated on one machine shares it with everything else there, so that what is taken from a node of it
is a token amount: the fault is real, its harm to others is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rig.config.fields import Size
from rig.faults.plan.kind import Acting, KindPlan

TOKEN_BYTES: Final = 64 * 2**20


class TakePlan(KindPlan):
    leave: Size = 2 * 2**30  # how much is left available or free
    most: Size | None = None  # never take more than this


def take_values(acting: Acting[TakePlan]) -> Mapping[str, str]:
    settings = acting.settings
    most = min(settings.most or TOKEN_BYTES, TOKEN_BYTES) if acting.emulated else settings.most
    return {"leave": str(settings.leave), "most": str(most or "")}
