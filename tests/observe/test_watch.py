from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from rig.journal.records import Facet, Finding, Looked, Reachability, ViewChanged
from rig.observe.watch import Attention, NodeWatch, WatchTiming, watch
from rig.targets.exo.api import Exo
from tests.observe.api import Answer, Api
from tests.observe.conftest import Written


def CLOSE() -> Attention:  # noqa: N802 (a constant)
    return "close"


FAST = WatchTiming(close_s=0.05, timeout_s=0.5, rare_s=0.2, index_s=0.05)


def _views(written: Written, facet: Facet, node: str = "a") -> list[ViewChanged]:
    return [
        record
        for record in written.records
        if isinstance(record, ViewChanged) and record.facet == facet and record.node == node
    ]


def _reach(written: Written, node: str = "a") -> list[Reachability]:
    return [record for record in written.records if isinstance(record, Reachability) and record.node == node]


@pytest.fixture
def frozen_url() -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its URL and its pid."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.observe.api"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 15)[0], "the server did not start"
    yield process.stdout.readline().decode().strip(), process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


async def test_a_first_round_tells_every_facet_and_further_ones_nothing(api: Api, exo: Exo, written: Written) -> None:
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    await watching.round()
    first = [record for record in written.records if isinstance(record, ViewChanged)]
    assert {record.facet for record in first} == {facet for poll in exo.polls for facet in poll.facets}
    assert {record.since_t for record in first} == {None}
    count = len(written.records)
    for _ in range(4):
        await watching.round()
    assert len(written.records) == count


async def test_a_change_lies_in_the_interval_that_is_told(api: Api, exo: Exo, written: Written) -> None:
    """The server answers slowly and changes its mind at known moments, in the middle of answering too."""
    changed_at: list[float] = []
    value = b'{"r": {"RunnerIdle": {}}}'

    async def runners(_: web.Request) -> web.Response:
        body = value  # what it was when the request was handled; the answer comes later
        await asyncio.sleep(0.02)
        return web.Response(body=body)

    api.answers["/state/runners"] = runners
    task = asyncio.create_task(watch(exo, {"a": api.url}, written.journal, FAST, CLOSE))
    try:
        await written.until(lambda: len(_views(written, "runners")) == 1)
        for number in range(12):
            await asyncio.sleep(0.013 * (number % 5))
            value = b'{"r": {"Runner%d": {}}}' % number
            changed_at.append(written.journal.now())
            await written.until(lambda: len(_views(written, "runners")) == len(changed_at) + 1)
    finally:
        task.cancel()
    changes = _views(written, "runners")[1:]
    for number, (change, moment) in enumerate(zip(changes, changed_at, strict=True)):
        assert change.value == {"r": f"Runner{number}"}
        assert change.since_t is not None
        assert change.since_t < moment <= change.t
        assert change.t - change.since_t < 1.0


async def test_a_frozen_node_delays_no_other_and_is_asked_one_thing_at_a_time(
    api: Api, exo: Exo, written: Written, frozen_url: tuple[str, int]
) -> None:
    url, pid = frozen_url
    task = asyncio.create_task(watch(exo, {"a": api.url, "b": url}, written.journal, FAST, CLOSE))
    try:
        await written.until(lambda: bool(_views(written, "runners", "b")))
        os.kill(pid, signal.SIGSTOP)
        await written.until(lambda: [r.reachable for r in _reach(written, "b")] == [True, False])
        frozen_t = written.journal.now()
        asked = api.count("/state/instances")
        await written.until(lambda: written.journal.now() - frozen_t > 1.0)
        assert api.count("/state/instances") - asked >= 10
        os.kill(pid, signal.SIGCONT)
        await written.until(lambda: [r.reachable for r in _reach(written, "b")] == [True, False, True])
    finally:
        task.cancel()
    lost, back = _reach(written, "b")[1:]
    assert "no answer in time" in lost.detail
    assert lost.since_t is not None
    assert back.since_t is not None
    assert lost.t - lost.since_t < 2.0
    assert lost.t - FAST.timeout_s <= back.since_t <= back.t
    assert [r.reachable for r in _reach(written, "a")] == [True]
    assert api.outstanding_max == 1


