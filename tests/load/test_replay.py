"""Captured answers of a real cluster, through the pure parser and through real sockets: each gives its outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, cast

import pytest

from rig.journal.records import RequestEnded
from rig.load.deadlines import Limits
from rig.load.http1 import ResponseParser
from rig.load.opening import Opening
from rig.load.outcome import End, Heard, Judgement, decided, judge
from rig.load.request import perform
from rig.load.stream import Reader
from rig.load.transport import LoadTransport
from tests.load.calls import call
from tests.load.captures import (
    EXPECTED,
    PROGRESS_S,
    TOTAL_PLAIN_S,
    TOTAL_STREAM_S,
    Capture,
    captures,
    framed,
    load_capture,
)
from tests.load.conftest import Recorded
from tests.load.servers import Client, serving

FASTER = 40.0  # the replay through sockets is so much faster than the capture
CAPTURES = captures()
STREAMS = [capture for capture in CAPTURES if capture.streamed and b"chunked" in capture.head()]


def replay(pieces: Iterable[tuple[float, bytes]], *, streamed: bool, ending: str) -> tuple[Judgement, Heard]:
    """Pure: the outcome under the deadlines of the table, with times as captured."""
    parser, reader, last_t = ResponseParser(), cast("Reader | None", None), 0.0
    opening = Opening(streamed=streamed)
    for t, data in pieces:
        body = b"".join(parser.feed(data))
        heard = Heard() if reader is None else reader.heard
        progress_t = 0.0 if reader is None else reader.last_progress_t or 0.0
        if streamed and not decided(parser.status, heard) and t - progress_t > PROGRESS_S:
            return _judged(parser, reader, streamed=streamed, end="progress")
        if reader is None:
            opened = opening.take(body)
            reader, body = (None, b"") if opened is None else opened
        if reader is not None and body:
            reader.feed([body], [t])
        last_t = t
    assert last_t < (TOTAL_STREAM_S if streamed else TOTAL_PLAIN_S)
    if parser.complete:
        end: End = "clean"
    elif ending == "hold":
        end = "progress" if streamed else "total"
    else:
        end = "broken"
    return _judged(parser, reader, streamed=streamed, end=end)


def _judged(parser: ResponseParser, reader: Reader | None, *, streamed: bool, end: End) -> tuple[Judgement, Heard]:
    if reader is not None:
        reader.end(clean=end == "clean")
    heard = Heard() if reader is None else reader.heard
    detail = "connection closed inside the body" if end == "broken" else ""
    return judge(streamed=streamed, status=parser.status, heard=heard, end=end, detail=detail), heard


def _matches(name: str, outcome: str, how: str | None, evidence: str) -> bool:
    expected_outcome, expected_how, word = EXPECTED[name]
    return outcome == expected_outcome and how == expected_how and word in evidence


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_each_capture_gives_its_outcome_however_it_is_cut(capture: Capture) -> None:
    whole, _ = replay(capture.pieces, streamed=capture.streamed, ending=capture.ending)
    assert _matches(capture.name, whole.outcome, whole.how, whole.reason), whole
    for seed in (*range(10), None):
        judgement, _ = replay(capture.rechunked(seed), streamed=capture.streamed, ending=capture.ending)
        assert judgement == whole, f"seed {seed}"


def test_tokens_and_usage_are_read_from_a_capture() -> None:
    """`stream_over_join` in full had 500 tokens; 400-odd of its chunks are left out of the capture."""
    capture = load_capture("stream_over_join")
    _, heard = replay(capture.pieces, streamed=True, ending="close")
    with_text = sum(b'"content":"' in event and b'"content":""' not in event for event in capture.events())
    assert (heard.tokens, heard.usage_tokens, heard.finish_reason, heard.done) == (with_text, 500, "length", True)
    assert heard.response_id == "b6aad56b-f29b-40a2-95b6-fd76e13c8d1c"


def expected_after(events: list[bytes], *, clean: bool) -> tuple[str, str | None]:
    """What a stream cut after these events must give, decided here without the reader."""
    tokens = 0
    for event in events:
        if not event.startswith(b"data: {"):
            continue
        chunk: dict[str, Any] = json.loads(event[6:])
        if "error" in chunk:
            return "error", None
        choice = chunk["choices"][0]
        if choice.get("finish_reason"):
            return "completed", None
        tokens += bool(choice["delta"].get("content"))
    if not clean:
        return "error", None
    return "lost", "truncated" if tokens else "empty"


@pytest.mark.parametrize("capture", STREAMS, ids=lambda capture: capture.name)
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "broken"])
def test_cut_after_every_event(capture: Capture, clean: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    events = capture.events()
    seen: set[tuple[str, str | None]] = set()
    for count in range(len(events) + 1):
        answer = capture.head() + b"".join(map(framed, events[:count])) + (b"0\r\n\r\n" if clean else b"")
        judgement, _ = replay([(0.0, answer)], streamed=True, ending="close")
        expected = expected_after(events[:count], clean=clean)
        assert (judgement.outcome, judgement.how) == expected, f"after {count} events"
        seen.add(expected)
    assert len(seen) > 1 or not clean or not any(event.startswith(b"data: {") for event in events)


def test_cut_inside_an_event_that_event_does_not_count() -> None:
    capture = load_capture("freeze_host_20s_remote_stream")
    body = b"".join(capture.events())
    for at in range(0, len(body), 23):
        cut = body[:at]
        judgement, _ = replay(
            [(0.0, capture.head() + framed(cut) + b"0\r\n\r\n")] if at else [(0.0, capture.head() + b"0\r\n\r\n")],
            streamed=True,
            ending="close",
        )
        whole = [event for event in cut[: cut.rfind(b"\n\n") + 2].split(b"\n\n") if event] if b"\n\n" in cut else []
        assert (judgement.outcome, judgement.how) == expected_after([event + b"\n\n" for event in whole], clean=True), (
            at
        )


async def _through_sockets(recorded: Recorded, capture: Capture, pieces: list[tuple[float, bytes]]) -> RequestEnded:
    async def play(client: Client) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for t, data in pieces:
            if (wait_s := start + t / FASTER - loop.time()) > 0:
                await asyncio.sleep(wait_s)
            await client.send(data)
        if capture.ending == "hold":
            await client.gone()

    total_s = TOTAL_STREAM_S if capture.streamed else TOTAL_PLAIN_S
    limits = Limits(connect_s=3.0, progress_s=PROGRESS_S / FASTER, total_s=total_s / FASTER)
    number = CAPTURES.index(capture) if capture in CAPTURES else 0
    async with serving(play) as server:
        request = call(server.url, streamed=capture.streamed, limits=limits, number=number)
        return await perform(request, LoadTransport(recorded.journal.now), recorded.journal)


@pytest.mark.parametrize("seed", [None, 5], ids=["as captured", "re-chunked"])
async def test_each_capture_through_real_sockets(recorded: Recorded, seed: int | None) -> None:
    pieces = [capture.pieces if seed is None else capture.rechunked(seed) for capture in CAPTURES]
    ends = await asyncio.gather(
        *(_through_sockets(recorded, capture, each) for capture, each in zip(CAPTURES, pieces, strict=True))
    )
    wrong = {
        capture.name: end
        for capture, end in zip(CAPTURES, ends, strict=True)
        if not _matches(capture.name, end.outcome, end.how, end.evidence)
    }
    assert not wrong


@pytest.mark.parametrize("name", ["stream_over_join", "runner_killed_stream"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "broken"])
async def test_cut_after_every_event_through_real_sockets(recorded: Recorded, name: str, clean: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    capture = load_capture(name)
    events = capture.events()
    cuts = [
        capture.head() + b"".join(map(framed, events[:count])) + (b"0\r\n\r\n" if clean else b"")
        for count in range(len(events) + 1)
    ]
    ends = await asyncio.gather(
        *(_through_sockets(recorded, Capture(name, [(0.0, cut)], "close"), [(0.0, cut)]) for cut in cuts)
    )
    expected = [expected_after(events[:count], clean=clean) for count in range(len(events) + 1)]
    assert [(end.outcome, end.how) for end in ends] == expected
