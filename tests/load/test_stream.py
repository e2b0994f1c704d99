from __future__ import annotations

import json
from typing import Any

import pytest

from rig.load.sketch import GapSketch
from rig.load.stream import BodyReader, StreamReader, reader_for


def event(delta: dict[str, Any], **choice: Any) -> bytes:
    return f"data: {json.dumps({'id': 'x', 'choices': [{'index': 0, 'delta': delta, **choice}]})}\n\n".encode()


def data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


@pytest.mark.parametrize(
    ("delta", "tokens"),
    [
        ({"content": "a"}, 1),
        ({"role": "assistant"}, 0),
        ({"role": "assistant", "content": ""}, 0),
        ({"content": None}, 0),
        ({"reasoning_content": "hm"}, 1),
        ({"reasoning": "hm"}, 1),
        ({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}, 1),
        ({}, 0),
    ],
)
def test_tokens_are_deltas_that_bear_content(delta: dict[str, Any], tokens: int) -> None:
    reader = StreamReader()
    reader.feed([event(delta)], [1.5])
    assert (reader.heard.tokens, reader.heard.blanks) == (tokens, 1 - tokens)
    assert reader.last_progress_t == reader.first_token_t == (1.5 if tokens else None)


def test_gaps_between_tokens() -> None:
    reader = StreamReader()
    for t in (1.0, 1.1, 1.3):
        reader.feed([event({"content": "a"})], [t])
    reader.feed([event({"content": ""})], [5.0])
    reader.feed([event({"content": "a"}) * 2], [6.3])
    gaps = reader.gaps()
    assert (gaps.count, round(gaps.sum_s, 6), round(gaps.max_s, 6)) == (4, 5.3, 5.0)
    sketch = GapSketch()
    sketch.merge(gaps.sketch)
    assert sum(gaps.sketch.values()) == 4
    assert sketch.quantile(1.0) == pytest.approx(5.0, rel=0.02)
    assert sketch.quantile(0.5) == pytest.approx(0.1, rel=0.02)
    assert sketch.quantile(0.25) == pytest.approx(1e-6, rel=0.05), "two tokens in one read have no gap"
    assert (reader.first_token_t, reader.last_token_t) == (1.0, 6.3)


def prefill(done: int) -> bytes:
    return b': prefill_progress {"PrefillProgressChunk":{"processed_tokens":%d,"total_tokens":20}}\n\n' % done


def test_only_tokens_and_an_advancing_prefill_are_progress() -> None:
    reader = StreamReader()
    steps = [
        (b": keep-alive\n\n", None),
        (prefill(0), None),
        (prefill(10), 3.0),
        (prefill(10), 3.0),
        (prefill(5), 3.0),
        (b": keep-alive\n\n", 3.0),
        (prefill(20), 7.0),
        (event({"role": "assistant"}), 7.0),
        (event({"content": "a"}), 9.0),
        (b'data: {"usage":{"completion_tokens":1}}\n\n', 9.0),
    ]
    for t, (sent, progress_t) in enumerate(steps, start=1):
        reader.feed([sent], [float(t)])
        assert reader.last_progress_t == progress_t, sent


@pytest.mark.parametrize(
    ("sent", "finish", "error", "garbage"),
    [
        (event({}, finish_reason="stop"), "stop", False, False),
        (event({"content": "a"}, finish_reason="length"), "length", False, False),
        (event({}, finish_reason=None), None, False, False),
        (event({}, finish_reason="error"), None, True, False),
        (data({"error": {"message": "runner died", "code": 500}}), None, True, False),
        (data({"error": "runner died"}), None, True, False),
        (data({"choices": "odd", "error": "runner died"}), None, True, False),
        (b'event: error\ndata: {"message":"runner died"}\n\n', None, True, False),
        (b"data: {broken\n\n", None, False, True),
        (b"data: \xff\xfe\n\n", None, False, True),
        (data({"choices": "odd"}), None, False, True),
        (b"<html>\n", None, False, True),
        (b"data: [DONE]\n\n", None, False, False),
        (data({}), None, False, False),
        (data({"choices": [], "usage": {"completion_tokens": 4}}), None, False, False),
        (data({"choices": None, "usage": None, "id": 7}), None, False, False),
        # the first thing that decides stays
        (event({}, finish_reason="stop") + data({"error": "late"}), "stop", False, False),
        (event({}, finish_reason="stop") + b"data: {broken\n\n", "stop", False, False),
        (data({"error": "early"}) + event({}, finish_reason="stop"), None, True, False),
        (b"data: {broken\n\n" + event({}, finish_reason="stop"), None, False, True),
    ],
)
def test_what_decides(sent: bytes, finish: str | None, error: bool, garbage: bool) -> None:  # noqa: FBT001 (parameters of the test)
    reader = StreamReader()
    reader.feed([sent], [1.0])
    heard = reader.heard
    assert (heard.finish_reason, heard.error is not None, heard.garbage is not None) == (finish, error, garbage)


