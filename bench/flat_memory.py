"""Whether memory stays flat over a run of seven days: what listens to the journal, the analysis, and the load itself.

    python -m bench.flat_memory [--requests 200000] [--full] [--analysis] [--sockets 50000] [--json FILE]

Accelerated: a made-up half hour (requests, probes, faults, views, who served what, the rig's own health) is written
again and again to a real journal on disk, its times, ids and fault numbers moved on, with everything listening that
listens in a soak. `--analysis` feeds the analysis of the report as well. `--full` is 2,000,000 requests, seven days of
virtual time; files of the journal that are full are deleted, so that it needs no disk. `--sockets N` sends N requests
to the mock server, really.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psutil
import uvloop

from bench.load_engine import Mock, mock_server
from bench.table import print_rows
from rig.analysis.analyse import analyse
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.settings import settings_of
from rig.clock import RunClock
from rig.config.workload import Workload
from rig.journal.records import AnyRecord, PhaseStarted, RequestStarted, RunEnded
from rig.journal.write import Journal, journal_name
from rig.load.client import LoadDriver
from rig.load.collector import settle_collector
from rig.load.tally import Tally
from rig.run.successes import Successes
from tests.analysis.generate import MODELS, Shape, info_of, moved, records_of

FULL: Final = 2_000_000
FIRST: Final = 10_000  # requests after which the first reading is taken
_SPAN_S: Final = 1800.0
_TAPE: Final = Shape(
    duration_s=_SPAN_S, faults=11, requests=5950, views=900, baseline_s=0.0, finished=False, served=True
)


class Moving:
    """The run's clock: the time of the record that is written."""

    def __init__(self) -> None:
        self.t = 0.0

    def now(self) -> float:
        return self.t

    def wall_drift(self) -> float:
        return 0.0


def repeated(tape: Sequence[AnyRecord], requests: int) -> Iterator[AnyRecord]:
    """The tape, again and again, until so many requests of the load have been started."""
    started, cycle = 0, 0
    while started < requests:
        for record in tape:
            yield moved(record, cycle, _SPAN_S, _TAPE.faults)
            started += isinstance(record, RequestStarted) and record.source == "load"
        cycle += 1


def accelerated(requests: int, *, analysed: bool = False) -> list[dict[str, Any]]:
    """Readings of memory on the way: requests, days of virtual time, MB."""
    tape = [record for record in records_of(_TAPE) if not isinstance(record, PhaseStarted)]
    info = info_of(_TAPE)
    clock, readings, process = Moving(), list[dict[str, Any]](), psutil.Process()
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        journal = Journal(Path(folder), clock)
        tracker, tally = RecoveryTracker(settings_of(info), live=True), Tally(lambda _: False)
        successes = Successes(list(MODELS))
        for listener in (tracker.feed, tally.feed, successes.apply):
            journal.subscribe(listener)  # pyright: ignore[reportArgumentType] (what a listener returns is not looked at)
        next_reading = FIRST

        def written() -> Iterator[AnyRecord]:
            nonlocal next_reading
            yield PhaseStarted(t=0.0, phase="faults")
            for record in repeated(tape, requests):
                clock.t = record.t
                journal.write(record)
                yield record
                if tally.started >= next_reading:
                    readings.append(_reading(process, tally.started, clock.t))
                    next_reading = max(next_reading * 2, next_reading + 1)
                    _delete_full_files(Path(folder))
            readings.append(_reading(process, tally.started, clock.t))
            yield RunEnded(t=clock.t, reason="finished")

        if analysed:
            assert analyse(info, written()).requests.total.started == tally.started
        else:
            deque(written(), maxlen=0)
        journal.close()
    assert tracker.context.faults.struck, "faults were among it"
    return readings


def _reading(process: psutil.Process, requests: int, t: float) -> dict[str, Any]:
    return {"requests": requests, "days": round(t / 86400, 2), "rss_mb": round(process.memory_info().rss / 1e6, 1)}


def _delete_full_files(folder: Path) -> None:
    files = sorted(folder.glob("journal*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    for path in files[:-1]:
        if path.name != journal_name(0):  # the first one stays, as a sample
            path.unlink()


async def _really(url: str, requests: int) -> list[dict[str, Any]]:
    readings, process, next_reading = list[dict[str, Any]](), psutil.Process(), FIRST
    workload = Workload.model_validate({"name": "flat", "models": [{"model": "mock"}], "streamed_share": 1.0})
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        journal, tally = Journal(Path(folder), RunClock()), Tally(lambda _: False)
        journal.subscribe(tally.feed)
        driver = LoadDriver(workload, {"server": url}, journal, seed=1, requests=requests)
        settle_collector()
        running = asyncio.create_task(driver.run(asyncio.Event()))
        while not running.done():
            await asyncio.wait({running}, timeout=0.05)
            if tally.started >= next_reading or running.done():
                readings.append(_reading(process, tally.started, journal.now()))
                next_reading *= 2
        await running
        journal.close()
    assert tally.completed == requests, "every one of them"
    return readings


def sockets(requests: int) -> list[dict[str, Any]]:
    with mock_server() as binary:
        mock = Mock(binary, "--tokens", "4", "--usage")
        try:
            return uvloop.run(_really(mock.url, requests))
        finally:
            mock.stop()


def _show(title: str, readings: list[dict[str, Any]], took_s: float) -> None:
    first, last = readings[0]["rss_mb"], readings[-1]["rss_mb"]
    growth = (last / first - 1) * 100
    print_rows(f"Memory, {title}: {growth:+.1f} % from the first reading to the last, {took_s:.0f} s", readings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--full", action="store_true", help="2,000,000 requests: seven days")
    parser.add_argument("--analysis", action="store_true", help="analyse what is written, in the same process")
    parser.add_argument("--sockets", type=int, default=0, help="so many real requests instead")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    start = time.monotonic()
    if given.sockets:
        title, readings = "real requests", sockets(given.sockets)
    else:
        title, readings = "accelerated", accelerated(FULL if given.full else given.requests, analysed=given.analysis)
    _show(title, readings, time.monotonic() - start)
    if given.json is not None:
        given.json.write_text(json.dumps({"title": title, "readings": readings}, indent=1))


if __name__ == "__main__":
    main()
