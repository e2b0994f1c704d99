"""The fault plan: which kinds of faults, how often, how long, and what a sound target must manage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from pydantic import BaseModel, Field, SerializeAsAny, create_model

from rig.config.fields import Duration, Span, Strict, Text
from rig.faults.plan.kind import KindPlan
from rig.faults.plan.registry import KINDS

__all__ = ["PLAN_FILE", "KindPlan", "Plan", "plan_of", "settings_of"]


class _Whole(Strict):
    """What a plan says beside its kinds."""

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
    requires: list[Text] = Field(default_factory=list)  # checks that must have been exercised


class Plan(_Whole):
    kinds: dict[str, SerializeAsAny[KindPlan]] = Field(min_length=1)  # each of the settings of its kind

    @property
    def struck(self) -> list[str]:
        """The kinds that a run strikes: those with a weight, in the plan's order."""
        return [kind for kind, settings in self.kinds.items() if settings.weight > 0]


_KINDS: Final[Any] = create_model(
    "Kinds", __base__=Strict, **cast("Any", {name: (kind.settings, None) for name, kind in KINDS.items()})
)
"""A key for each kind, whose value has that kind's settings."""


PLAN_FILE: Final = create_model(
    "PlanFile",
    __base__=_Whole,
    kinds=(_KINDS, Field(description="the kinds of faults, such as `freeze:`")),
)
"""A plan as it is written: `plan_of` makes a `Plan` of it."""


def plan_of(written: BaseModel, order: Iterable[str]) -> Plan:
    """`written` is a `PLAN_FILE`, `order` its kinds as they stand in the file."""
    whole = {name: getattr(written, name) for name in _Whole.model_fields}
    kinds: object = vars(written)["kinds"]
    return Plan(**whole, kinds={kind: getattr(kinds, kind) for kind in order})


def settings_of(kind: str, **settings: Any) -> KindPlan:
    """The settings of a kind, from code: durations in seconds, sizes in bytes."""
    return cast("KindPlan", KINDS[kind].settings(**settings))
