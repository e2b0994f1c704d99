"""`rig soak`: the files, the nodes, the run, the report, the exit code."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console

from rig.cli.live import watching
from rig.cli.ready import Preparation, Ready
from rig.cli.streams import console_on
from rig.clock import RunClock
from rig.config.inventory import Inventory
from rig.config.plan import Plan
from rig.config.read import load_all
from rig.config.workload import Workload
from rig.errors import EXIT_UNKNOWN, JournalError, RigError
from rig.journal.run import RUN_FILE, new_run_folder, write_run
from rig.journal.write import Journal
from rig.observe.exo import Exo
from rig.report.console import print_report
from rig.report.json import report_json
from rig.report.write import read_report, write_report
from rig.soak.describe import describe
from rig.soak.halting import Halt, unless
from rig.soak.interrupt import Interrupt
from rig.soak.run import SoakRun
from rig.soak.settings import SoakSettings, paced

EMBEDDED: Final = "embedded"
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
    interrupted, sound = None, True
    try:
        interrupted = uvloop.run(_soak(wanted, on_nodes, load, plan))
    except RigError as error:
        if not (folder / RUN_FILE).exists():
            raise
        sound = _complain(error)  # what ran can still be told
    finally:
        if not (folder / RUN_FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)  # made by this command, and nothing ran
    if not folder.exists():
        return interrupted or EXIT_UNKNOWN
    reported = _report(folder, as_json=as_json)
    if interrupted is not None:
        return interrupted
    return reported if sound else reported or EXIT_UNKNOWN


def _report(folder: Path, *, as_json: bool) -> int:
    """Print it, write it, and return the verdict's exit code; unknown instead of a pass that could not be written."""
    report = read_report(folder)
    try:
        write_report(folder, report)
        written = True
    except JournalError as error:
        written = _complain(error)
    if as_json:
        print(json.dumps(report_json(report.analysis, report.verdict)))
    else:
        print_report(report.analysis, report.verdict)
        print(f"kept in {folder}: rig report {folder}, rig show {folder} --fault N")
    return report.verdict.exit_code if written else report.verdict.exit_code or EXIT_UNKNOWN


def _complain(error: RigError) -> bool:
    print(f"rig: {error}", file=sys.stderr)
    return False


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
        owner=ready.owner,
        pids_allowed=ready.pids,
    )


async def _run(settings: SoakSettings, ready: Ready, halt: Halt, console: Console) -> None:
    clock = RunClock()
    info = describe(settings, clock, dict.fromkeys(settings.inventory.nodes))
    write_run(settings.folder, info)
    journal = Journal(settings.folder, clock)
    target = Exo()
    try:
        run = SoakRun(settings, info, ready.nodes, target, journal, halt, rehearsed=ready.rehearsed)
        async with watching(run, console):
            ended = await run.run()
        if ended.detail:
            console.print(f"{ended.reason}: {ended.detail}", markup=False, soft_wrap=True)
    finally:
        await target.close()
        journal.close()


async def _relay(interrupt: Interrupt, halt: Halt) -> None:
    await interrupt.event.wait()
    assert interrupt.reason is not None
    halt.call(interrupt.reason)
