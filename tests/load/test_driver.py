"""The load against real servers: spread, back-off, drain, arrivals; and what a killed driver leaves behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rig.config.workload import Workload
from rig.errors import JournalError, UsageError
from rig.journal.records import RequestEnded, RequestStarted
from rig.load.arrivals import planned_times
from rig.load.backoff import Backoff
from rig.load.client import LoadDriver
from rig.load.draw import Draw, completions_url
from tests.load.conftest import Recorded
from tests.load.servers import (
    DONE,
    END,
    FINISH,
    HEAD,
    SOUND,
    Client,
    free_port,
    serving,
    sound,
    start_mock,
    token,
    until,
)


def workload(**values: Any) -> Workload:
    return Workload.model_validate(
        {"name": "test", "models": [{"model": "mock"}], "streamed_share": 1.0, "clients": 12, "canaries": 0, **values}
    )


def starts(recorded: Recorded) -> list[RequestStarted]:
    return [record for record in recorded.records if isinstance(record, RequestStarted)]


def ends(recorded: Recorded) -> list[RequestEnded]:
    return [record for record in recorded.records if isinstance(record, RequestEnded)]


async def test_load_is_spread_over_entry_nodes_and_models(recorded: Recorded) -> None:
    models = [{"model": "small", "weight": 3.0}, {"model": "large", "weight": 1.0}]
    load = workload(models=models, streamed_share=0.75, clients=6)
    async with serving(sound) as one, serving(sound) as two, serving(sound) as three:
        entries = {"one": one.url, "two": two.url, "three": three.url}
        driver = LoadDriver(load, entries, recorded.journal, seed=7, requests=600)
        await driver.run(asyncio.Event())
        got = {"one": len(one.requests), "two": len(two.requests), "three": len(three.requests)}
        asked = [request for server in (one, two, three) for request in server.requests]
    assert Counter(start.entry for start in starts(recorded)) == got
    assert all(190 <= count <= 210 for count in got.values())
    assert Counter(str(request["model"]) for request in asked)["small"] == pytest.approx(450, abs=40)
    assert sum(bool(request["stream"]) for request in asked) == pytest.approx(450, abs=40)
    assert len(starts(recorded)) == len(ends(recorded)) == 600
    assert len({start.id for start in starts(recorded)}) == 600
    assert {start.client for start in starts(recorded)} == {f"client-{number}" for number in range(1, 7)}
    lengths = [(start.prompt_tokens, start.max_tokens) for start in starts(recorded)]
    assert all(16 <= prompt <= 128 and 8 <= output <= 48 for prompt, output in lengths)
    assert len(set(lengths)) > 300
    words = [len(str(request["messages"][0]["content"]).split()) for request in asked]
    assert sorted(words) == sorted(prompt for prompt, _ in lengths)


async def test_pinned_entry_nodes(recorded: Recorded) -> None:
    async with serving(sound) as one, serving(sound) as two:
        entries = {"one": one.url, "two": two.url}
        await LoadDriver(workload(entry=["two"]), entries, recorded.journal, seed=1, requests=30).run(asyncio.Event())
        assert (len(one.requests), len(two.requests)) == (0, 30)
        with pytest.raises(UsageError, match="three"):
            LoadDriver(workload(entry=["three"]), entries, recorded.journal, seed=1)


def test_the_same_seed_asks_the_same() -> None:
    def drawn(seed: int, client: str) -> list[object]:
        draw = Draw(workload(streamed_share=0.5), seed, client)
        return [draw.next() for _ in range(50)]

    assert drawn(7, "client-1") == drawn(7, "client-1")
    assert drawn(7, "client-1") != drawn(8, "client-1")
    assert drawn(7, "client-1") != drawn(7, "client-2")


async def test_a_server_that_is_away_does_not_swell_the_count(recorded: Recorded) -> None:
    """Without back-off 12 clients would send some 10,000 requests in this time."""
    port, stop = free_port(), asyncio.Event()
    driver = LoadDriver(workload(), {"server": f"http://127.0.0.1:{port}"}, recorded.journal, seed=3)
    running = asyncio.create_task(driver.run(stop))
    await asyncio.sleep(3.0)
    away = len(ends(recorded))
    assert 12 * 3 <= away <= 12 * 8, "in 3 s: at once, and after 0.25, 0.5, 1 s and so on, each times 0.5 to 1"
    async with serving(sound, port=port) as server:
        # every client comes back within its back-off
        await until(lambda: len({start.client for start in starts(recorded)[away:]}) == 12)
        stop.set()
        await running
        assert server.requests
    assert Counter(end.outcome for end in ends(recorded)[:away]) == {"error": away}


def test_back_off_doubles_up_to_its_most() -> None:
    waits = [[Backoff().wait_s(failures, Random(seed)) for seed in range(200)] for failures in range(1, 100)]
    for failures, drawn in enumerate(waits, start=1):
        most = min(2.0, 0.25 * 2 ** (failures - 1))
        assert most * 0.5 <= min(drawn) < most * 0.55
        assert most * 0.95 < max(drawn) <= most


async def test_slow_failures_do_not_back_off_and_success_resets(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await asyncio.sleep(0.1)  # slower than what counts as fast here
        client.reset()

    async with serving(script) as server:
        backoff = Backoff(first_s=30.0, most_s=30.0, fast_s=0.05)
        driver = LoadDriver(
            workload(clients=1), {"s": server.url}, recorded.journal, seed=1, requests=3, backoff=backoff
        )
        await asyncio.wait_for(driver.run(asyncio.Event()), 10)
    assert [end.outcome for end in ends(recorded)] == ["error"] * 3


async def test_after_stop_nothing_is_sent_and_everything_on_its_way_is_awaited(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        all_here.release()
        await go_on.wait()
        await client.send(FINISH + DONE + END)

    all_here, go_on, stop = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()
    async with serving(script) as server:
        driver = LoadDriver(workload(), {"server": server.url}, recorded.journal, seed=1)
        running = asyncio.create_task(driver.run(stop))
        for _ in range(12):
            await asyncio.wait_for(all_here.acquire(), 5)
        assert driver.in_flight == 12
        stop.set()
        _, pending = await asyncio.wait({running}, timeout=0.2)
        assert pending
        go_on.set()
        await asyncio.wait_for(running, 5)
    assert driver.in_flight == 0
    assert [end.outcome for end in ends(recorded)] == ["completed"] * 12
    assert len(starts(recorded)) == 12


async def test_stop_ends_thinking_at_once(recorded: Recorded) -> None:
    stop = asyncio.Event()
    async with serving(sound) as server:
        load = workload(arrivals={"kind": "closed", "think": 60.0}, clients=3)
        running = asyncio.create_task(LoadDriver(load, {"s": server.url}, recorded.journal, seed=1).run(stop))
        await until(lambda: len(ends(recorded)) == 3)
        stop.set()
        await asyncio.wait_for(running, 1)
    assert len(starts(recorded)) == 3


async def test_a_journal_that_fails_ends_the_load(recorded: Recorded) -> None:
    async with serving(sound) as server:
        running = asyncio.create_task(
            LoadDriver(workload(), {"s": server.url}, recorded.journal, seed=1).run(asyncio.Event())
        )
        await until(lambda: len(ends(recorded)) >= 20)
        recorded.journal.close()
        with pytest.raises(JournalError):
            await asyncio.wait_for(running, 5)


def test_planned_times() -> None:
    assert list(islice(planned_times("constant", 4.0, Random(1)), 4)) == [0.25, 0.5, 0.75, 1.0]
    poisson = list(islice(planned_times("poisson", 50.0, Random(1)), 5000))
    assert poisson == sorted(poisson)
    assert poisson[-1] == pytest.approx(100.0, rel=0.05)
    gaps = [later - earlier for earlier, later in pairwise(poisson)]
    assert sum(gap < 0.02 for gap in gaps) / len(gaps) == pytest.approx(0.632, abs=0.03), "exponential gaps"
    with pytest.raises(ValueError, match="positive"):
        next(planned_times("constant", 0.0, Random(1)))


async def test_open_loop_keeps_its_plan_while_the_server_stands_still(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await go_on.wait()
        await client.send(SOUND)

    go_on = asyncio.Event()
    load = workload(arrivals={"kind": "constant", "rate": 100.0}, clients=1)
    async with serving(script) as server:
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=60)
        running = asyncio.create_task(driver.run(asyncio.Event()))
        await until(lambda: driver.in_flight == 60)  # a server that does not answer does not hold arrivals back
        go_on.set()
        await asyncio.wait_for(running, 5)
    planned = sorted(
        start.planned_t for start in starts(recorded)
    )  # two that are due at once may be written either way
    assert [later - earlier for earlier, later in pairwise(planned)] == pytest.approx([0.01] * 59)
    assert all(0 <= start.t - start.planned_t < 0.5 for start in starts(recorded))


async def test_open_loop_is_bounded_in_flight_and_tells_how_late_it_was(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await go_on.wait()
        await client.send(SOUND)

    go_on = asyncio.Event()
    load = workload(arrivals={"kind": "constant", "rate": 200.0, "max_concurrency": 5})
    async with serving(script) as server:
        driver = LoadDriver(load, {"s": server.url}, recorded.journal, seed=1, requests=20)
        running = asyncio.create_task(driver.run(asyncio.Event()))
        await asyncio.sleep(0.4)
        assert driver.in_flight == len(starts(recorded)) == 5
        go_on.set()
        await asyncio.wait_for(running, 5)
    late = [start.t - start.planned_t for start in starts(recorded)]
    assert len(late) == 20
    assert max(late[:5]) < 0.2 < late[5], "the sixth was due at 30 ms and waited for a slot until 400 ms"


async def test_open_loop_needs_a_rate(recorded: Recorded) -> None:
    with pytest.raises(UsageError, match="rate"):
        LoadDriver(workload(arrivals={"kind": "poisson"}), {"s": "http://h"}, recorded.journal, seed=1)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/api/v1/", "http://h:1/api/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("http://[fe80::1]:5", "http://[fe80::1]:5/v1/chat/completions"),
    ],
)
def test_urls(base: str, url: str) -> None:
    assert str(completions_url(base)) == url


@pytest.mark.parametrize("base", ["", "h:1", "localhost", "ftp://h", "http://", "http://h:port"])
def test_what_is_no_url_is_refused(base: str) -> None:
    with pytest.raises(UsageError, match="URL"):
        completions_url(base)


def test_a_killed_driver_leaves_starts_without_ends(sse_mock: Path, tmp_path: Path) -> None:
    server, url = start_mock(sse_mock, "--tokens", "4", "--ttft", "5", "--fault", "stall", "--every", "4")
    journal = tmp_path / "journal.jsonl"
    try:
        rig = subprocess.Popen(
            [sys.executable, "-m", "rig", "load", "--url", url, "--model", "mock", "--out", tmp_path, "--json"]
        )
        deadline = time.monotonic() + 20
        while not journal.exists() or journal.read_bytes().count(b'"request_start"') < 40:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        rig.kill()
        rig.wait()
    finally:
        server.terminate()
        server.wait()
    lines = journal.read_bytes().split(b"\n")
    records = [json.loads(line) for line in lines[:-1]]
    started = {record["id"] for record in records if record["kind"] == "request_start"}
    ended = {record["id"] for record in records if record["kind"] == "request_end"}
    assert len(started) == 40
    assert ended < started
    assert len(started - ended) >= 10, "those that stalled were on their way"
