"""Arguments of the script that makes the network to the peers worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rig.faults.plan.kind import Acting, CannotAim


def shape_values(acting: Acting[Any], effect: str, amount: int) -> Mapping[str, str]:
    """`amount` in the unit of the effect: ms, per cent, kbit/s."""
    if not acting.peers:
        raise CannotAim("the inventory has no `addresses` of the other nodes")
    return {"peers": " ".join(acting.peers), "effect": effect, "amount": str(amount)}
