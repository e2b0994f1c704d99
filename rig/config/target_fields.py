"""What a target adds to the files, and the models of an inventory that follow from it."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic import Field, create_model

from rig.config.fields import NodeName, TargetName
from rig.config.inventory import Inventory, Node
from rig.config.process import Process
from rig.config.workload import Model, Workload
from rig.targets import registry


@dataclass(frozen=True, kw_only=True)
class TargetFields:
    """Of one target."""

    process: type[Process]
    process_is: str  # what is expected in the section, for who left it out
    model: type[Model] = Model  # of a workload
    roles: frozenset[str] = frozenset()  # that its nodes and processes may have, for faults to aim at
    plan: str  # the fault plan of who names none
    workload: str  # and the workload


def fields_of(target: str) -> TargetFields:
    return registry.table(target, "fields", TargetFields)


@cache
def node_model(target: str) -> type[Node]:
    """A node whose `process` is written as the target's own section."""
    fields = fields_of(target)
    process = Field(alias=fields.process.section, description=fields.process_is)
    return create_model("Node", __base__=Node, process=(fields.process, process))


@cache
def inventory_model(target: str) -> type[Inventory]:
    named = target if target == registry.DEFAULT else ...  # another must be written down, to be read as such again
    nodes = (dict[NodeName, node_model(target)], Field(default_factory=dict))
    return create_model("Inventory", __base__=Inventory, target=(TargetName, named), nodes=nodes)


@cache
def workload_model(target: str) -> type[Workload]:
    """A workload whose models say what the target wants to know of each."""
    model, written = fields_of(target).model, Workload.model_fields["models"].description
    models: Any = (types.GenericAlias(list, (model,)), Field(min_length=1, description=written))
    return create_model("Workload", __base__=Workload, models=models)


def model_for(value: Any) -> type[Inventory]:
    """The model for an inventory as it was written, by the target that it names."""
    named = cast("Mapping[str, Any]", value).get("target", registry.DEFAULT) if isinstance(value, Mapping) else None
    return inventory_model(named if isinstance(named, str) and named in registry.NAMES else registry.DEFAULT)


def inventory_from(value: Any) -> Inventory:
    """An inventory out of the plain values that it was dumped to. Raises pydantic's ValidationError."""
    return model_for(value).model_validate(value)
