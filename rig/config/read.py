"""Files → configuration, or one ConfigError that names every problem with file, line, field and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rig.config import check
from rig.config.expect import problems_of
from rig.config.fields import WRITTEN
from rig.config.inventory import Inventory
from rig.config.problems import FieldPath, Place, Problem, Source, error_of, locate
from rig.config.stock import Folder, find
from rig.config.target_fields import model_for, workload_model
from rig.config.traces import read_trace
from rig.config.tree import Tree, parse
from rig.config.workload import Workload
from rig.errors import ConfigError
from rig.targets.registry import DEFAULT

_READ_MAX = (1 << 20) + 1
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Loaded(Generic[_Model]):
    """A configuration and where each of its values was written."""

    value: _Model
    source: Source


def load_inventory(name_or_path: str) -> Inventory:
    """The inventory of this name or path. Raises ConfigError."""
    return read_inventory(name_or_path).value


def load_workload(name_or_path: str, target: str = DEFAULT) -> Workload:
    """The workload of this name or path, for a target. Raises ConfigError."""
    return read_workload(name_or_path, target).value


def read_inventory(name_or_path: str) -> Loaded[Inventory]:
    return read_file(name_or_path, "inventories", Inventory, check.inventory_problems)


def read_workload(name_or_path: str, target: str = DEFAULT) -> Loaded[Workload]:
    return read_file(
        name_or_path,
        "workloads",
        workload_model(target),
        lambda found: [*check.workload_problems(found), *_data(found)],
    )


def read_file(
    name_or_path: str, folder: Folder, model: type[_Model], problems: Callable[[_Model], list[Problem]]
) -> Loaded[_Model]:
    """The file of this name or path as a `model`, in which `problems` finds nothing. Raises ConfigError."""
    path = find(name_or_path, folder)
    tree = parse(_content(path), str(path))
    also: tuple[str, ...] = ()
    if model is Inventory:
        tree, also = _with_defaults(tree), ("defaults",)
        model = cast("type[_Model]", model_for(tree.value))
    try:
        value = model.model_validate(tree.value, context=WRITTEN)
    except ValidationError as error:
        raise error_of(locate(tree.source, problems_of(error, model, also=also))) from None
    found = problems(value)
    if found:
        raise error_of(locate(tree.source, found))
    return Loaded(value, tree.source)


def _data(workload: Workload) -> list[Problem]:
    """What is wrong with the files of recorded traffic that a workload names."""
    named = ((("arrivals", "trace"), workload.arrivals.trace, True), (("pairs",), workload.pairs, False))
    found: list[Problem] = []
    for path, name, timed in named:
        try:
            if name is not None:
                read_trace(name, timed=timed)
        except ConfigError as error:
            found.append(Problem(path, error.message))
    return found


def _content(path: Path) -> bytes:
    """The first MiB of a file and one byte more, so that a larger one shows."""
    try:
        with path.open("rb") as stream:
            return stream.read(_READ_MAX)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error


def _with_defaults(tree: Tree) -> Tree:
    """An inventory with its `defaults` put under each node where the node does not say otherwise. Lines are kept."""
    if "defaults" not in tree.value:
        return tree
    defaults: Any = tree.value["defaults"]
    nodes: Any = tree.value.get("nodes")
    if not isinstance(defaults, dict):
        problem = Problem(("defaults",), "expected keys as they stand under a node, such as `ssh:`")
        raise error_of(locate(tree.source, [problem]))
    value = {key: part for key, part in tree.value.items() if key != "defaults"}
    places = dict(tree.source.places)
    if isinstance(nodes, dict):
        written = {path[1:]: place for path, place in places.items() if path[:1] == ("defaults",)}
        merge = _Merge(written, places)
        value["nodes"] = {
            name: merge.under(("nodes", name), (), _usable(cast("dict[str, Any]", defaults), node), node or {})
            for name, node in cast("dict[str, Any]", nodes).items()
        }
    return Tree(value, Source(tree.source.file, places))


def _usable(defaults: dict[str, Any], node: Any) -> dict[str, Any]:
    """What a node takes of them: how the others are reached says nothing of one that is local."""
    local = isinstance(node, dict) and cast("dict[str, Any]", node).get("local") is True
    return {key: value for key, value in defaults.items() if not (local and key == "ssh")}


@dataclass(frozen=True)
class _Merge:
    """`written`: the places under `defaults`, by the path below it. `places`: those of the file, added to."""

    written: Mapping[FieldPath, Place]
    places: dict[FieldPath, Place]

    def under(self, node: FieldPath, below: FieldPath, defaults: Mapping[str, Any], own: Any) -> Any:
        """`own` with the keys that it lacks, level by level."""
        if not isinstance(own, dict):
            return own
        found: dict[str, Any] = {**own}
        for key, value in defaults.items():
            here = (*below, key)
            if key not in found:
                found[key] = value
                for path, place in self.written.items():
                    if path[: len(here)] == here:
                        self.places[node + path] = place
            elif isinstance(value, dict):
                found[key] = self.under(node, here, cast("dict[str, Any]", value), found[key])
        return found
