"""`rig load`: the load alone, against any OpenAI-compatible server, without an inventory or faults."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import uvloop
from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rig.analysis.answers.watch import AnswerWatch
from rig.analysis.recovery.stalls import Stalls
from rig.cli.answers import answers_flags, answers_json, answers_table
from rig.cli.streams import console_on
from rig.clock import RunClock
from rig.config.fields import parse_duration
from rig.config.workload import MAX_CONCURRENCY, Arrivals, Deadlines, Lengths, Model, Workload
from rig.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, JournalError, UsageError
from rig.journal.write import Journal
from rig.load.access import Access
from rig.load.addresses import LOOPBACK
from rig.load.canary import Learning
from rig.load.client import LoadDriver
from rig.load.collector import settle_collector
from rig.load.models import models_of, only_model
from rig.load.open_files import allow_open_files
from rig.load.summary import flags, summary, summary_tables
from rig.load.tally import Tally
from rig.observe.own import own_health
from rig.run.interrupt import Interrupt

ENTRY: Final = "server"
MAX_TOKENS: Final = 1_000_000
MAX_RATE: Final = 10_000  # a second
_DRAIN_S: Final = 2.0  # for requests on their way when the user interrupts
_REFRESH_S: Final = 0.2
_LINE_EVERY_S: Final = 10.0


def load(
    *,
    url: str,
    model: str | None = None,
    clients: int = 12,
    requests: int = 40,
    stream: bool = True,
    progress_deadline: str = "120s",
    total_deadline: str = "300s",
    max_tokens: int = 64,
    rate: float | None = None,
    seed: int | None = None,
    canaries: float = 0.0,
    out: Path | None = None,
    as_json: bool = False,
    api_key: str | None = None,
    headers: Sequence[str] = (),
    cacert: Path | None = None,
    insecure: bool = False,
) -> int:
    """0 when every request completed, 1 when one did not or its answer was malformed or another's, 3 when the rest is
    void, 130 or 143 when interrupted. Raises UsageError, TargetError, JournalError.

    The result goes to stdout, progress to stderr. `out` keeps the journal. `canaries` is the share of requests whose
    answers are compared; each is asked alone first.
    Without `model` it is the one that the server offers. `api_key` is by default OPENAI_API_KEY's value.
    """
    _check(requests=requests, clients=clients, rate=rate, max_tokens=max_tokens)
    access = _access(url, api_key, headers, cacert, insecure=insecure)
    if model is None:
        model = only_model(asyncio.run(models_of(url, access)), url)
    workload = _workload(
        model=model,
        clients=clients,
        arrivals=("closed", None) if rate is None else ("poisson", rate),
        streamed_share=1.0 if stream else 0.0,
        max_tokens=max_tokens,
        canaries=canaries,
        deadlines={
            "progress": _seconds("--progress-deadline", progress_deadline),
            "total": _seconds("--total-deadline", total_deadline),
        },
    )
    allow_open_files(min(requests, workload.most_in_flight))
    keep = nullcontext(_made(out)) if out is not None else tempfile.TemporaryDirectory(prefix="rig-load-")
    stalls = Stalls(pace=1.0)
    tally = Tally(lambda end: end.own_failure is not None or stalls.may_have_ended(end))
    with keep as folder:
        journal = Journal(Path(folder), RunClock())
        journal.subscribe(stalls.feed)
        journal.subscribe(tally.feed)
        watch = AnswerWatch()
        journal.subscribe(watch.feed)
        try:
            driver = LoadDriver(
                workload,
                {ENTRY: url},
                journal,
                seed=seed or 0,
                requests=requests,
                token_a_chunk=False,
                learning=Learning(math.inf),
                access=access,
            )
            settle_collector()
            signal_exit = uvloop.run(_run(driver, tally, requests, own_health(journal)))
        finally:
            journal.close()
    if as_json:
        found = summary(
            tally, url=url, model=model, journal=None if out is None else str(out), stood_still_s=stalls.total_s
        )
        print(msgspec.json.format(msgspec.json.encode(found | {"answers": answers_json(watch)})).decode())
    else:
        console = console_on()
        for table in summary_tables(tally, url=url, model=model):
            console.print(table)
        if watch.asked:
            console.print(answers_table(watch))
    wrong = answers_flags(watch)
    for flag in [*flags(tally, stalls.total_s), *wrong]:
        print(f"rig: {flag}", file=sys.stderr)
    if signal_exit is not None:
        print(f"rig: interrupted: the figures are of {tally.ended} of {requests} requests", file=sys.stderr)
        return signal_exit
    if tally.void and tally.completed + tally.void == tally.started:
        return EXIT_UNKNOWN
    return EXIT_PASS if tally.completed == tally.started > 0 and not wrong else EXIT_FAIL


def _check(*, requests: int, clients: int, rate: float | None, max_tokens: int) -> None:
    """Raises UsageError."""
    if requests < 1:
        raise UsageError(f"--requests must be at least 1, not {requests}")
    if not 1 <= clients <= MAX_CONCURRENCY:
        raise UsageError(f"--clients: must be 1 to {MAX_CONCURRENCY}, not {clients}")
    if rate is not None and not 0 < rate <= MAX_RATE:
        raise UsageError(f"--rate: must be above 0 and at most {MAX_RATE} a second, not {rate:g}")
    if not 1 <= max_tokens <= MAX_TOKENS:
        raise UsageError(f"--max-tokens must be 1 to {MAX_TOKENS}, not {max_tokens}")


def _access(url: str, api_key: str | None, headers: Sequence[str], cacert: Path | None, *, insecure: bool) -> Access:
    """What the command line says is before what the environment does. Raises UsageError."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise UsageError("--url: a user name or password in it would be shown", remedy="give them with --header")
    if api_key is None and not any(header.partition(":")[0].lower() == "authorization" for header in headers):
        api_key = os.environ.get("OPENAI_API_KEY") or None
        at = urlsplit(url)
        if api_key is not None and at.scheme == "http" and at.hostname not in LOOPBACK:
            raise UsageError(
                f"OPENAI_API_KEY would go to {at.hostname} unencrypted",
                remedy="use https, or give the key with --api-key, or unset the variable",
            )
    return Access(api_key=api_key, headers=headers, cacert=cacert, insecure=insecure)


