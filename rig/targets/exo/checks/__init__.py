"""Checks of what exo promises, and of the symptoms that it can show: all of them."""

from __future__ import annotations

from typing import Final

from rig.analysis.checks import scenario, symptoms
from rig.analysis.checks.of_target import TargetChecks
from rig.analysis.symptoms.blind import EVENTS
from rig.targets.exo.checks import calls, keeper, promises

_NOTHING: Final = frozenset[str]()
_KEEPER: Final = frozenset({"nodes", "links", "instances", "runners", "deployments", EVENTS})

CHECKS: Final = TargetChecks(
    own=(*keeper.CHECKS, *promises.CHECKS, *calls.CHECKS, *scenario.CHECKS),
    symptoms=tuple(symptoms.CHECKS),
    needs={
        **{name: _KEEPER for name, _, _ in promises.PROMISES},
        "one-instance-per-model": frozenset({"instances", "deployments"}),
        "deployments-outlive-master": frozenset({"deployments"}),
        "status-true": frozenset({"instances", "runners", "deployments"}),
        "deleted-once": frozenset({"instances", EVENTS}),
        "duplicates-refused": _NOTHING,
        "unknown-is-404": _NOTHING,
        "placed-by-hand-appears": frozenset({"instances"}),
        "as-expected": _KEEPER - {EVENTS},
    },
)
