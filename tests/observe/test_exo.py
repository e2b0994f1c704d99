from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing

import pytest
from aiohttp import web

from rig.errors import TargetError, TargetUnreachable
from rig.targets.exo.api import Exo
from rig.targets.target import Answered, Poll
from tests.observe.api import DATA, STATE, Answer, Api

INSTANCES = Poll("/state/instances", ("instances",))


async def _hang(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


async def _drip(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(600):
        await response.write(b" ")
        await asyncio.sleep(0.02)
    return response


async def _truncated(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"a": ')
    assert request.transport is not None
    request.transport.close()
    return response


async def _huge(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(12):
        await response.write(b" " * 1024 * 1024)
    return response


async def test_every_poll_yields_its_facets(api: Api, exo: Exo) -> None:
    found = {
        facet: value
        for poll in exo.polls
        for facet, value in (await exo.read(api.url, poll, timeout_s=5)).facets.items()
    }
    assert set(found) == {facet for poll in exo.polls for facet in poll.facets}
    assert found["node_id"] == STATE["topology"]["nodes"][0]
    assert found["event_index"] == 563
    assert {view["model"] for view in found["instances"].values()} == {"lab/tiny-a", "lab/tiny-b"}
    assert found["nodes"] == sorted(STATE["topology"]["nodes"])


async def test_without_a_keeper_there_are_no_deployments(api: Api, exo: Exo) -> None:
    del api.answers["/deployments"]
    poll = next(poll for poll in exo.polls if "deployments" in poll.facets)
    assert await exo.read(api.url, poll, timeout_s=5) == Answered({})
    with pytest.raises(TargetError, match="no deployments keeper"):
        await exo.deployments(api.url)
    api.answers["/state/deployments"] = (DATA / "state_deployments_upstream.json").read_bytes()
    assert {view["status"] for view in (await exo.deployments(api.url)).values()} == {None}


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{", b"\xff", b'"text"', b"[1]", b'{"i": 3}', b'{"i": {"A": {"shardAssignments": []}}}']
)
async def test_garbage_is_a_target_error_that_names_the_path(api: Api, exo: Exo, body: bytes) -> None:
    api.answers["/state/instances"] = body
    with pytest.raises(TargetError, match="/state/instances") as caught:
        await exo.instances(api.url)
    assert not isinstance(caught.value, TargetUnreachable)


async def test_an_error_status_is_told_with_its_message(api: Api, exo: Exo) -> None:
    api.answers["/node_id"] = b'{"error": {"message": "not yet", "code": 503}}'
    api.statuses["/node_id"] = 503
    with pytest.raises(TargetError, match="answered 503: not yet"):
        await exo.node_id(api.url)


@pytest.mark.parametrize("answer", [_hang, _drip])
async def test_what_does_not_answer_in_time_is_unreachable(api: Api, exo: Exo, answer: Answer) -> None:
    api.answers["/state/instances"] = answer
    started = time.monotonic()
    with pytest.raises(TargetUnreachable, match="no answer in time"):
        await exo.read(api.url, INSTANCES, timeout_s=0.3)
    assert 0.3 <= time.monotonic() - started < 2.0


async def test_a_cut_answer_is_unreachable_and_a_huge_one_an_error(api: Api, exo: Exo) -> None:
    api.answers["/state/instances"] = _truncated
    with pytest.raises(TargetUnreachable):
        await exo.read(api.url, INSTANCES, timeout_s=5)
    api.answers["/state/instances"] = _huge
    with pytest.raises(TargetError, match="longer than"):
        await exo.read(api.url, INSTANCES, timeout_s=10)


async def test_a_port_where_nobody_listens_is_unreachable(api: Api, exo: Exo) -> None:
    await api.stop()
    with pytest.raises(TargetUnreachable, match="/state/instances"):
        await exo.read(api.url, INSTANCES, timeout_s=5)


async def test_deploy_posts_the_request_and_tells_the_id(api: Api, exo: Exo) -> None:
    api.answers["POST /deployments"] = (DATA / "deployments_upstream_post_200.json").read_bytes()
    request = {"model_id": "lab/tiny-b", "sharding": "Pipeline", "instance_meta": "MlxRing", "min_nodes": 2}
    posted = await exo.deploy(api.url, request)
    assert (posted.id, posted.created) == ("15fa956d-dccc-475b-b062-95b92dc3dbe6", True)
    method, path, body = api.asked[-1]
    assert (method, path, json.loads(body)) == ("POST", "/deployments", request)


async def test_deploying_what_is_deployed_is_no_error_and_what_is_wrong_is(api: Api, exo: Exo) -> None:
    api.answers["POST /deployments"] = (DATA / "deployments_upstream_post_409.json").read_bytes()
    api.statuses["/deployments"] = 409
    posted = await exo.deploy(api.url, {})
    assert (posted.id, posted.created) == ("15fa956d-dccc-475b-b062-95b92dc3dbe6", False)
    api.answers["POST /deployments"] = (DATA / "deployments_upstream_post_422.json").read_bytes()
    api.statuses["/deployments"] = 422
    with pytest.raises(TargetError, match=r"422: .*min_nodes"):
        await exo.deploy(api.url, {})


async def test_deleting_what_is_not_there_is_false(api: Api, exo: Exo) -> None:
    assert await exo.delete_deployment(api.url, "x") is False
    assert await exo.delete_instance(api.url, "y") is False
    api.answers["DELETE /deployments/x"] = api.answers["DELETE /instance/y"] = b"{}"
    assert await exo.delete_deployment(api.url, "x") is True
    assert await exo.delete_instance(api.url, "y") is True
    assert [asked[:2] for asked in api.asked[-2:]] == [("DELETE", "/deployments/x"), ("DELETE", "/instance/y")]


async def test_the_instance_that_served_is_found_by_the_response_id(api: Api, exo: Exo) -> None:
    api.answers["/state/tasks"] = (DATA / "tasks.json").read_bytes()
    served = "730564ba-e182-402f-8fb0-03b65ab98b53"
    assert await exo.served_by(api.url, [served, "no such request"]) == {served: "38ffba7e-2ac5-4671-8d51-dd235ff93ecd"}


async def test_events_stream_and_a_cut_log_is_told_after_what_was_whole(api: Api, exo: Exo) -> None:
    wanted = json.loads((DATA / "events.json").read_bytes())
    events = [entry async for entry in exo.events(api.url, timeout_s=5, limit_bytes=10**6)]
    assert [index for index, _ in events] == list(range(len(wanted)))
    assert [json.loads(entry) for _, entry in events] == wanted

    whole = (DATA / "events.json").read_bytes()
    api.answers["/events"] = whole[: len(whole) // 2]
    seen: list[int] = []

    async def read(limit_bytes: int) -> None:
        async with aclosing(exo.events(api.url, timeout_s=5, limit_bytes=limit_bytes)) as entries:
            async for index, _ in entries:
                seen.append(index)

    with pytest.raises(TargetError, match="cut short after"):
        await read(10**6)
    assert 0 < len(seen) < len(wanted)
    api.answers["/events"] = whole
    with pytest.raises(TargetError, match="longer than 100 bytes"):
        await read(100)


@pytest.mark.parametrize(
    ("line", "claims", "matters"),
    [
        ("INFO exo: Node elected Master - promoting self", True, True),
        ("INFO exo: Node elected Master - maintaining self", True, True),
        ("INFO exo: Node elected Master - demoting self", False, True),
        ("INFO exo: Node 4d1530193f48 elected master", False, True),
        ("INFO exo: Node 4d1530193f48 elected master - demoting self", False, True),
        ("[ 10:00:00 | ERROR | exo ] EXO terminated due to unhandled exception", None, True),
        ("[ 10:00:00 | INFO | exo ] GET /state/instances 200", None, False),
    ],
)
async def test_what_a_log_line_says(exo: Exo, line: str, claims: bool | None, matters: bool) -> None:  # noqa: FBT001
    sign = exo.log_sign(line)
    assert (sign.claims_master, sign.matters) == (claims, matters)