async def _run(driver: LoadDriver, tally: Tally, requests: int, watching: Coroutine[Any, Any, None]) -> int | None:
    """The exit code of the signal that ended it early, None when it ran to its end. `watching` is the rig's watch of
    itself, which writes its last record when it is cancelled."""
    stop = asyncio.Event()
    with Interrupt() as interrupt:
        shown = asyncio.create_task(_show(tally, driver, requests))
        watch = asyncio.create_task(watching)
        running = asyncio.create_task(driver.run(stop))
        told = asyncio.create_task(interrupt.event.wait())
        try:
            await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                stop.set()
                await asyncio.wait({running}, timeout=_DRAIN_S)
            if running.done():
                running.result()
        finally:
            for task in (running, told, shown):
                task.cancel()
            await asyncio.gather(running, told, shown, return_exceptions=True)
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch  # what the rig did not watch of itself must not pass for sound: its error is raised
        tally.settle()
        return interrupt.exit_code if interrupt.event.is_set() else None


async def _show(tally: Tally, driver: LoadDriver, requests: int) -> None:
    """Until cancelled: a bar on a terminal, a line now and then elsewhere; always on stderr."""
    if not sys.stderr.isatty():
        while True:
            await asyncio.sleep(_LINE_EVERY_S)
            print(_line(tally, driver, requests), file=sys.stderr, flush=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console_on(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=requests)
        while True:
            progress.update(task, completed=tally.ended, description=_counts(tally, driver))
            await asyncio.sleep(_REFRESH_S)


def _counts(tally: Tally, driver: LoadDriver) -> str:
    return f"{tally.completed} completed, {tally.error} error, {tally.lost} lost, {driver.in_flight} in flight"


def _line(tally: Tally, driver: LoadDriver, requests: int) -> str:
    return f"{tally.ended} of {requests} requests: {_counts(tally, driver)}"


def _workload(
    *,
    model: str,
    clients: int,
    arrivals: tuple[str, float | None],
    streamed_share: float,
    max_tokens: int,
    canaries: float,
    deadlines: dict[str, float],
) -> Workload:
    """Raises UsageError naming the first value that is out of range."""
    build: Callable[..., Any] = Workload.model_validate
    kind, rate = arrivals
    try:
        return build(
            {
                "name": "rig load",
                "models": [Model(model=model)],
                "clients": clients,
                "arrivals": Arrivals.model_validate({"kind": kind, "rate": rate}),
                "output_tokens": Lengths(low=max_tokens, high=max_tokens),
                "deadlines": Deadlines.model_validate(deadlines),
                "streamed_share": streamed_share,
                "canaries": canaries,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or error.title
        raise UsageError(f"{field}: {first['msg']}, not {first['input']!r}") from error


def _seconds(option: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if seconds <= 0:
        raise UsageError(f"{option} must be longer than nothing, not {text!r}")
    return seconds


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot make {folder}: {error.strerror}") from error
    return folder
