"""A scripted scenario on a simulated cluster: `rig.verify` as it is, under virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rig.config.inventory import Embedded
from rig.config.workload import Workload
from rig.lab.exo.defects import Changes
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.loop import LoopClock, VirtualLoop
from rig.targets.exo.fields import ExoModel
from rig.verify.run import Stand, journal_scenario
from rig.verify.scenario import Scenario


def simulated_scenario(
    spec: Embedded,
    workload: Workload,
    scenario: Scenario,
    *,
    folder: Path,
    limit_s: float = 300.0,
    changes: Changes | None = None,
) -> float:
    """Journalled into `folder`, which is empty and exists. Virtual seconds it took; at most `limit_s` real ones.

    Raises ClusterError when it takes longer, TargetError when the cluster does not come to rest, JournalError.
    """
    spec = spec.model_copy(update={"load_time": scenario.embedded.load_time})
    cluster = VirtualCluster(spec, folder, changes=changes or Changes())
    if scenario.models is not None:
        models = [ExoModel(model=model) for model in scenario.models]
        workload = workload.model_copy(update={"models": models})

    async def main(loop: VirtualLoop) -> float:
        nodes = cluster.connections()
        stand = Stand(
            inventory=cluster.inventory,
            workload=workload,
            nodes=nodes,
            target=cluster.target(),
            owner="simulation",
            pids={},
            rehearsed=frozenset(cluster.names),
        )
        try:
            return await journal_scenario(
                stand, scenario, folder, asyncio.Event(), lambda: "finished", lambda _: None, LoopClock(loop)
            )
        finally:
            for node in nodes.values():
                await node.close()

    return cluster.run(main, limit_s=limit_s)
