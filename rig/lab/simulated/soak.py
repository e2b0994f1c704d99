"""A soak of a simulated cluster: the rig's own, under virtual time, journalled into a run folder as any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rig.config.inventory import Embedded
from rig.config.workload import Workload
from rig.faults.plan.plan import Plan
from rig.journal.records import RunEnded
from rig.lab.exo.defects import Changes
from rig.lab.simulated.cluster import VirtualCluster
from rig.lab.simulated.loop import VirtualLoop
from rig.run.settings import paced
from rig.run.soak import SoakRun, soak_on


def simulated_soak(  # noqa: PLR0913 (what a run is made of)
    spec: Embedded,
    workload: Workload,
    plan: Plan,
    *,
    length_s: float,
    folder: Path,
    seed: int,
    limit_s: float = 300.0,
    changes: Changes | None = None,
    beside: Callable[[SoakRun], Coroutine[Any, Any, None]] | None = None,
) -> RunEnded:
    """`length_s` is virtual seconds of load; `folder` is an empty folder for the run. At most `limit_s` real seconds.

    `changes` come on top of behaviour and defects of `spec`; `beside` is run beside the soak until that ends.

    Raises ClusterError when it takes longer, JournalError when it cannot be written.
    """
    cluster = VirtualCluster(spec, folder, changes=changes or Changes())
    settings = paced(
        inventory=cluster.inventory,
        workload=workload,
        plan=plan,
        length_s=length_s,
        seed=seed,
        folder=folder,
    )

    async def main(loop: VirtualLoop) -> RunEnded:
        with soak_on(cluster.stand(loop), settings, forensics=None) as run:
            other = None if beside is None else asyncio.create_task(beside(run))
            ended = await run.run()
            if other is not None:
                other.cancel()
            return ended

    return cluster.run(main, limit_s=limit_s)
