"""What clients see of the same faults under the two behaviours: every request ends, or is lost as it is in exo
0.3.70.
"""

from __future__ import annotations

import asyncio
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.asyncio
A, B = "lab/tiny-a", "lab/tiny-b"
TOKEN = b'"content":'


async def kill_main(cluster: Any, node: str) -> None:
    pid = cluster.main_pid(node)
    pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    await cluster.ssh(node, f"kill -KILL {' '.join(map(str, pids))}")


async def restart(cluster: Any, node: str, until: Any) -> None:
    assert (await cluster.ssh(node, "exo-start")).status == 0
    await until(cluster.whole, what="all nodes are back")


async def kill_a_runner_of(cluster: Any, model: str) -> None:
    """On the node of rank 0, of an instance that is the only one there."""
    node = (await cluster.hosts(model))[0]
    children = psutil.Process(cluster.main_pid(node)).children()
    (runner,) = (child for child in children if "spawn_main" in " ".join(child.cmdline()))
    await cluster.ssh(node, f"kill -KILL {runner.pid}")


async def test_sound_every_stream_ends_when_the_master_dies(cluster: Any, until: Any) -> None:
    await cluster.deploy(A)
    master = cluster.master()
    others = [node for node in cluster.layout.nodes if node != master]
    own = await cluster.stream(master, A)
    streams = [await cluster.stream(node, A) for node in others]
    plain = await cluster.stream(others[0], A, streamed=False)
    for stream in (own, *streams):
        await stream.read_until(TOKEN)
    await plain.read_until(b"\r\n\r\n")
    await kill_main(cluster, master)
    try:
        for stream in (own, plain, *streams):
            assert await stream.read_for(10)
        assert not own.ended_cleanly  # the connection broke inside the body
        assert not plain.ended_cleanly
        for stream in streams:
            assert b'data: {"error":{"message":' in stream.seen
            assert stream.seen.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    finally:
        await restart(cluster, master, until)


async def test_flawed_streams_get_keep_alives_for_ever_when_the_master_dies(flawed: Any, until: Any) -> None:
    await flawed.deploy(A)
    master = flawed.master()
    host = (await flawed.hosts(A))[0]
    entry = next(node for node in flawed.layout.nodes if node not in {master, host})
    stream = await flawed.stream(entry, A)
    plain = await flawed.stream(entry, A, streamed=False)
    await stream.read_until(TOKEN)
    await plain.read_until(b"\r\n\r\n")
    await kill_main(flawed, master)
    try:
        await asyncio.sleep(0.5)  # what was on its way is through
        assert await asyncio.gather(stream.read_for(2.5), plain.read_for(2.5)) == [False, False]
        assert stream.seen.count(b": keep-alive\n\n") >= 3
        assert stream.seen.rstrip().endswith(b": keep-alive")
        assert plain.body == b""
        _, deployments = await flawed.get(entry, "/deployments")
        assert deployments == {"deployments": []}  # a new master has forgotten them
    finally:
        stream.writer.close()
        plain.writer.close()
        await restart(flawed, master, until)


async def test_flawed_a_killed_runner_ends_streams_in_an_error_and_bodies_in_nothing(flawed: Any, until: Any) -> None:
    await flawed.deploy(A)
    stream = await flawed.stream("node-1", A)
    plain = await flawed.stream("node-2", A, streamed=False)
    await stream.read_until(TOKEN)
    await plain.read_until(b"\r\n\r\n")
    await kill_a_runner_of(flawed, A)
    assert await asyncio.gather(stream.read_for(5), plain.read_for(5)) == [True, True]
    assert b"Runner shutdown before completing command" in stream.seen
    assert stream.seen.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert plain.body == b"0\r\n\r\n"
    await until(lambda: flawed.serving(A), what="served again by a new runner")


async def test_flawed_a_deleted_instance_ends_streams_without_a_word(flawed: Any) -> None:
    deployment = await flawed.deploy(B)
    stream = await flawed.stream("node-1", B)
    plain = await flawed.stream("node-2", B, streamed=False)
    await stream.read_until(TOKEN)
    await asyncio.sleep(0.2)  # some tokens for the body as well
    assert (await flawed.request("DELETE", "node-1", f"/deployments/{deployment}"))[0] == 200
    assert await asyncio.gather(stream.read_for(5), plain.read_for(5)) == [True, True]
    assert stream.ended_cleanly
    assert b"error" not in stream.seen
    assert b"[DONE]" not in stream.seen
    assert plain.ended_cleanly
    assert b'"content":"' in plain.body
    assert b"finish_reason" not in plain.body


async def test_looking_at_a_flawed_node_costs_what_it_costs_exo(start: Any) -> None:
    """Timers never fire early, so these hold on a machine however busy. The durations are those of exo, by the pace."""
    cluster = await start(nodes=1, behaviour="exo-0.3.70", pace=5.0)
    loop = asyncio.get_running_loop()

    async def took(method: str, path: str, body: object = None) -> float:
        began = loop.time()
        status, _ = await cluster.request(method, "node-1", path, body, timeout_s=60.0)
        assert status == 200
        return loop.time() - began

    assert await took("POST", "/deployments", {"model_id": A, "min_nodes": 1}) >= 12.0 / 5.0
    began = loop.time()
    await asyncio.gather(*(took("GET", "/state/instances") for _ in range(8)))
    assert loop.time() - began >= 8 * 0.09 / 5.0  # one after the other
    assert await took("GET", "/state") >= 0.5 / 5.0
    count = (await cluster.get("node-1", "/state/lastEventAppliedIdx"))[1]
    assert await took("GET", "/events") >= count * 0.0005 / 5.0
