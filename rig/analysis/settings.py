"""What the analysis needs to know of a run beforehand, read leniently from `run.json`.

All durations are as the run used them, that is already divided by its pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rig.faults.plan.plan import Plan
from rig.journal.run import RunInfo
from rig.targets import registry

_Floats: TypeAlias = NDArray[np.float64]
OWN_NODE_TOLERANCE_S: Final = 1.0
"""A fault that came this soon after a request's last progress may have stopped it (at pace 1)."""
LEAD_S: Final = 0.5
"""Processes stop this long before a strike or restart is known: a tree is stopped before it is killed (at pace 1)."""

CALM_ERRORS: Final = float(Plan.model_fields["calm_errors"].default)
"""The bound of runs whose plan has none."""


@dataclass(frozen=True, slots=True)
class Objectives:
    """Seconds; None sets no objective. TTFT and ITL apply to streams alone.

    Goodput counts the requests that meet *all* objectives (DistServe, OSDI 2024; `vllm bench serve --goodput`).
    """

    ttft_s: float | None = None
    itl_s: float | None = None
    e2el_s: float | None = None

    @property
    def any(self) -> bool:
        return (self.ttft_s, self.itl_s, self.e2el_s) != (None, None, None)

    def met(self, ttft_s: _Floats, itl_s: _Floats, e2el_s: _Floats) -> NDArray[np.bool_]:
        """Mask of the requests that met every objective; a time that a request cannot have (NaN) is met."""
        met = np.ones(len(e2el_s), dtype=np.bool_)
        for limit_s, values in ((self.ttft_s, ttft_s), (self.itl_s, itl_s), (self.e2el_s, e2el_s)):
            if limit_s is not None:
                met &= ~(values > limit_s)
        return met


NO_OBJECTIVES: Final = Objectives()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Durations are in seconds of the run's clock. `bounds` maps a fault kind to its bound of time to serve, if any.

    `calm_errors` is how many of the requests that nothing touched may get an error, as a share. `due_kinds` are the
    kinds among the faults that a run of this length was expected to strike.
    """

    models: tuple[str, ...]
    target: str = registry.DEFAULT
    entries: tuple[str, ...] = ()
    pace: float = 1.0
    sustained_s: float = 15.0
    settle_s: float = 240.0
    baseline_s: float = 300.0
    tolerance_s: float = OWN_NODE_TOLERANCE_S
    lead_s: float = LEAD_S
    open_loop: bool = False
    objectives: Objectives = NO_OBJECTIVES
    calm_errors: float = CALM_ERRORS
    bounds: Mapping[str, float] = field(default_factory=dict[str, float])
    plan_kinds: tuple[str, ...] = ()
    due_kinds: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


def settings_of(info: RunInfo) -> Settings:
    """The settings of a run. Missing values in `run.json` get the defaults of the configuration, paced."""
    plan, workload, pace = info.plan, info.workload, max(info.pace, 1.0)
    kinds = {str(kind): _mapping(value) for kind, value in _mapping(plan.get("kinds")).items()}
    bounds = {kind: float(bound) for kind, value in kinds.items() if (bound := value.get("time_to_serve")) is not None}
    models = [str(model["model"]) for item in _sequence(workload.get("models")) if "model" in (model := _mapping(item))]
    return Settings(
        models=tuple(dict.fromkeys(models)),
        target=str(info.inventory.get("target", registry.DEFAULT)),
        entries=tuple(str(name) for name in _mapping(info.inventory.get("nodes"))),
        pace=pace,
        sustained_s=_number(plan, "sustained", 15.0 / pace),
        settle_s=_number(plan, "settle", 240.0 / pace),
        baseline_s=_number(plan, "baseline", 300.0 / pace),
        tolerance_s=OWN_NODE_TOLERANCE_S / pace,
        lead_s=LEAD_S / pace,
        open_loop=_mapping(workload.get("arrivals")).get("kind", "closed") != "closed",
        objectives=_objectives(_mapping(workload.get("objectives"))),
        calm_errors=_number(plan, "calm_errors", CALM_ERRORS),
        bounds=bounds,
        plan_kinds=tuple(kind for kind, value in kinds.items() if float(value.get("weight", 1.0)) > 0),
        due_kinds=tuple(dict.fromkeys(planned.kind for planned in info.schedule[: info.expected_faults])),
        requires=tuple(str(name) for name in _sequence(plan.get("requires"))),
    )


def _objectives(given: Mapping[str, Any]) -> Objectives:
    found = {name: float(value) for name, value in given.items() if isinstance(value, int | float)}
    return Objectives(ttft_s=found.get("ttft"), itl_s=found.get("itl"), e2el_s=found.get("e2el"))


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _number(values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key)
    return float(value) if isinstance(value, int | float) else default
