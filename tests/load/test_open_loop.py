"""Open loop against a server that is really stopped: nothing is left out of the measurement."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvloop

from rig.clock import Pace, RunClock
from rig.config.workload import Workload
from rig.journal.records import AnyRecord, RequestEnded, RequestStarted
from rig.journal.write import Journal
from rig.load.backoff import Backoff
from rig.load.client import LoadDriver
from rig.load.deadlines import GRACE_S, Limits, paced_grace_s
from rig.load.summary import flags
from rig.load.tally import Tally
from tests.load.conftest import Recorded
from tests.load.servers import serving, sound, start_mock, until


def workload(**values: Any) -> Workload:
    return Workload.model_validate(
        {"name": "test", "models": [{"model": "mock"}], "streamed_share": 1.0, "clients": 4, "canaries": 0, **values}
    )


async def frozen_run(recorded: Recorded, mock: Path, arrivals: dict[str, Any]) -> Tally:
    """Two seconds of load, the server stopped during the second; the tally of it."""
    server, url = start_mock(mock, "--tokens", "4", "--usage")
    tally, stop = Tally(void=lambda _: False), asyncio.Event()
    recorded.journal.subscribe(tally.feed)
    try:
        driver = LoadDriver(workload(arrivals=arrivals), {"s": url}, recorded.journal, seed=1)
        running = asyncio.create_task(driver.run(stop))
        await until(lambda: tally.completed >= 20)
        os.kill(server.pid, signal.SIGSTOP)
        await asyncio.sleep(1.0)  # the length of the stall, which is what is measured
        os.kill(server.pid, signal.SIGCONT)
        await until(lambda: tally.completed > 160, 60)
        stop.set()
        await asyncio.wait_for(running, 20)
    finally:
        server.kill()
        server.wait()
    return tally


async def test_a_frozen_server_is_felt_by_all_that_were_due_in_the_meantime(recorded: Recorded, sse_mock: Path) -> None:
    tally = await frozen_run(recorded, sse_mock, {"kind": "constant", "rate": 100.0})
    starts = [record for record in recorded.records if isinstance(record, RequestStarted)]
    ends = {record.id: record for record in recorded.records if isinstance(record, RequestEnded)}
    assert all(end.outcome == "completed" for end in ends.values())
    gaps = [later.planned_t - earlier.planned_t for earlier, later in pairwise(starts)]
    assert gaps == pytest.approx([0.01] * len(gaps)), "arrivals did not wait for answers"
    waited = [ends[start.id].ended_t - start.planned_t for start in starts]
    assert sum(took > 0.5 for took in waited) >= 40, "of 50 that were due in the first half of the stall"
    assert sum(took > 0.1 for took in waited) >= 80, "of 90"
    p90_s = tally.e2el_due.spread().p90_s
    assert p90_s is not None
    assert p90_s > 0.4, "most of the run's requests were due in the stall, so its percentiles must show it"


async def test_a_closed_loop_would_have_left_them_out(recorded: Recorded, sse_mock: Path) -> None:
    """What coordinated omission looks like: the same stall, felt by one request a client."""
    tally = await frozen_run(recorded, sse_mock, {"kind": "closed", "think": 0.01})
    slow = [end for end in recorded.records if isinstance(end, RequestEnded) and end.ended_t - end.started_t > 0.5]
    assert len(slow) <= 4
    assert tally.completed > 160


async def test_what_is_sent_late_counts_from_when_it_was_due(recorded: Recorded) -> None:
    tally = Tally(void=lambda _: False)
    recorded.journal.subscribe(tally.feed)
    load = workload(arrivals={"kind": "burst", "rate": 100.0, "burst": 10})
    async with serving(sound) as server:
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=10)
        running = asyncio.create_task(driver.run(asyncio.Event()))
        await asyncio.sleep(0.05)
        time.sleep(0.4)  # noqa: ASYNC251 (the rig itself stands still when the burst is due)
        await asyncio.wait_for(running, 10)
    late, due, start = tally.late.spread(), tally.e2el_due.spread(), tally.e2el.spread()
    assert late.count == due.count == 10
    assert late.p50_s is not None
    assert due.p50_s is not None
    assert start.p50_s is not None
    assert 0.2 < late.p50_s < 2.0
    assert due.p50_s >= late.p50_s * 0.98
    assert due.p50_s > start.p50_s
    (flag,) = flags(tally, 0.0)
    assert flag.startswith("the rig sent late: p99 ")


def test_nothing_is_sent_before_it_was_due(tmp_path: Path) -> None:
    """On the loop of the rig, whose timers are of whole milliseconds: sent early, a latency would be short."""
    records: list[AnyRecord] = []

    async def main() -> None:
        journal = Journal(tmp_path, RunClock())
        journal.subscribe(records.append)
        load = workload(arrivals={"kind": "poisson", "rate": 150.0})
        async with serving(sound) as server:
            await LoadDriver(load, {"s": server.url}, journal, seed=1, requests=200).run(asyncio.Event())
        journal.close()

    uvloop.run(main())
    starts = [record for record in records if isinstance(record, RequestStarted)]
    assert len(starts) == 200
    assert [start for start in starts if start.t < start.planned_t] == []


async def test_a_replay_sends_the_lengths_of_its_trace(recorded: Recorded, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    rows = [{"timestamp": n * 20, "input_length": 10 + n, "output_length": 5 + n} for n in range(5)]
    trace.write_text("\n".join(json.dumps(row) for row in rows))
    load = workload(arrivals={"kind": "replay", "trace": str(trace), "speed": 2.0})
    async with serving(sound) as server:
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=7)
        await asyncio.wait_for(driver.run(asyncio.Event()), 10)
    starts = [record for record in recorded.records if isinstance(record, RequestStarted)]
    lengths = [(start.prompt_tokens, start.max_tokens) for start in starts]
    assert lengths == [(10, 5), (11, 6), (12, 7), (13, 8), (14, 9), (10, 5), (11, 6)]
    gaps = [later.planned_t - earlier.planned_t for earlier, later in pairwise(starts)]
    assert gaps == pytest.approx([0.01] * 6)


async def test_a_load_whose_rate_ends_is_over(recorded: Recorded) -> None:
    stages = [{"duration": 0.2, "rate": 100.0, "to": 0.0}]
    async with serving(sound) as server:
        load = workload(arrivals={"kind": "constant", "stages": stages})
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1)
        await asyncio.wait_for(driver.run(asyncio.Event()), 10)
    assert driver.started == 10


def test_pace_divides_back_off_and_grace_down_to_a_floor() -> None:
    assert Backoff(0.4, 2.0, 4.0).paced(Pace(10)) == Backoff(0.04, 0.2, 0.4)
    assert Backoff().paced(Pace(100)).fast_s == 0.25
    assert Backoff().paced(Pace(1)) == Backoff()
    assert paced_grace_s(Pace(1)) == GRACE_S
    assert (paced_grace_s(Pace(2)), paced_grace_s(Pace(50))) == (2.5, 1.0)
    assert Limits(end_s=2.5).grace_s == 2.5
    assert Limits(progress_s=0.5, end_s=2.5).grace_s == 0.5
