"""`rig verify`: scripted scenarios, one after another, each a run of its own; a table and the worst exit code."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import uvloop
from rich.console import Console
from rich.table import Table

from rig.cli.live import news_of
from rig.cli.ready import Preparation
from rig.cli.streams import console_on
from rig.config.inventory import Inventory
from rig.config.read import load_inventory, load_workload
from rig.config.target_fields import fields_of
from rig.config.workload import Workload
from rig.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, TargetError
from rig.faults.plan.plan import KindPlan, Plan
from rig.faults.plan.registry import KILLS_OF_WORKERS
from rig.journal.records import AnyRecord, Expected, FaultChanged, Step
from rig.journal.run import new_run_folder
from rig.soak.halting import Halt
from rig.soak.interrupt import Interrupt
from rig.targets.target import open_target
from rig.verify.clearing import Clearing
from rig.verify.read import load_scenario, stock_scenarios
from rig.verify.run import Result, Stand, run_scenario
from rig.verify.scenario import Scenario
from rig.verify.scenario import Step as ScenarioStep
from rig.written import duration

EMBEDDED: Final = "embedded"
_HARMING: Final = Plan(name="verify", kinds=dict.fromkeys(["node-crash", *KILLS_OF_WORKERS], KindPlan()))
_HARMLESS: Final = Plan(name="verify", kinds={"node-crash": KindPlan(weight=0)})
_WORST: Final = {EXIT_PASS: 0, EXIT_UNKNOWN: 1, EXIT_FAIL: 2}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    inventory: str
    folder: Path
    yes: bool
    clear: bool
    keep_cluster: bool


@dataclass(frozen=True)
class Skipped:
    scenario: Scenario
    reason: str


Played = Result | Skipped


def verify(
    *,
    scenarios: list[str],
    inventory: str | None,
    workload: str,
    out: Path,
    name: str | None,
    yes: bool,
    clear: bool,
    keep_cluster: bool,
    list_them: bool,
    as_json: bool,
) -> int:
    """Play them and return the worst exit code, or 130 and 143 when interrupted."""
    chosen = [load_scenario(one) for one in scenarios or stock_scenarios()]
    if list_them:
        return _list(chosen, as_json=as_json)
    on_nodes = load_inventory(inventory or EMBEDDED)
    load = load_workload(workload, on_nodes.target)
    folder = new_run_folder(out, name or _name(out))
    wanted = Wanted(inventory=inventory or EMBEDDED, folder=folder, yes=yes, clear=clear, keep_cluster=keep_cluster)
    played: list[Played] = []
    try:
        interrupted = uvloop.run(_verify(wanted, on_nodes, load, chosen, played))
    finally:
        if not any(isinstance(one, Result) for one in played) and not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
    code = max((_code(one) for one in played), key=_WORST.__getitem__, default=EXIT_UNKNOWN)
    if as_json:
        print(json.dumps({"folder": str(folder), "exit_code": code, "scenarios": [_told(one) for one in played]}))
    else:
        _print(played, on_nodes)
        print(f"kept in {folder}: rig report {folder}/SCENARIO")
    return code if interrupted is None else interrupted


def _name(out: Path) -> str:
    for number in itertools.count(1):
        name = f"verify-{number}"
        if not (out / name).exists():
            return name
    raise AssertionError


async def _verify(
    wanted: Wanted, inventory: Inventory, workload: Workload, chosen: list[Scenario], played: list[Played]
) -> int | None:
    """Scenarios that need the embedded cluster set alike share one. Returns the exit code of an interruption."""
    console, halt = console_on(stderr=True), Halt()
    with Interrupt() as interrupt:
        relay = asyncio.create_task(_relay(interrupt, halt))
        try:
            for group in _groups(inventory, chosen):
                if not halt.event.is_set():
                    await _play_group(wanted, inventory, workload, group, played, halt, console)
        finally:
            relay.cancel()
    return None if interrupt.reason is None else interrupt.exit_code


def _groups(inventory: Inventory, chosen: list[Scenario]) -> list[list[Scenario]]:
    if inventory.embedded is None:
        return [chosen]
    by_stage: dict[float, list[Scenario]] = {}
    for scenario in chosen:
        by_stage.setdefault(scenario.embedded.load_time, []).append(scenario)
    return list(by_stage.values())


async def _play_group(
    wanted: Wanted,
    inventory: Inventory,
    workload: Workload,
    group: list[Scenario],
    played: list[Played],
    halt: Halt,
    console: Console,
) -> None:
    if inventory.embedded is not None:
        set_up = inventory.embedded.model_copy(update={"load_time": group[0].embedded.load_time})
        inventory = inventory.model_copy(update={"embedded": set_up})
    cluster_folder = wanted.folder.absolute() / f"cluster-{group[0].name}"
    preparation = Preparation(
        name=wanted.inventory,
        inventory=inventory,
        plan=_HARMING if any(scenario.faults for scenario in group) else _HARMLESS,
        run=wanted.folder.name,
        cluster_folder=cluster_folder,
        yes=wanted.yes,
        halt=halt,
        say=lambda text: console.print(text, markup=False, soft_wrap=True),
    )
    target = open_target(inventory.target)
    try:
        async with AsyncExitStack() as stack:
            ready = await preparation.ready(stack)
            stand = Stand(
                inventory=ready.inventory,
                workload=workload,
                nodes=ready.nodes,
                target=target,
                owner=ready.owner,
                pids=ready.pids,
                rehearsed=ready.rehearsed,
            )
            await _refuse_occupied(stand, wanted)
            clearing = Clearing(target, stand.entries, stand.pace)
            for scenario in group:
                if halt.event.is_set():
                    break
                played.append(await _play(wanted, stand, scenario, halt, console))
            await (clearing.sweep() if halt.event.is_set() else clearing.clear())
    finally:
        await target.close()
        if not wanted.keep_cluster:
            shutil.rmtree(cluster_folder, ignore_errors=True)


async def _refuse_occupied(stand: Stand, wanted: Wanted) -> None:
    """Scenarios begin and end with an empty target: nothing of somebody else's is deleted without being told to."""
    if wanted.clear or stand.inventory.emulated is not None:
        return
    left = await Clearing(stand.target, stand.entries, stand.pace).leftovers()
    if left:
        raise TargetError(
            f"the target is in use: {', '.join(left[:5])}",
            remedy="scenarios delete every deployment and instance: remove these yourself, or give --clear",
        )


