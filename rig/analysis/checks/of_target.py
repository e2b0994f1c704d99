"""The table of a target's package `checks`: which checks there are for a run on it, and what each goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rig.analysis.checks.check import Check
from rig.journal.records import Facet
from rig.targets import registry


@dataclass(frozen=True, kw_only=True)
class TargetChecks:
    """`own` judge its promises; `symptoms` are those of `rig.analysis.checks.symptoms` that it can show.

    `needs` are the facets that each of `own` goes by, also none: what is forgotten would pass blindly.
    """

    own: tuple[Check, ...] = ()
    symptoms: tuple[Check, ...] = ()
    needs: Mapping[str, frozenset[Facet]] = field(default_factory=dict[str, "frozenset[Facet]"])


def checks_of_target(target: str) -> TargetChecks:
    """None for a target that a journal names and this rig does not know."""
    return registry.table(target, "checks", TargetChecks) if target in registry.NAMES else TargetChecks()
