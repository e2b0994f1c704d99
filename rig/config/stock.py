"""The stock files that come with the rig, and where a name given by the user is looked up.

Installed from a wheel they are `rig/stock/{inventories,workloads,faults}` inside the package; in a checkout (also an
editable install) they are the top-level folders of the repository. Node scripts (`*.sh`) live in `faults`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

from rig.errors import ConfigError

Folder: TypeAlias = Literal["inventories", "workloads", "faults"]
SINGULAR: dict[Folder, str] = {"inventories": "inventory", "workloads": "workload", "faults": "fault plan"}
_SUFFIXES = (".yaml", ".yml")


def stock_folder(folder: Folder) -> Path:
    """The folder of stock files of one sort. Raises ConfigError if the installation is incomplete."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "stock" / folder, package.parent / folder):
        if candidate.is_dir():
            return candidate
    raise ConfigError(
        f"the stock {folder} are missing from this installation",
        file=str(package / "stock" / folder),
        remedy="install the rig again",
    )


def scripts_folder() -> Path:
    """The folder whose `*.sh` are the node scripts."""
    return stock_folder("faults")


def find(name_or_path: str, folder: Folder) -> Path:
    """The file that the user means: a path, else a name in the working folder, else a stock name.

    A name `chat` is looked for as `./workloads/chat.yaml`, `./chat.yaml`, then among the stock files. Raises
    ConfigError listing the names there are.
    """
    path = Path(os.path.expanduser(name_or_path))
    if path.is_file():
        return path
    if _looks_like_path(name_or_path):
        what = "is a folder, not a file" if path.is_dir() else "not a regular file" if path.exists() else "no such file"
        article = "an" if folder == "inventories" else "a"
        raise ConfigError(
            what,
            file=name_or_path,
            remedy=f"give the path of {article} {SINGULAR[folder]} file, or a name: {_listed(folder)}",
        )
    for place in _places(folder):
        for suffix in _SUFFIXES:
            candidate = place / f"{name_or_path}{suffix}"
            if candidate.is_file():
                return candidate
    raise ConfigError(
        f"there is no {SINGULAR[folder]} of this name",
        file=name_or_path or "(empty name)",
        remedy=f"give a path, or one of: {_listed(folder)}",
    )


def names(folder: Folder) -> list[str]:
    """Every name that `find` would accept for a file in one of the named folders (not those lying in `.` itself)."""
    found: set[str] = set()
    for place in (Path(folder), stock_folder(folder)):
        if place.is_dir():
            found |= {path.stem for path in place.iterdir() if path.suffix in _SUFFIXES and path.is_file()}
    return sorted(found)


def _places(folder: Folder) -> tuple[Path, ...]:
    return Path(folder), Path(), stock_folder(folder)


def _looks_like_path(text: str) -> bool:
    return "/" in text or text.endswith(_SUFFIXES) or text.startswith(("~", "."))


def _listed(folder: Folder) -> str:
    return ", ".join(names(folder)) or "(none)"
