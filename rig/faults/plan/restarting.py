"""Arguments of the scripts that end what the target runs on a node and start it again."""

from __future__ import annotations

from collections.abc import Mapping

from rig.faults.plan.kind import Acting, CannotAim, KindPlan


def restart_values(acting: Acting[KindPlan]) -> Mapping[str, str]:
    process = acting.node.process
    if process.start is None:
        wanted = f"{process.section}.start"
        raise CannotAim(f"{acting.name}: the inventory does not say how {process.section} is started (`{wanted}`)")
    return {"start": process.start, "hold_cmd": process.hold or "", "release_cmd": process.release or ""}


def stop_values(acting: Acting[KindPlan]) -> Mapping[str, str]:
    """Without a `stop` the script sends SIGTERM."""
    return {**restart_values(acting), "stop": acting.node.process.stop or ""}
