"""One request against real sockets: its two lines, its deadlines, and what it makes of broken servers."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace

import httpx
import pytest
import uvloop

from rig.errors import JournalError
from rig.journal.records import RequestEnded, RequestStarted
from rig.load.deadlines import GRACE_S, Limits
from rig.load.request import perform
from rig.load.transport import MAX_UNREAD_BYTES, Exchange, LoadTransport
from tests.load.calls import LIMITS, call
from tests.load.conftest import Recorded
from tests.load.servers import (
    ANSWER,
    DONE,
    END,
    FINISH,
    HEAD,
    SOUND,
    Client,
    Script,
    chunk,
    free_port,
    serving,
    token,
    until,
    whole,
)


async def ask(recorded: Recorded, script: Script, *, streamed: bool = True, limits: Limits = LIMITS) -> RequestEnded:
    async with serving(script) as server:
        made = call(server.url, streamed=streamed, limits=limits)
        return await perform(made, LoadTransport(recorded.journal.now), recorded.journal)


async def test_a_sound_answer(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD)
        await asyncio.sleep(0.05)
        await client.send(token() + FINISH + DONE + END)
        seen.append(client.request)

    seen: list[dict[str, object]] = []
    ended = await ask(recorded, script)
    started, written = recorded.records
    assert isinstance(started, RequestStarted)
    assert written == ended
    assert (ended.outcome, ended.status, ended.finish_reason, ended.tokens) == ("completed", 200, "stop", 1)
    assert (ended.unclean_end, ended.damaged, ended.evidence, ended.response_id) == (None, None, "", "x")
    assert ended.connected_t is not None
    assert ended.first_byte_t is not None
    assert ended.first_token_t is not None
    times = [started.t, ended.started_t, ended.connected_t, ended.first_byte_t, ended.first_token_t]
    assert times == sorted(times)
    assert ended.first_token_t - ended.first_byte_t >= 0.04, "the first byte is the head, the first token comes later"
    assert ended.first_token_t == ended.last_token_t == ended.last_progress_t
    assert ended.first_token_t <= ended.ended_t <= ended.t
    assert seen[0] == {
        "model": "mock",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 8,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_the_start_is_written_before_anything_is_sent(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        written.extend(recorded.records)
        await client.send(SOUND)

    written: list[object] = []
    await ask(recorded, script)
    assert [type(record) for record in written] == [RequestStarted]


async def test_a_request_that_is_not_streamed_asks_for_no_stream(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        assert client.request["stream"] is False
        assert "stream_options" not in client.request
        head, body = whole()[: -len(ANSWER)], ANSWER
        await client.send(head)
        await asyncio.sleep(0.3)  # longer than the progress deadline, which is not for it
        await client.send(body)

    ended = await ask(recorded, script, streamed=False, limits=replace(LIMITS, progress_s=0.1))
    assert (ended.outcome, ended.tokens, ended.usage_tokens, ended.damaged) == ("completed", 1, 2, None)


@pytest.mark.parametrize(
    ("ending", "note"),
    [
        ("hold", "did not end after the finish reason"),
        ("close", "the connection broke after the finish reason"),
        ("reset", "the connection broke after the finish reason"),
        ("garbage", "what followed the finish reason was not HTTP"),
    ],
)
async def test_nothing_after_a_finish_reason_undoes_it(recorded: Recorded, ending: str, note: str) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token() + FINISH + DONE)
        match ending:
            case "hold":
                await client.gone()
            case "reset":
                await asyncio.sleep(0.1)  # a reset overtakes what the kernel has not yet handed over
                client.reset()
            case "garbage":
                await client.send(b"zz\r\n")
            case _:
                pass

    limits = Limits(connect_s=1, progress_s=0.3, total_s=20)
    ended = await ask(recorded, script, limits=limits)
    assert (ended.outcome, ended.unclean_end) == ("completed", note)
    assert ended.ended_t - ended.started_t < min(GRACE_S, 2.0), (
        "the grace is the shorter of 5 s and the progress deadline"
    )


async def test_keep_alives_after_the_finish_reason_do_not_hold_the_client(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token() + FINISH)
        while True:
            await client.send(chunk(b": keep-alive\n\n"))
            await asyncio.sleep(0.02)

    ended = await ask(recorded, script, limits=Limits(connect_s=1, progress_s=0.3, total_s=20))
    assert (ended.outcome, ended.unclean_end) == ("completed", "did not end after the finish reason")


async def test_keep_alives_are_no_progress(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        while True:
            await client.send(chunk(b": keep-alive\n\n"))
            await asyncio.sleep(0.02)

    ended = await ask(recorded, script, limits=Limits(connect_s=1, progress_s=0.4, total_s=20))
    assert (ended.outcome, ended.how) == ("lost", "hung")
    assert ended.last_progress_t is not None
    assert 0.39 < ended.ended_t - ended.last_progress_t < 1.0


async def test_tokens_put_the_progress_deadline_off_until_the_total_one(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD)
        while True:
            await client.send(token())
            await asyncio.sleep(0.1)

    ended = await ask(recorded, script, limits=Limits(connect_s=1, progress_s=0.4, total_s=1.0))
    assert (ended.outcome, ended.how) == ("lost", "overdue")
    assert 0.99 < ended.ended_t - ended.started_t < 1.6


async def test_an_advancing_prefill_puts_the_progress_deadline_off(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD)
        for done in range(1, 9):
            await client.send(chunk(b': prefill_progress {"P":{"processed_tokens":%d,"total_tokens":9}}\n\n' % done))
            await asyncio.sleep(0.1)
        await client.send(token() + FINISH + DONE + END)

    ended = await ask(recorded, script, limits=Limits(connect_s=1, progress_s=0.5, total_s=5))
    assert ended.outcome == "completed"


async def test_an_error_status_whose_body_never_comes(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(b"HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\n")
        await client.gone()

    ended = await ask(recorded, script, limits=Limits(connect_s=1, progress_s=0.2, total_s=20))
    assert (ended.outcome, ended.status) == ("error", 503)
    assert ended.ended_t - ended.started_t < 2


async def test_a_plain_error_object_on_a_streamed_request(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        body = b'{"error":{"message":"overloaded"}}'
        await client.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        await client.send(body)

    ended = await ask(recorded, script)
    assert ended.outcome == "error"
    assert "overloaded" in ended.evidence


async def test_refused(recorded: Recorded) -> None:
    made = call(f"http://127.0.0.1:{free_port()}")
    ended = await perform(made, LoadTransport(recorded.journal.now), recorded.journal)
    assert (ended.outcome, ended.connected_t, ended.status) == ("error", None, None)
    assert ended.evidence.startswith("no connection: ConnectError")


@contextmanager
def full_backlog() -> Generator[str]:
    """An address whose connections are neither accepted nor refused."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            with suppress(BlockingIOError):
                each.connect(listening.getsockname())
        time.sleep(0.05)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for each in waiting:
            each.close()