async def test_a_node_that_comes_back_is_asked_who_it_is_at_once(api: Api, exo: Exo, written: Written) -> None:
    timing = replace(FAST, rare_s=1000.0)
    task = asyncio.create_task(watch(exo, {"a": api.url}, written.journal, timing, CLOSE))
    try:
        await written.until(lambda: len(_views(written, "memory")) == 1)  # the last of a round
        await api.stop()
        await written.until(lambda: len(_reach(written)) == 2)
        api.answers["/node_id"] = b'"another"'
        await api.start()
        await written.until(lambda: len(_views(written, "node_id")) == 2)
    finally:
        task.cancel()
    assert _views(written, "node_id")[1].value == "another"
    assert api.count("/node_id") == 2


async def test_the_event_index_is_told_seldom_but_its_last_value_always(api: Api, exo: Exo, written: Written) -> None:
    index = 0

    async def next_index(_: web.Request) -> web.Response:
        nonlocal index
        index = min(index + 1, 20)
        return web.Response(body=str(index).encode())

    api.answers["/state/lastEventAppliedIdx"] = next_index
    timing = replace(FAST, close_s=0.02, index_s=0.3)
    task = asyncio.create_task(watch(exo, {"a": api.url}, written.journal, timing, CLOSE))
    try:
        await written.until(lambda: bool(views := _views(written, "event_index")) and views[-1].value == 20)
    finally:
        task.cancel()
    views = _views(written, "event_index")
    gaps = [later.t - earlier.t for earlier, later in pairwise(views)]
    assert all(gap >= 0.3 for gap in gaps)
    assert len(views) < 15


async def test_a_node_is_asked_at_most_five_times_a_second(api: Api, exo: Exo, written: Written) -> None:
    """Counted in rounds: 20 rounds are 20 s at the stock interval, in which the rare ones come twice."""
    watching = NodeWatch(exo, "a", api.url, written.journal, WatchTiming(), CLOSE)
    for _ in range(20):
        await watching.round()
    rare = sum(poll.rare for poll in exo.polls)
    assert len(api.asked) + rare <= 20 * 5


async def test_while_nodes_are_probed_rounds_are_few_and_look_at_everything(
    api: Api, exo: Exo, written: Written
) -> None:
    """Two rounds, a sparing interval apart: the event index, which every second round asks for, is in both."""
    timing = WatchTiming(close_s=0.01, sparing_s=0.4)
    task = asyncio.create_task(NodeWatch(exo, "a", api.url, written.journal, timing, lambda: "sparing").run())
    begun = written.journal.now()
    try:
        await written.until(lambda: api.count("/state/lastEventAppliedIdx") == 2)
    finally:
        task.cancel()
    assert written.journal.now() - begun >= 0.4
    assert api.count("/state/instances") <= 2


async def test_an_answer_that_cannot_be_read_is_one_finding_until_it_can(api: Api, exo: Exo, written: Written) -> None:
    good = api.answers["/state/runners"]
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    for answer in (b"<html>", b"<html>", good, b"[]", b"[]"):
        api.answers["/state/runners"] = answer
        await watching.round()
    findings = [record for record in written.records if isinstance(record, Finding)]
    assert [finding.code for finding in findings] == ["answer-not-understood"] * 2
    assert findings[0].data == {"node": "a", "path": "/state/runners", "facets": ["runners", "loading"]}
    watching.tell_cost()
    [looked] = [record for record in written.records if isinstance(record, Looked)]
    assert looked.misread == {"runners": 4}
    assert [r.reachable for r in _reach(written)] == [True]
    assert len(_views(written, "instances")) == 1


async def test_a_node_that_was_never_there_is_told_once(exo: Exo, api: Api, written: Written) -> None:
    await api.stop()
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    await watching.round()
    await watching.round()
    [reach] = _reach(written)
    assert (reach.reachable, reach.since_t) == (False, None)
    assert reach.detail


