"""Arguments of the scripts that end what the target runs on a node and start it again."""

from __future__ import annotations

from collections.abc import Mapping

from rig.faults.plan.kind import Acting, CannotAim, KindPlan


def restart_values(acting: Acting[KindPlan]) -> Mapping[str, str]:
    exo = acting.node.process
    if exo.start is None:
        raise CannotAim(f"{acting.name}: the inventory does not say how exo is started (`exo.start`)")
    return {"start": exo.start, "hold_cmd": exo.hold or "", "release_cmd": exo.release or ""}


def stop_values(acting: Acting[KindPlan]) -> Mapping[str, str]:
    """Without a `stop` the script sends SIGTERM."""
    return {**restart_values(acting), "stop": acting.node.process.stop or ""}