async def test_not_connected_in_time_is_an_error_not_a_loss(recorded: Recorded) -> None:
    for number, limits in enumerate((Limits(0.3, 1.0, 5.0), Limits(3.0, 0.3, 5.0), Limits(3.0, 1.0, 0.3))):
        with full_backlog() as url:
            made = call(url, limits=limits, number=number)
            ended = await perform(made, LoadTransport(recorded.journal.now), recorded.journal)
        assert (ended.outcome, ended.how, ended.connected_t) == ("error", None, None)
        assert "ConnectTimeout" in ended.evidence
        assert 0.25 < ended.ended_t - ended.started_t < 1.2


async def test_evidence_is_bounded_and_holds_the_end_of_the_body(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token("é" * 400) * 30 + token("the last") + END)

    ended = await ask(recorded, script)
    assert (ended.outcome, ended.how) == ("lost", "truncated")
    assert "the last" in ended.evidence
    assert ended.evidence.startswith("a clean end without finish reason")
    assert 500 < len(ended.evidence.encode()) <= 600


async def test_a_flood_is_read_no_faster_than_it_is_understood(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD)
        for _ in range(40):
            await client.send(chunk(b": " + b"x" * 500_000 + b"\n\n"))
        await client.send(token() + FINISH + DONE + END)

    exchanges: list[Exchange] = []
    async with serving(script) as server:
        transport = LoadTransport(recorded.journal.now)
        request = httpx.Request("POST", call(server.url).url, content=b"{}", extensions={"exchange": exchanges.append})
        response = await transport.handle_async_request(request)
        await until(lambda: sum(len(data) for _, data in exchanges[0].arrived) > MAX_UNREAD_BYTES)
        await asyncio.sleep(0.2)
        assert sum(len(data) for _, data in exchanges[0].arrived) < 2 * MAX_UNREAD_BYTES, "of 20 MB"
        size = sum([len(data) async for data in response.aiter_raw()])
        await response.aclose()
    assert size > 40 * 500_000


