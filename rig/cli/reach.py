"""The inventory that a command on running nodes is to use."""

from __future__ import annotations

from dataclasses import dataclass

from rig.config.inventory import Inventory
from rig.config.read import load_inventory
from rig.errors import UsageError


@dataclass(frozen=True)
class Reach:
    """`name` is what the user would give as --inventory."""

    name: str
    inventory: Inventory


def running_nodes(name: str | None) -> Reach:
    """The named inventory; without a name, or for one that is only embedded, the running embedded cluster's.

    Raises ConfigError, and UsageError when there are no nodes to reach.
    """
    if name is not None:
        inventory = load_inventory(name)
        if inventory.nodes:
            return Reach(name, inventory)
    from rig.cli.cluster import default_folder, running

    folder = default_folder()
    if running(folder) is None:
        wanted = "no inventory was given" if name is None else f"{name} is an embedded cluster"
        raise UsageError(
            f"{wanted}, and no embedded cluster runs",
            remedy="--inventory NAME (or RIG_INVENTORY), `rig init HOST…` to write one, or `rig cluster up` first",
        )
    own = str(folder / "inventory.yaml")
    return Reach(own, load_inventory(own))
