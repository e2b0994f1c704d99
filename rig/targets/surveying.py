"""The table of a target's module `init`: how an inventory of it is written from what can be seen of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.targets import registry


@dataclass(frozen=True)
class Survey:
    """`yaml` is the inventory, with `?` where something could not be found out, which `unknown` says in sentences.

    `lost` are those that were not reached, and why; without anybody reached there is no `yaml`.
    """

    yaml: str
    reached: int
    unknown: Sequence[str] = ()
    lost: Sequence[str] = ()


@dataclass(frozen=True)
class Surveying:
    """`survey(places, key, name)`: places as the user gave them (hosts, URLs), an SSH key, the inventory's name."""

    survey: Callable[[list[str], Path | None, str], Survey]


def survey_of(target: str) -> Surveying:
    return registry.table(target, "init", Surveying)
