"""exo's inventories, to be made by code."""

from __future__ import annotations

from typing import Final

from rig.config.target_fields import inventory_model, node_model

ExoNode: Final = node_model("exo")
ExoInventory: Final = inventory_model("exo")
