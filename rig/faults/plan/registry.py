"""The kinds of faults that there are: one for each file of `rig.faults`, and of each target's own `faults`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Final

import rig.faults
from rig.faults.plan.kind import AnyKind, Need, RoleProcess
from rig.targets import registry

OF_TARGETS: Final = (f"rig.targets.{name}.faults" for name in registry.NAMES)
PACKAGES: Final = (rig.faults, *(import_module(name) for name in OF_TARGETS if find_spec(name) is not None))
"""Where kinds are looked for."""


def _registered() -> dict[str, AnyKind]:
    return _in_order(
        import_module(module.name).KIND
        for package in PACKAGES
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        if not module.ispkg
    )


def _in_order(found: Iterable[AnyKind]) -> dict[str, AnyKind]:
    """By their places. Two kinds that share a name or a place are a mistake of whoever added the second."""
    kinds = sorted(found, key=lambda kind: kind.place)
    for first, second in pairwise(kinds):
        assert first.place != second.place, f"{first.name} and {second.name} have the same place {first.place}"
    names = {kind.name: kind for kind in kinds}
    assert len(names) == len(kinds), "two kinds of faults have the same name"
    return names


KINDS: Final[Mapping[str, AnyKind]] = _registered()
"""By name, in the order that seeded schedules follow."""


KILLS_OF_WORKERS: Final = tuple(name for name, kind in KINDS.items() if isinstance(kind.aim, RoleProcess))
"""The kinds that kill one process of an instance and leave the rest."""


def kinds_of(names: Iterable[str]) -> list[AnyKind]:
    """Those that are known: a journal may name kinds that are not there any more."""
    return [KINDS[name] for name in names if name in KINDS]


def names_where(holds: Callable[[AnyKind], bool]) -> frozenset[str]:
    """The names of the kinds of which something holds."""
    return frozenset(kind.name for kind in KINDS.values() if holds(kind))


def needing(names: Collection[str], need: Need) -> bool:
    """Whether any of these kinds needs it of a node."""
    return any(need in kind.needs for kind in kinds_of(names))
