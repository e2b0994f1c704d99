"""`rig soak`: the files, the cluster, the nodes, the consent; then the run; then the report and the exit code."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import uvloop
from rich.console import Console

from rig.cli.live import watching
from rig.clock import RunClock
from rig.config.inventory import Inventory
from rig.config.plan import Plan
from rig.config.read import load_all
from rig.config.workload import Workload
from rig.embedded.cluster import Cluster, start_cluster
from rig.errors import EXIT_UNKNOWN
from rig.injection.lease import refuse_live
from rig.journal.run import RUN_FILE, new_run_folder, write_run
from rig.journal.write import Journal
from rig.nodes.lock import Locks, default_owner, hold_locks
from rig.nodes.scripts import upload
from rig.nodes.ssh import Nodes, open_nodes
from rig.observe.exo import Exo
from rig.report.console import print_report
from rig.report.json import report_json
from rig.report.write import read_report, write_report
from rig.soak.describe import describe
from rig.soak.halting import Halt
from rig.soak.interrupt import Interrupt
from rig.soak.run import SoakRun
from rig.soak.settings import SoakSettings, paced

EMBEDDED: Final = "embedded"
CLUSTER_FOLDER: Final = "cluster"
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line asked for."""

    length_s: float
    inventory: str
    seed: int | None
    folder: Path
    yes: bool
    keep_cluster: bool


def soak(
    *,
    length_s: float,
    inventory: str | None,
    workload: str,
    faults: str | None,
    seed: int | None,
    out: Path,
    name: str | None,
    yes: bool,
    keep_cluster: bool,
    as_json: bool,
) -> int:
    """Run, report, and return the exit code: the verdict's, or 130 and 143 when interrupted."""
    chosen = inventory or EMBEDDED
    on_nodes, load, plan = load_all(chosen, workload, faults or "keeper")
    if faults is None and (on_nodes.embedded is not None or on_nodes.emulated is not None):
        on_nodes, load, plan = load_all(chosen, workload, "quick")
    folder = new_run_folder(out, name)
    wanted = Wanted(length_s=length_s, inventory=chosen, seed=seed, folder=folder, yes=yes, keep_cluster=keep_cluster)
    try:
        interrupted = uvloop.run(_soak(wanted, on_nodes, load, plan))
    finally:
        if not (folder / RUN_FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)  # made by this command, and nothing ran
    if not folder.exists():
        return interrupted or EXIT_UNKNOWN
    report = read_report(folder)
    write_report(folder, report)
    if as_json:
        print(json.dumps(report_json(report.analysis, report.verdict)))
    else:
        print_report(report.analysis, report.verdict)
        print(f"kept in {folder}: rig report {folder}, rig show {folder} --fault N")
    return report.verdict.exit_code if interrupted is None else interrupted


async def _soak(wanted: Wanted, inventory: Inventory, workload: Workload, plan: Plan) -> int | None:
    """The run itself. Returns the exit code of an interruption, None without one."""
    halt, console = Halt(), Console(stderr=True, highlight=False)
    with Interrupt() as interrupt:
        relay = asyncio.create_task(_relay(interrupt, halt))
        try:
            async with AsyncExitStack() as stack:
                ready = await _or_halt(halt, _prepare(stack, wanted, inventory, halt, console))
                if ready is not None:
                    settings = paced(
                        inventory=ready.inventory,
                        workload=workload,
                        plan=plan,
                        length_s=wanted.length_s,
                        seed=wanted.seed,
                        folder=wanted.folder,
                        owner=ready.owner,
                        pids_allowed=ready.pids,
                    )
                    await _run(settings, ready.nodes, halt, console)
        finally:
            relay.cancel()
            if not wanted.keep_cluster:
                shutil.rmtree(wanted.folder / CLUSTER_FOLDER, ignore_errors=True)
        return None if interrupt.reason is None else interrupt.exit_code


@dataclass(frozen=True)
class Ready:
    inventory: Inventory  # with nodes
    nodes: Nodes
    owner: str
    pids: dict[str, list[str]]


async def _prepare(stack: AsyncExitStack, wanted: Wanted, inventory: Inventory, halt: Halt, console: Console) -> Ready:
    """Everything that must hold before the first request: the nodes answer, are sound, free, ours, and may be hit."""
    name = wanted.inventory
    if inventory.embedded is not None:
        spec = inventory.embedded
        console.print(f"starting an embedded cluster: {spec.nodes} nodes, {spec.behaviour}, pace {spec.pace:g}")
        cluster = await stack.enter_async_context(start_cluster(spec, wanted.folder.absolute() / CLUSTER_FOLDER))
        inventory, name = cluster.inventory, str(cluster.folder / "inventory.yaml")
        lost = asyncio.create_task(_lost(cluster, halt))
        stack.callback(lost.cancel)
    nodes = await stack.enter_async_context(open_nodes(inventory))
    await asyncio.gather(*(upload(conn) for conn in nodes.values()))
    await refuse_live(nodes, inventory=name)
    owner = default_owner()
    locks = await stack.enter_async_context(
        hold_locks(nodes, wanted.folder.name, owner=owner, say=console.print)
    )
    keeping = asyncio.create_task(_locks_lost(locks, halt))
    stack.callback(keeping.cancel)
    return Ready(inventory, nodes, owner, {})


async def _run(settings: SoakSettings, nodes: Nodes, halt: Halt, console: Console) -> None:
    clock = RunClock()
    info = describe(settings, clock, dict.fromkeys(settings.inventory.nodes))
    write_run(settings.folder, info)
    journal = Journal(settings.folder, clock)
    target = Exo()
    run = SoakRun(settings, info, nodes, target, journal, halt)
    try:
        async with watching(run, console):
            ended = await run.run()
        if ended.detail:
            console.print(f"{ended.reason}: {ended.detail}", markup=False)
    finally:
        await target.close()
        journal.close()


async def _relay(interrupt: Interrupt, halt: Halt) -> None:
    await interrupt.event.wait()
    assert interrupt.reason is not None
    halt.call(interrupt.reason)


async def _lost(cluster: Cluster, halt: Halt) -> None:
    await cluster.lost.wait()
    halt.call("failed", f"the embedded cluster ended by itself: {cluster.lost_reason()}")


async def _locks_lost(locks: Locks, halt: Halt) -> None:
    await locks.lost.wait()
    halt.call("aborted", f"a lock on a node was lost: {locks.reason}")


async def _or_halt(halt: Halt, work: Coroutine[Any, Any, _T]) -> _T | None:
    """The work's result, or None when the run was halted before it was done; the work is cancelled then."""
    task, halting = asyncio.create_task(work), asyncio.create_task(halt.event.wait())
    try:
        await asyncio.wait({task, halting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None
    finally:
        halting.cancel()