async def test_facets_keep_their_interval_over_an_outage(api: Api, exo: Exo, written: Written) -> None:
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    await watching.round()
    before = written.journal.now()
    await api.stop()
    await watching.round()
    api.answers["/state/runners"] = b"{}"
    await api.start()
    await watching.round()
    change = _views(written, "runners")[1]
    assert change.value == {}
    assert change.since_t is not None
    assert change.since_t < before < change.t


CHANGED: dict[str, Any] = {
    "/state/instances": {"i1": {"MlxRingInstance": {"instanceId": "i1", "assignments": {"modelId": "m"}}}},
    "/state/runners": {"r1": {"status": "RunnerReady"}},
    "/deployments": {"deployments": [{"deployment": {"deploymentId": "d1", "modelCard": {"modelId": "m"}}}]},
    "/state/topology": {"members": ["n1"]},
    "/state/nodeMemory": {"n1": {"free": 7}},
}


@pytest.mark.parametrize("path", CHANGED)
async def test_an_answer_of_another_shape_is_found_and_the_rest_of_it_taken(
    api: Api, exo: Exo, written: Written, path: str
) -> None:
    api.answers[path] = json.dumps(CHANGED[path]).encode()
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    await watching.round()
    [finding] = [record for record in written.records if isinstance(record, Finding)]
    facets = next(poll.facets for poll in exo.polls if poll.name == path)
    assert finding.code == "answer-not-understood"
    assert finding.data == {"node": "a", "path": path, "facets": list(facets)}
    assert {record.facet for record in written.records if isinstance(record, ViewChanged)} == {
        facet for poll in exo.polls for facet in poll.facets
    }


async def test_a_path_that_is_gone_is_found(api: Api, exo: Exo, written: Written) -> None:
    del api.answers["/state/runners"]
    await NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE).round()
    assert [record.code for record in written.records if isinstance(record, Finding)] == ["answer-not-understood"]


async def test_an_error_status_is_no_changed_answer(api: Api, exo: Exo, written: Written) -> None:
    api.statuses["/state/runners"] = 500
    watching = NodeWatch(exo, "a", api.url, written.journal, FAST, CLOSE)
    await watching.round()
    watching.tell_cost()
    assert [record.code for record in written.records if isinstance(record, Finding)] == ["unreadable-answer"]
    assert [record.misread for record in written.records if isinstance(record, Looked)] == [{}]


@pytest.mark.parametrize(
    ("attention", "round_s", "interval_s"),
    [
        ("close", 0.02, 1.0),
        ("close", 0.6, 2.4),
        ("sparing", 0.6, 3.0),
        ("calm", 0.02, 5.0),
        ("calm", 0.75, 7.5),
        ("calm", 9, 30),
    ],
)
def test_looking_is_a_bounded_share_of_a_nodes_time(attention: Attention, round_s: float, interval_s: float) -> None:
    assert WatchTiming().interval_s(attention, round_s) == pytest.approx(interval_s)


async def test_rounds_are_further_apart_where_answers_are_dear(api: Api, exo: Exo, written: Written) -> None:
    """Each answer takes 40 ms, so that two rounds of five or six are at least half a second of other things apart."""

    def slow(body: bytes) -> Answer:
        async def answer(_: web.Request) -> web.Response:
            await asyncio.sleep(0.04)
            return web.Response(body=body)

        return answer

    begun: list[float] = []

    async def instances(_: web.Request) -> web.Response:
        begun.append(written.journal.now())
        return web.Response(body=b"{}")

    api.answers |= {path: slow(body) for path, body in api.answers.items() if isinstance(body, bytes)}
    api.answers["/state/instances"] = instances
    timing = replace(FAST, close_share=0.25)
    task = asyncio.create_task(NodeWatch(exo, "a", api.url, written.journal, timing, CLOSE).run())
    try:
        await written.until(lambda: len(begun) >= 3)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert begun[2] - begun[1] > 4 * 3 * 0.04
    [looked] = [record for record in written.records if isinstance(record, Looked)]
    assert looked.answer_s > 6 * 0.04
    assert looked.asked >= 10
