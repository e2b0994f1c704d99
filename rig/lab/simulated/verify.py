"""A scripted scenario on a simulated cluster: `rig.run.scenarios` as it is, under virtual time."""

from __future__ import annotations

from pathlib import Path

from rig.config.inventory import Embedded
from rig.config.workload import Model, Workload
from rig.lab.exo.defects import Changes
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.loop import VirtualLoop
from rig.run.scenarios.run import journal_scenario
from rig.run.scenarios.scenario import Scenario


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
        models = [Model(model=model) for model in scenario.models]
        workload = workload.model_copy(update={"models": models})

    async def main(loop: VirtualLoop) -> float:
        return await journal_scenario(cluster.stand(loop), workload, scenario, folder, lambda _: None)

    return cluster.run(main, limit_s=limit_s)