def test_usage_and_id_are_kept() -> None:
    reader = StreamReader()
    reader.feed([event({"content": "a"}) + data({"choices": [], "usage": {"completion_tokens": 4}})], [1.0])
    assert (reader.heard.response_id, reader.heard.usage_tokens) == ("x", 4)


@pytest.mark.parametrize(("claimed", "kept"), [(10**30, 2**53), (-(10**30), -(2**53)), (2**53, 2**53), (-1, -1)])
def test_a_claim_of_any_number_of_tokens_is_kept_as_one_that_a_column_holds(claimed: int, kept: int) -> None:
    body = json.dumps({"choices": [{"message": {"content": "a"}}], "usage": {"completion_tokens": claimed}}).encode()
    stream, whole = StreamReader(), BodyReader()
    stream.feed([b"data: " + body + b"\n\n"], [1.0])
    whole.feed([body], [1.0])
    whole.end(clean=True)
    assert (stream.heard.usage_tokens, whole.heard.usage_tokens) == (kept, kept)


ANSWER = {
    "id": "y",
    "choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 2},
}


@pytest.mark.parametrize(
    ("body", "finish", "error", "garbage", "size"),
    [
        (json.dumps(ANSWER).encode(), "stop", False, False, True),
        (b'{"choices":[{"message":{"content":"a"}}]}', None, False, False, True),
        (b'{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}', None, True, False, True),
        (b'{"error":{"message":"no"}}', None, True, False, True),
        (b"", None, False, False, False),
        (b" \r\n ", None, False, False, False),
        (b"<html></html>", None, False, True, True),
        (json.dumps(ANSWER).encode()[:-1], None, False, True, True),
    ],
)
def test_whole_answers(body: bytes, finish: str | None, error: bool, garbage: bool, size: bool) -> None:  # noqa: FBT001 (parameters of the test)
    for step in (1, 1000):
        reader = BodyReader()
        for at in range(0, len(body), step):
            reader.feed([body[at : at + step]], [2.0])
        reader.end(clean=True)
        heard = reader.heard
        assert (heard.finish_reason, heard.error is not None, heard.garbage is not None) == (finish, error, garbage)
        assert bool(heard.body_bytes) == size


def test_half_a_body_of_a_broken_connection_is_not_parsed() -> None:
    reader = BodyReader()
    reader.feed([b'{"choices":['], [2.0])
    reader.end(clean=False)
    assert reader.heard.garbage is None


def test_a_body_is_bounded() -> None:
    reader = BodyReader(max_bytes=100)
    for _ in range(50):
        reader.feed([b"x" * 10], [1.0])
    reader.end(clean=True)
    assert reader.heard.garbage == "a body longer than 100 bytes"


@pytest.mark.parametrize(
    ("streamed", "content_type", "kind"),
    [
        (True, "text/event-stream; charset=utf-8", StreamReader),
        (True, "", StreamReader),
        (True, "application/json", BodyReader),
        (True, "text/html; charset=utf-8", BodyReader),
        (False, "application/json", BodyReader),
        (False, "text/event-stream", BodyReader),
    ],
)
def test_the_content_type_says_what_a_streamed_request_got(streamed: bool, content_type: str, kind: type) -> None:  # noqa: FBT001 (a parameter of the test)
    assert isinstance(reader_for(streamed=streamed, content_type=content_type), kind)
