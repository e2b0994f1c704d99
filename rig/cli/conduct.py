"""One soak from its files to its last record: nodes or a cluster, settings, journal, the run, an interruption."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console

from rig.cli.live import watching
from rig.cli.ready import Preparation, Ready
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.config.workload import Workload
from rig.faults.plan.plan import Plan
from rig.load.collector import settle_collector
from rig.load.open_files import allow_open_files
from rig.run.forensics import Forensics
from rig.run.halting import Halt, unless
from rig.run.interrupt import Interrupt
from rig.run.settings import SoakSettings, paced
from rig.run.soak import soak_on
from rig.targets.exo.api import Exo

CLUSTER_FOLDER: Final = "cluster"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line asked for."""

    length_s: float
    inventory: str
    seed: int | None
    folder: Path
    yes: bool
    keep_cluster: bool


def conduct(wanted: Wanted, inventory: Inventory, workload: Workload, plan: Plan) -> int | None:
    """Returns the exit code of an interruption, None without one. Raises RigError."""
    allow_open_files(workload.most_in_flight)
    return uvloop.run(_soak(wanted, inventory, workload, plan))


async def _soak(wanted: Wanted, inventory: Inventory, workload: Workload, plan: Plan) -> int | None:
    """Returns the exit code of an interruption, None without one."""
    halt, console = Halt(), console_on(stderr=True)
    preparation = Preparation(
        name=wanted.inventory,
        inventory=inventory,
        plan=plan,
        run=wanted.folder.name,
        cluster_folder=wanted.folder.absolute() / CLUSTER_FOLDER,
        yes=wanted.yes,
        halt=halt,
        say=lambda text: console.print(text, markup=False, soft_wrap=True),
    )
    with Interrupt() as interrupt:
        relay = asyncio.create_task(_relay(interrupt, halt))
        try:
            async with AsyncExitStack() as stack:
                ready = await unless(halt.event, preparation.ready(stack))
                if ready is not None:
                    await _run(_settings(wanted, ready, workload, plan), ready, halt, console)
        finally:
            relay.cancel()
            if not wanted.keep_cluster:
                shutil.rmtree(preparation.cluster_folder, ignore_errors=True)
        return None if interrupt.reason is None else interrupt.exit_code


def _settings(wanted: Wanted, ready: Ready, workload: Workload, plan: Plan) -> SoakSettings:
    return paced(
        inventory=ready.inventory,
        workload=workload,
        plan=plan,
        length_s=wanted.length_s,
        seed=wanted.seed,
        folder=wanted.folder,
    )


async def _run(settings: SoakSettings, ready: Ready, halt: Halt, console: Console) -> None:
    target = Exo()
    try:
        stand = ready.stand(target, halt)
        with soak_on(stand, settings, Forensics(ready.nodes, settings.folder)) as run:
            settle_collector()
            async with watching(run, console):
                ended = await run.run()
        if ended.detail:
            console.print(f"{ended.reason}: {ended.detail}", markup=False, soft_wrap=True)
    finally:
        await target.close()


async def _relay(interrupt: Interrupt, halt: Halt) -> None:
    await interrupt.event.wait()
    assert interrupt.reason is not None
    halt.call(interrupt.reason)