async def test_what_waits_to_be_read_is_read_before_a_deadline_strikes(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        for _ in range(8):
            await asyncio.sleep(0.25)
            await client.send(token("slow and steady"))
        await client.send(FINISH + DONE + END)

    monkeypatch.setattr("rig.load.transport.HELD_S", 60.0)
    ended = await ask(recorded, script, limits=replace(LIMITS, progress_s=1.2, total_s=30.0))
    assert (ended.outcome, ended.tokens, ended.gaps.count) == ("completed", 9, 8)
    assert 0.2 < ended.gaps.sum_s / 8 < 0.6, "each has the time at which it came"


async def test_an_outcome_that_waits_to_be_read_is_seen_soon(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        await asyncio.sleep(0.05)
        await client.send(FINISH)
        await client.gone()

    ended = await ask(recorded, script, limits=Limits(3.0, progress_s=30.0, total_s=30.0, end_s=0.2))
    assert (ended.outcome, ended.unclean_end) == ("completed", "did not end after the finish reason")
    assert ended.t - ended.started_t < 10.0, "long before the deadlines, which are all there would be without"


async def test_a_request_leaves_nothing_to_the_garbage_collector(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(SOUND)

    async with serving(script) as server:
        transport = LoadTransport(recorded.journal.now)
        await perform(call(server.url), transport, recorded.journal)
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await perform(call(server.url), transport, recorded.journal)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            left = [one for one in gc.garbage if isinstance(one, Exchange)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert left == []


async def test_a_cancelled_request_has_a_start_and_no_end(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        arrived.set()
        await client.gone()
        left.set()

    arrived, left = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(ask(recorded, script))
    await asyncio.wait_for(arrived.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [type(record) for record in recorded.records] == [RequestStarted]


async def test_cancelling_closes_the_connection(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD + token())
        arrived.set()
        await client.gone()
        left.set()

    arrived, left = asyncio.Event(), asyncio.Event()
    async with serving(script) as server:
        made = call(server.url)
        task = asyncio.create_task(perform(made, LoadTransport(recorded.journal.now), recorded.journal))
        await asyncio.wait_for(arrived.wait(), 5)
        task.cancel()
        await asyncio.wait_for(left.wait(), 5)


async def test_a_journal_that_cannot_be_written_is_raised(recorded: Recorded) -> None:
    async def script(client: Client) -> None:
        await client.send(HEAD)
        recorded.journal.close()
        await client.send(token() + FINISH + DONE + END)

    with pytest.raises(JournalError):
        await ask(recorded, script)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_arrived_while_the_rig_was_stalled_counts(recorded: Recorded, loop: str) -> None:
    """The rig itself stands still beyond the progress deadline; the answer has arrived meanwhile."""
    listening = socket.create_server(("127.0.0.1", 0))
    answered = threading.Event()

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(HEAD + token())
            time.sleep(0.1)
            stall.set()
            # more than one read takes, so that the token is not seen in the first turn after the stall
            connection.sendall(chunk(b": " + b"x" * 1000 + b"\n\n") * 600 + token() + FINISH + DONE + END)
            answered.set()
            connection.recv(1)

    stall = threading.Event()

    async def main() -> RequestEnded:
        async def stand_still() -> None:
            await until(stall.is_set)
            answered.wait(5)
            time.sleep(0.8)  # noqa: ASYNC251 (the stall is the point)

        made = call(f"http://127.0.0.1:{listening.getsockname()[1]}", limits=Limits(1, 0.4, 20))
        standing = asyncio.create_task(stand_still())
        ended = await perform(made, LoadTransport(recorded.journal.now), recorded.journal)
        await standing
        return ended

    server = threading.Thread(target=answer)
    server.start()
    try:
        ended = uvloop.run(main()) if loop == "uvloop" else asyncio.run(main())
    finally:
        listening.close()
        server.join(5)
    assert (ended.outcome, ended.tokens) == ("completed", 2)
