"""An open loop that meets its bound in flight, or a rig that stood still: nothing that was due is left uncounted."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from rig.config.workload import Workload
from rig.journal.records import HeldBack, RequestEnded, RequestStarted
from rig.load.client import LoadDriver
from rig.load.summary import summary
from rig.load.tally import Tally
from tests.load.conftest import Recorded
from tests.load.servers import SOUND, Client, serving, sound, until

RATE = 200.0


def workload(**arrivals: Any) -> Workload:
    given = {"kind": "constant", "rate": RATE, **arrivals}
    return Workload.model_validate({"name": "t", "models": [{"model": "a"}, {"model": "b"}], "arrivals": given})


def starts(recorded: Recorded) -> list[RequestStarted]:
    return [record for record in recorded.records if isinstance(record, RequestStarted)]


def held_back(recorded: Recorded) -> list[HeldBack]:
    return [record for record in recorded.records if isinstance(record, HeldBack)]


async def test_what_was_due_and_found_no_place_is_counted(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await go_on.wait()
        await client.send(SOUND)

    go_on, stop, tally = asyncio.Event(), asyncio.Event(), Tally(void=lambda _: False)
    recorded.journal.subscribe(tally.feed)
    async with serving(script) as server:
        driver = LoadDriver(workload(max_concurrency=3), {"s": server.url}, recorded.journal, seed=1)
        began_t = recorded.journal.now()
        running = asyncio.create_task(driver.run(stop))
        await until(lambda: driver.in_flight == 3)
        await asyncio.sleep(0.5)  # the length of the hold, which is what is measured
        stop.set()
        await until(lambda: bool(held_back(recorded)))
        stopped_t = recorded.journal.now()
        assert len(starts(recorded)) == driver.started == 3, "nothing is sent after the stop"
        go_on.set()
        await asyncio.wait_for(running, 5)
    (found,) = held_back(recorded)
    due = int((stopped_t - began_t) * RATE)
    assert found.unsent >= 0.5 * RATE - 2, "all that came due in the half second"
    assert due - 3 <= 3 + found.unsent <= due, "sent and unsent are all that was due"
    assert (found.bound, found.held) == (3, 1)
    assert 0.4 < found.longest_s < 5
    assert [record.outcome for record in recorded.records if isinstance(record, RequestEnded)] == ["completed"] * 3
    said = summary(tally, url="", model="", journal=None, stood_still_s=0.0)
    assert f"{found.unsent} requests were due and never sent, and no figure has them" in said["flags"]
    assert said["held_back"] == {"bound": 3, "held": 1, "longest_s": found.longest_s, "unsent": found.unsent}


async def test_what_waited_for_a_place_and_was_sent_is_late_and_not_missing(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await go_on.wait()
        await client.send(SOUND)

    go_on = asyncio.Event()
    async with serving(script) as server:
        driver = LoadDriver(workload(max_concurrency=3), {"s": server.url}, recorded.journal, seed=1, requests=30)
        running = asyncio.create_task(driver.run(asyncio.Event()))
        await until(lambda: driver.in_flight == 3)
        await asyncio.sleep(0.2)
        go_on.set()
        await asyncio.wait_for(running, 5)
    (found,) = held_back(recorded)
    assert (len(starts(recorded)), found.unsent) == (30, 0)
    assert found.held >= 1
    assert starts(recorded)[3].t - starts(recorded)[3].planned_t > 0.15


async def test_what_came_due_while_the_rig_itself_stood_still_is_counted(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as server:
        driver = LoadDriver(workload(), {"s": server.url}, recorded.journal, seed=1)
        running = asyncio.create_task(driver.run(stop))
        await until(lambda: driver.started >= 5)
        time.sleep(0.3)  # noqa: ASYNC251 (the rig itself stands still)
        stop.set()
        await asyncio.wait_for(running, 5)
    planned = [start.planned_t for start in starts(recorded)]
    assert len(planned) + sum(found.unsent for found in held_back(recorded)) >= 5 + 0.3 * RATE - 3


async def test_an_ordinary_stop_leaves_nothing_behind(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as server:
        running = asyncio.create_task(
            LoadDriver(workload(rate=20.0), {"s": server.url}, recorded.journal, seed=1).run(stop)
        )
        await until(lambda: len(starts(recorded)) >= 3)
        stop.set()
        await asyncio.wait_for(running, 5)
    assert held_back(recorded) == []


async def test_the_same_seed_sends_the_same_however_late_it_was(recorded: Recorded) -> None:
    """A rig that stood still must not draw other requests than one that did not."""

    async def sent(*, stall_s: float) -> list[tuple[float, str, bool, int, int]]:
        before = len(starts(recorded))
        async with serving(sound) as server:
            driver = LoadDriver(workload(kind="poisson"), {"s": server.url}, recorded.journal, seed=7, requests=60)
            running = asyncio.create_task(driver.run(asyncio.Event()))
            await until(lambda: driver.started >= 5)
            time.sleep(stall_s)  # noqa: ASYNC251 (the rig itself stands still)
            await asyncio.wait_for(running, 10)
        mine = sorted(starts(recorded)[before:], key=lambda start: start.planned_t)
        return [
            (start.planned_t - mine[0].planned_t, start.model, start.streamed, start.prompt_tokens, start.max_tokens)
            for start in mine
        ]

    calm, late = await sent(stall_s=0.0), await sent(stall_s=0.2)
    assert [one[1:] for one in calm] == [one[1:] for one in late]
    assert [one[0] for one in calm] == pytest.approx([one[0] for one in late])
