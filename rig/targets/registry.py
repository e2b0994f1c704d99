"""The targets that there are, by the name that an inventory gives; and the tables that each brings, loaded lazily.

A target is a folder `rig/targets/NAME` with one table for each room of the rig that must know something of it:

- `fields` for the files (`rig.config.target_fields.TargetFields`): its keys in an inventory and a workload
- `target` for a run (`rig.targets.target.Target`): its abilities
- `checks` for the verdict (`rig.analysis.checks.of_target.TargetChecks`): which checks there are
- `init` for `rig init` (`rig.targets.surveying.Surveying`): how an inventory of it is written
- `faults`, a package, if it has kinds of faults of its own (as in `rig.faults`)
- `judged` for the analysis (`rig.analysis.recovery.judged.Judged`): what it promises, and how that is judged

A room asks for the table of a name; nothing but this file names a target, so that no room imports one.
"""

from __future__ import annotations

import importlib
from typing import Final, TypeVar

NAMES: Final = ("exo", "openai")
DEFAULT: Final = "exo"
"""What an inventory means that names no target."""

T = TypeVar("T")


def table(name: str, room: str, kind: type[T]) -> T:
    """The value named as its room, in capitals, of the target's module for that room."""
    value = getattr(importlib.import_module(f"rig.targets.{name}.{room}"), room.upper())
    assert isinstance(value, kind), f"rig.targets.{name}.{room} has no {kind.__name__}"
    return value
