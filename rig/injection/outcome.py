"""What the ends of a fault's scripts mean together: last state, reason, evidence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rig.injection.act import Progress
from rig.injection.aim import Aim
from rig.injection.verify import Account
from rig.journal.records import FaultState

_WORST: tuple[FaultState, ...] = ("unhealed", "invalid", "skipped", "ineffective", "healed")


def outcome(progress: Sequence[Progress]) -> FaultState:
    """The worst end of all. A fault of which one part was struck and another skipped is invalid: half a cut is none."""
    ends = {one.end for one in progress}
    if "skipped" in ends and any(one.first("struck") for one in progress):
        ends.add("invalid")
    for state in _WORST:
        if state in ends:
            return state
    return "invalid"


def detail(progress: Sequence[Progress]) -> str:
    """Why it did not end well, by node where there are several."""
    return "; ".join(
        f"{one.act.node}: {one.detail}" if len(progress) > 1 else one.detail
        for one in progress
        if one.detail and (one.end != "healed" or one.lost)
    )


def evidence(
    fault_id: str, progress: Sequence[Progress], accounts: Sequence[Account], aim: Aim | None
) -> dict[str, Any]:
    """What the scripts said, by node and event, and what the controller saw itself."""
    found: dict[str, Any] = {"id": fault_id}
    if aim is not None and aim.instance is not None:
        found["instance"] = aim.instance
    if aim is not None and aim.partial:
        found["partial"] = aim.partial
    for one in progress:
        said: dict[str, Any] = {event.event: {"node_t": event.node_t, **event.fields} for event in one.events}
        if one.lost:
            said["connection"] = "lost on the way; the rest was read from the script's own log"
        found[one.act.node] = said
    if accounts:
        found["controller"] = [
            {"node": account.node, "says": account.says, "text": account.text} for account in accounts
        ]
    return found
