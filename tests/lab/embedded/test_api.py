"""What a client of the API sees, down to the bytes."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from rig.lab.ledger import RequestClosed, RequestOpened, read_ledger

pytestmark = pytest.mark.asyncio

STATE_KEYS = {
    *("instances", "runners", "downloads", "tasks", "lastSeen", "topology", "lastEventAppliedIdx", "nodeIdentities"),
    *("nodeMemory", "nodeDisk", "nodeSystem", "nodeNetwork", "nodeThunderbolt", "nodeThunderboltBridge", "nodeRdmaCtl"),
    *("nodeBackends", "thunderboltBridgeCycles", "instanceLinks", "prefillServerPorts", "customModelCards"),
    "deployments",
}
A = "lab/tiny-a"


async def raw_chat(cluster: Any, node: str, body: dict[str, Any]) -> tuple[list[bytes], bytes]:
    """Header lines, and the whole body as it came over the wire."""
    port = int(cluster.api(node).rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps({"messages": [{"role": "user", "content": "hello there"}], **body}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
    async with asyncio.timeout(10):
        headers = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        rest = await reader.read()
    writer.close()
    return headers, rest


def chunks(body: bytes) -> list[bytes]:
    """The chunks of a chunked body; fails when it does not end as it must."""
    found: list[bytes] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            assert body == b"\r\n"
            return found
        found.append(body[:length])
        assert body[length : length + 2] == b"\r\n"
        body = body[length + 2 :]


async def test_state_has_exos_parts(cluster: Any) -> None:
    status, state = await cluster.get("node-1", "/state")
    assert status == 200
    assert set(state) == STATE_KEYS
    assert len(state["topology"]["nodes"]) == 3
    for path in ("instances", "topology/nodes", "deployments"):
        assert (await cluster.get("node-1", f"/state/{path}"))[0] == 200
    assert (await cluster.get("node-1", "/state/nothing"))[0] == 404


async def test_node_ids_models_and_events(cluster: Any) -> None:
    ids = {(await cluster.get(node, "/node_id"))[1] for node in cluster.layout.nodes}
    assert set((await cluster.get("node-1", "/state/topology/nodes"))[1]) == ids
    _, models = await cluster.get("node-1", "/v1/models")
    assert models["object"] == "list"
    assert A in {model["id"] for model in models["data"]}
    status, events = await cluster.get("node-2", "/events")
    assert status == 200
    assert {len(event) for event in events} == {1}  # a list of tagged events


async def test_what_is_wrong_is_answered_as_exo_does(cluster: Any) -> None:
    status, body = await cluster.chat("node-1", "lab/too-big")
    message = "No instance found for model lab/too-big"
    assert (status, body) == (404, {"error": {"message": message, "type": "Not Found", "param": None, "code": 404}})
    status, body = await cluster.request("POST", "node-1", "/deployments", {"model_id": A, "min_nodes": "x"})
    wanted = "Input should be a valid integer, unable to parse string as an integer"
    detail = {"type": "int_parsing", "loc": ["body", "min_nodes"], "msg": wanted, "input": "x"}
    assert (status, body) == (422, {"detail": [detail]})
    bodies: list[Any] = [{}, {"model_id": 3}, {"model_id": A, "sharding": "Other"}, [], None]
    for body in bodies:
        assert (await cluster.request("POST", "node-1", "/deployments", body))[0] == 422
    assert (await cluster.request("DELETE", "node-1", "/deployments/none"))[0] == 404
    assert (await cluster.get("node-1", "/instance/none"))[0] == 404
    assert (await cluster.request("POST", "node-1", "/v1/cancel/none"))[0] == 404


async def test_a_second_deployment_of_a_model_is_refused(cluster: Any) -> None:
    deployment = await cluster.deploy(A)
    status, body = await cluster.request("POST", "node-2", "/deployments", {"model_id": A})
    assert status == 409
    assert deployment in body["error"]["message"]


async def test_a_stream_has_exos_shape(cluster: Any) -> None:
    await cluster.deploy(A)
    headers, body = await raw_chat(cluster, "node-2", {"model": A, "stream": True, "max_tokens": 5})
    assert headers[0].startswith(b"HTTP/1.1 200")
    lower = {line.lower() for line in headers}
    assert b"content-type: text/event-stream; charset=utf-8" in lower
    assert b"transfer-encoding: chunked" in lower
    assert b"connection: close" in lower
    found = chunks(body)
    assert found[0] == b": keep-alive\n\n"
    kinds = [re.sub(rb"[ {].*", b"", chunk.split(b"\n")[0][:20]) for chunk in found[1:]]
    assert found[-1] == b"data: [DONE]\n\n"
    assert found[-2].startswith(b": generation_stats {")
    assert any(chunk.startswith(b": prefill_progress {") for chunk in found)
    assert all(chunk.endswith(b"\n\n") for chunk in found), kinds
    data = [json.loads(chunk[6:]) for chunk in found if chunk.startswith(b"data: {")]
    assert len(data) == 5
    assert len({item["id"] for item in data}) == 1
    assert [item["choices"][0].get("finish_reason") for item in data] == [None] * 4 + ["length"]
    assert data[-1]["usage"]["completion_tokens"] == 5
    assert all(item["choices"][0]["delta"]["content"] for item in data)


async def test_a_body_that_is_not_streamed_comes_whole(cluster: Any) -> None:
    await cluster.deploy(A)
    headers, body = await raw_chat(cluster, "node-3", {"model": A, "max_tokens": 7})
    assert b"content-type: application/json" in {line.lower() for line in headers}
    (text,) = chunks(body)
    answer = json.loads(text)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 7


async def test_headers_come_at_once(cluster: Any) -> None:
    """Long before a body can: time to first byte means nothing."""
    await cluster.deploy(A)
    for streamed in (True, False):
        port = int(cluster.api("node-1").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = {"model": A, "stream": streamed, "max_tokens": 4000, "messages": [{"role": "user", "content": "x"}]}
        payload = json.dumps(body).encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload
        )
        async with asyncio.timeout(2):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_the_ledger_knows_how_each_request_ended(cluster: Any, until: Any) -> None:
    await cluster.deploy(A)
    body = {"model": A, "stream": True, "max_tokens": 3}
    _, raw = await raw_chat(cluster, "node-1", body)
    finished = re.search(rb'"id":"([^"]+)"', raw)
    assert finished is not None

    port = int(cluster.api("node-1").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps({**body, "max_tokens": 4000, "messages": []}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload
    )
    async with asyncio.timeout(5):
        left = re.search(rb'"id":"([^"]+)"', await reader.readuntil(b'"id":"') + await reader.read(40))
    writer.close()
    assert left is not None

    def ends() -> dict[str, RequestClosed]:
        return {e.response: e for e in read_ledger(cluster.folder) if isinstance(e, RequestClosed)}

    await until(lambda: left[1].decode() in ends(), what="the end of the request that was left")
    opened = {e.response for e in read_ledger(cluster.folder) if isinstance(e, RequestOpened)}
    first, second = ends()[finished[1].decode()], ends()[left[1].decode()]
    assert {first.response, second.response} <= opened
    assert (first.end, first.finish_reason, first.tokens) == ("finished", "length", 3)
    assert second.end == "left"


async def test_a_cancelled_request_ends_without_an_error(cluster: Any) -> None:
    await cluster.deploy(A)
    port = int(cluster.api("node-1").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps({"model": A, "stream": True, "max_tokens": 4000, "messages": []}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload
    )
    async with asyncio.timeout(5):
        found = re.search(rb'"id":"([^"]+)"', await reader.readuntil(b'"id":"') + await reader.read(40))
        assert found is not None
        assert (await cluster.request("POST", "node-1", f"/v1/cancel/{found[1].decode()}"))[0] == 200
        rest = await reader.read()
    writer.close()
    assert rest.endswith(b"0\r\n\r\n")
    assert b"error" not in rest


async def test_previews_can_be_placed_by_hand(cluster: Any, until: Any) -> None:
    _, body = await cluster.get("node-1", "/instance/previews?model_id=lab/tiny-c")
    preview = next(p for p in body["previews"] if p["instance"] is not None)
    status, answer = await cluster.request("POST", "node-1", "/instance", {"instance": preview["instance"]})
    assert status == 200, answer
    (instance,) = preview["instance"].values()
    path = f"/instance/{instance['instanceId']}"

    async def there() -> bool:
        return {(await cluster.get(node, path))[0] for node in ("node-2", "node-3")} == {200}

    await until(there, what="the instance on the other nodes")
    assert (await cluster.request("DELETE", "node-3", path))[0] == 200

    async def gone() -> bool:
        return (await cluster.get("node-2", path))[0] == 404

    await until(gone, what="the instance deleted")
