"""What is seen while a soak runs: a live table on a terminal, plain lines elsewhere. Both on stderr."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rig.journal.records import (
    ActivityDied,
    AnyRecord,
    FaultChanged,
    FaultState,
    Finding,
    PhaseStarted,
    Redeployed,
    RequestEnded,
    RequestStarted,
    Unwedged,
)
from rig.soak.awaited import workers_of
from rig.soak.run import SoakRun
from rig.written import duration

_REFRESH_S: Final = 0.25
_STATUS_EVERY_S: Final = 30.0
_SETUP_EVERY_S: Final = 10.0
_LOUD: Final[frozenset[FaultState]] = frozenset({"struck", "healed", "skipped", "ineffective", "invalid", "unhealed"})
_NEWS_KEPT: Final = 6


class Counter:
    """Requests of the load so far, by outcome; memory: the ids in flight."""

    def __init__(self) -> None:
        self._load: set[str] = set()
        self.started = self.completed = self.error = self.lost = 0
        self.struck = 0

    def apply(self, record: AnyRecord) -> None:
        if isinstance(record, RequestStarted) and record.source == "load":
            self.started += 1
            self._load.add(record.id)
        elif isinstance(record, RequestEnded) and record.id in self._load:
            self._load.discard(record.id)
            self.completed += record.outcome == "completed"
            self.error += record.outcome == "error"
            self.lost += record.outcome == "lost"
        elif isinstance(record, FaultChanged) and record.state == "struck":
            self.struck += 1

    def text(self) -> str:
        return (
            f"{self.started:,} requests: {self.completed:,} completed, {self.error:,} errors, {self.lost:,} lost, "
            f"{len(self._load)} in flight; {self.struck} faults struck"
        )


def news_of(record: AnyRecord) -> str | None:
    """One line for what a reader wants to hear of at once; None for the rest."""
    line: str | None = None
    match record:
        case PhaseStarted(phase=phase):
            line = f"phase {phase}"
        case FaultChanged(state=state) if state in _LOUD:
            reason = f": {record.reason}" if record.reason else ""
            where = f" on {', '.join(record.nodes)}" if record.nodes else ""
            hold = f" for {duration(record.hold_s)}" if state == "struck" and record.hold_s else ""
            line = f"fault {record.fault} {record.fault_kind} ({record.aim}) {state}{where}{hold}{reason}"
        case Unwedged():
            done = "restarted" if record.ok else "NOT restarted"
            line = f"unwedge after fault {record.fault}: {record.node} {done}, {record.detail}"
        case Redeployed():
            line = f"deploy {record.model} ({record.reason}): {record.detail}"
        case Finding():
            line = f"finding {record.code}: {record.text}"
        case ActivityDied():
            line = f"DIED {record.activity}: {record.detail}"
        case _:
            pass
    return line


@asynccontextmanager
async def watching(run: SoakRun, console: Console) -> AsyncGenerator[None]:
    """Show the run until the block is left. The journal gets a listener; nothing else is touched."""
    counter, news = Counter(), [""] * 0

    def listen(record: AnyRecord) -> None:
        counter.apply(record)
        line = news_of(record)
        if line is None:
            return
        if console.is_terminal:
            news.append(f"{record.t:8.1f} s  {line}")
            del news[:-_NEWS_KEPT]
        else:
            console.print(f"{record.t:8.1f} s  {line}", markup=False, highlight=False, soft_wrap=True)

    unsubscribe = run.journal.subscribe(listen)
    showing = asyncio.create_task(
        _live(run, console, counter, news) if console.is_terminal else _lines(run, console, counter)
    )
    try:
        yield
    finally:
        unsubscribe()
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


async def _lines(run: SoakRun, console: Console, counter: Counter) -> None:
    while True:
        await asyncio.sleep(_SETUP_EVERY_S if run.load_t is None else _STATUS_EVERY_S)
        if run.load_t is None:
            for line in run.awaited():
                text = f"{run.journal.now():8.1f} s  waiting for {line}"
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            continue
        left = "" if run.end_t is None else f", {duration(max(0.0, run.end_t - run.journal.now()))} left"
        console.print(
            f"{run.journal.now():8.1f} s  {counter.text()}{left}", markup=False, highlight=False, soft_wrap=True
        )


async def _live(run: SoakRun, console: Console, counter: Counter, news: list[str]) -> None:
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(_picture(run, counter, news), refresh=True)
            await asyncio.sleep(_REFRESH_S)


def _picture(run: SoakRun, counter: Counter, news: list[str]) -> RenderableType:
    return Group(
        _progress(run),
        _nodes(run),
        _models(run),
        Text(counter.text()),
        Text(_fault(run)),
        *(Text(line, style="dim", overflow="ellipsis", no_wrap=True) for line in news),
    )


def _progress(run: SoakRun) -> RenderableType:
    now, length_s = run.journal.now(), run.settings.length_s
    done_s = 0.0 if run.load_t is None else min(now - run.load_t, length_s)
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=length_s, completed=done_s, width=40)
    row.add_row(
        Text(f"{run.phase:9}"),
        bar,
        Text(f"{duration(done_s)} of {duration(length_s)}, {duration(length_s - done_s)} left"),
    )
    return row


def _nodes(run: SoakRun) -> RenderableType:
    view = run.observer.view
    fault = run.injector.fault
    hit = fault.aim.nodes if run.recovering.in_force is not None and fault is not None and fault.aim is not None else ()
    table = Table(box=None, pad_edge=False)
    for title in ("node", "API", "master", "lists nodes", "event index", "fault"):
        table.add_column(title)
    for node in run.settings.inventory.nodes:
        answers = view.reachable(node)
        listed = view.facet(node, "nodes")
        table.add_row(
            node,
            Text("unknown")
            if answers is None
            else Text("answers" if answers else "silent", style="" if answers else "red"),
            "master" if node in view.masters else "",
            "" if listed is None else str(len(listed)),
            "" if (index := view.event_index(node)) is None else f"{index:,}",
            Text("hit", style="yellow") if node in hit else "",
        )
    return table


def _models(run: SoakRun) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for title in ("model", "deployment", "runs on", "last served"):
        table.add_column(title)
    statuses = {one["model"]: one["status"] for one in run.observer.view.deployments().values()}
    for model in run.settings.models:
        success = run.successes.latest.get(model)
        ago = "never" if success is None else f"{duration(run.journal.now() - success.ended_t)} ago"
        table.add_row(model, str(statuses.get(model, "not listed")), workers_of(run.observer.view, model), ago)
    return table


def _fault(run: SoakRun) -> str:
    fault, now = run.injector.fault, run.journal.now()
    if fault is None or run.recovering.in_force is None:
        if run.injector.strike_due_t is not None:
            return f"next fault in {duration(max(0.0, run.injector.strike_due_t - now))}"
        return "no fault in force"
    name = f"fault {fault.planned.index} {fault.planned.kind.name} ({fault.planned.aim})"
    if fault.healed_t is not None:
        return f"{name}: healed {duration(now - fault.healed_t)} ago, recovering"
    if fault.struck_t is not None:
        return f"{name} in force, {duration(max(fault.struck_t + fault.planned.hold_s - now, 0.0))} to go"
    return f"{name} {fault.state}"