async def _play(wanted: Wanted, stand: Stand, scenario: Scenario, halt: Halt, console: Console) -> Played:
    reason = _unfit(stand, scenario)
    if reason is not None:
        console.print(f"{scenario.name}: not played, {reason}", markup=False, highlight=False)
        return Skipped(scenario, reason)
    if scenario.models is not None:
        models = [fields_of(stand.inventory.target).model(model=model) for model in scenario.models]
        stand = replace(stand, workload=stand.workload.model_copy(update={"models": models}))
    folder = wanted.folder / scenario.name
    folder.mkdir()
    console.print(f"{scenario.name}: {scenario.about}", markup=False, highlight=False, soft_wrap=True)

    def listen(record: AnyRecord) -> None:
        line = _line(record)
        if line is not None:
            console.print(f"{record.t:8.1f} s  {line}", markup=False, highlight=False, soft_wrap=True)

    result = await run_scenario(stand, scenario, folder, halt.event, lambda: halt.reason, listen)
    console.print(f"{scenario.name}: {result.verdict.word}", markup=False, highlight=False)
    return result


def _unfit(stand: Stand, scenario: Scenario) -> str | None:
    """Why this scenario cannot be played here."""
    if len(stand.inventory.nodes) < scenario.nodes:
        return f"it needs {scenario.nodes} nodes"
    if scenario.models is not None and stand.inventory.emulated is None:
        return "its models are those of the embedded cluster"
    if scenario.faults and not all(node.faults for node in stand.inventory.nodes.values()):
        return "the inventory allows no faults on every node"
    if scenario.models is None and (most := _most_models(scenario)) > len(stand.workload.models):
        return f"it needs {most} models, the workload has {len(stand.workload.models)}"
    return None


def _most_models(scenario: Scenario) -> int:
    return max((_model_of(step) for step in scenario.steps), default=1)


def _model_of(step: ScenarioStep) -> int:
    asked = step.deploy or step.place
    return 1 if asked is None else asked.model


def _line(record: AnyRecord) -> str | None:
    match record:
        case Step(state="begun"):
            return f"step {record.step}: {record.text}"
        case Step(state="failed"):
            return f"step {record.step} could not be taken: {record.detail}"
        case Expected():
            return f"        {record.status}: {record.evidence}"
        case FaultChanged():
            return news_of(record)
        case _:
            return None


async def _relay(interrupt: Interrupt, halt: Halt) -> None:
    await interrupt.event.wait()
    if interrupt.reason is not None:
        halt.call(interrupt.reason)


def _code(played: Played) -> int:
    return EXIT_PASS if isinstance(played, Skipped) else played.verdict.exit_code


def _told(played: Played) -> dict[str, Any]:
    if isinstance(played, Skipped):
        return {"name": played.scenario.name, "verdict": "skipped", "reason": played.reason}
    verdict = played.verdict
    return {
        "name": played.scenario.name,
        "verdict": verdict.word,
        "took_s": round(played.took_s, 1),
        "folder": str(played.folder),
        "proves": {check.name: check.status for check in verdict.checks if check.name in played.scenario.proves},
        "checks": [
            {"name": check.name, "status": check.status, "summary": check.summary, "evidence": list(check.evidence)}
            for check in verdict.checks
        ],
    }


def _print(played: list[Played], inventory: Inventory) -> None:
    console = console_on()
    if inventory.embedded is not None or inventory.emulated is not None:
        console.print("EMBEDDED CLUSTER: not a measurement of a real one", style="bold", markup=False)
    table = Table(title="Scenarios")
    for title in ("verdict", "scenario", "proves", "took", "what is not as it should be"):
        table.add_column(title)
    for one in played:
        if isinstance(one, Skipped):
            table.add_row("skipped", one.scenario.name, "", "", one.reason)
            continue
        wanted = set(one.scenario.proves)
        proves = ", ".join(f"{c.name}" for c in one.verdict.checks if c.name in wanted and c.status == "pass")
        table.add_row(one.verdict.word, one.scenario.name, proves, duration(one.took_s), "\n".join(_wrong(one)))
    console.print(table)


def _wrong(result: Result) -> list[str]:
    wanted = set(result.scenario.proves)
    lines: list[str] = []
    for check in result.verdict.checks:
        if check.status in ("fail", "unknown") or (check.status == "not-exercised" and check.name in wanted):
            lines += [f"{check.status} {check.name}: {check.summary}", *(f"  {line}" for line in check.evidence[:3])]
    return lines


def _list(chosen: list[Scenario], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps([{"name": one.name, "about": one.about, "proves": one.proves} for one in chosen]))
        return EXIT_PASS
    table = Table()
    for title in ("scenario", "what is caused and what must follow", "proves"):
        table.add_column(title)
    for one in chosen:
        table.add_row(one.name, one.about, ", ".join(one.proves))
    console_on().print(table)
    return EXIT_PASS
