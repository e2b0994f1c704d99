from __future__ import annotations

import json
from typing import Any

import pytest

from rig.load.opening import Opening
from rig.load.sketch import GapSketch
from rig.load.stream import StreamReader
from rig.load.whole import BodyReader


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
        (event({}, finish_reason="abort"), None, True, False),
        (event({}, finish_reason="eos_token"), "eos_token", False, False),
        (event({"content": "a"}, finish_reason=""), None, False, False),
        (event({"content": "a"}, finish_reason="None"), None, False, False),
        (event({}, error={"message": "runner died"}), None, True, False),
        (data({"error": {"message": "", "code": None}}), None, False, False),
        (data({"error": ""}), None, False, False),
        (data({"choices": None, "detail": "Model is loading"}), None, True, False),
        (data({"choices": "odd", "detail": "Model is loading"}), None, True, False),
        (b'{"error": "in the middle, and no event"}\n', None, True, False),
        (b'error: {"code": 500}\n\n', None, True, False),
        (b"data:\n\n", None, False, False),
        (b"event: ping\ndata:  \n\n", None, False, False),
        (data({"choices": [], "prompt_filter_results": []}), None, False, False),
        (b"data: " + b"[" * 100_000 + b"\n\n", None, False, True),
        (b'data: {"choices": ' + b"[" * 100_000 + b"\n\n", None, False, True),
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


@pytest.mark.parametrize(
    ("after", "said", "late"),
    [
        (data({"error": "late"}), '{"error": "late"}', 0),
        (b"data: {broken\n\n", "{broken", 0),
        (event({}, finish_reason="error"), 'finish reason error in {"id"', 0),
        (event({"content": "b"}) * 2, None, 2),
        (event({"content": "b"}, finish_reason="stop") * 2, None, 2),
        (event({}, finish_reason="stop"), None, 0),
        (data({"choices": [], "usage": {"completion_tokens": 1}}) + b"data: [DONE]\n\n", None, 0),
    ],
)
def test_what_follows_a_finish_reason_is_kept(after: bytes, said: str | None, late: int) -> None:
    for together in (True, False):
        reader = StreamReader()
        begun = event({"content": "a"}, finish_reason="stop")
        for sent in [begun + after] if together else [begun, after]:
            reader.feed([sent], [1.0])
        reader.end(clean=True)
        heard = reader.heard
        assert heard.finish_reason == "stop"
        assert heard.after == said if said is None else (heard.after or "").startswith(said)
        assert heard.late_tokens == late


@pytest.mark.parametrize(
    ("last", "finish", "error", "garbage", "done"),
    [
        (b"data: [DONE]", None, None, None, True),
        (b'data: {"error": "died"}', None, '{"error": "died"}', None, False),
        (b'data: {"error": "died"}\r', None, '{"error": "died"}', None, False),
        (b'data: {"error": "died"}\n', None, '{"error": "died"}', None, False),
        (b"event: error\ndata: overloaded", None, "overloaded", None, False),
        (event({}, finish_reason="stop")[:-2], "stop", None, None, False),
        (event({}, finish_reason="stop")[:-4], None, None, None, False),  # cut: it has not been said
        (b"da", None, None, None, False),
        (b"upstream died", None, None, "upstream died", False),
    ],
)
def test_the_last_event_needs_no_blank_line_if_the_end_is_clean(
    last: bytes,
    finish: str | None,
    error: str | None,
    garbage: str | None,
    done: bool,  # noqa: FBT001
) -> None:
    for step in (1, 1000):
        for clean in (True, False):
            reader = StreamReader()
            sent = event({"content": "a"}) + last
            for at in range(0, len(sent), step):
                reader.feed([sent[at : at + step]], [1.0])
            reader.end(clean=clean)
            heard = reader.heard
            assert heard.error == error, "an error is told in any case"
            expected = (finish, garbage, done) if clean else (None, None, False)
            assert (heard.finish_reason, heard.garbage, heard.done) == expected


def test_words_before_a_token_are_no_last_words() -> None:
    for sent, remark in (
        (data({"message": "busy"}), '{"message": "busy"}'),
        (data({"message": "queued"}) + event({"content": "a"}), None),
        (event({"content": "a"}) + data({"message": "busy"}), '{"message": "busy"}'),
    ):
        reader = StreamReader()
        reader.feed([sent], [1.0])
        reader.end(clean=True)
        assert (reader.heard.remark, reader.heard.error) == (remark, None)


def test_halves_of_a_character_in_two_chunks_are_tokens() -> None:
    reader, whole = StreamReader(), BodyReader()
    reader.feed([rb'data: {"id":"\ud83d","choices":[{"delta":{"content":"\ud83d"}}]}' + b"\n\n"], [1.0])
    reader.feed([rb'data: {"choices":[{"delta":{"content":"\uDE00"}}]}' + b"\n\n"], [2.0])
    whole.feed([rb'{"choices":[{"message":{"content":"\ud83d"},"finish_reason":"length"}]}'], [1.0])
    whole.end(clean=True)
    assert (reader.heard.tokens, reader.heard.garbage) == (2, None)
    assert (whole.heard.tokens, whole.heard.finish_reason) == (1, "length")
    assert json.dumps(reader.heard.response_id, ensure_ascii=False).encode(), "a journal can hold it"


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
        (b'{"choices":[{"message":{"content":"a"},"finish_reason":"abort"}]}', None, True, False, True),
        (b'{"choices":[{"message":{"content":"a"},"finish_reason":""}]}', None, False, False, True),
        (b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"error":{}}', "stop", False, False, True),
        (b'{"detail":"Model is loading"}', None, True, False, True),
        (b'[{"error":{"message":"no"}}]', None, False, True, True),
        (b"{}", None, False, False, True),
        (b'{"choices":[]}', None, False, False, True),
        (b"[" * 100_000, None, False, True, True),
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


def test_a_whole_body_without_an_answer_is_what_the_server_said_instead() -> None:
    for body, remark in ((b'{"id": "job1", "status": "queued"}', True), (b"{}", False), (b'{"choices": []}', False)):
        reader = BodyReader()
        reader.feed([body], [2.0])
        reader.end(clean=True)
        assert (reader.heard.remark == body.decode()) == remark
        assert (reader.heard.error, reader.heard.finish_reason) == (None, None)


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
    assert reader.heard.garbage == "a body longer than 100 bytes, the rig's own limit"


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("step", [1, 2, 1000])
@pytest.mark.parametrize(
    ("streamed", "body", "kind", "rest"),
    [
        (True, b"data: {}\n\n", StreamReader, b"data: {}\n\n"),
        (True, b": keep-alive\n\n", StreamReader, b": keep-alive\n\n"),
        (True, b"\r\n\ndata: {}\n\n", StreamReader, b"data: {}\n\n"),
        (True, MARK + b"data: {}\n\n", StreamReader, b"data: {}\n\n"),
        (True, MARK + MARK + b"data: {}\n\n", StreamReader, MARK + b"data: {}\n\n"),  # one mark, no more
        (True, b" " + MARK + b"data: {}\n\n", StreamReader, MARK + b"data: {}\n\n"),  # at the beginning alone
        (True, b'{"error": "no"}', BodyReader, b'{"error": "no"}'),
        (True, b' \n[{"error": "no"}]', BodyReader, b'[{"error": "no"}]'),
        (True, b"<html>", BodyReader, b"<html>"),
        (True, MARK + b"{}", BodyReader, b"{}"),
        (True, b"upstream died", StreamReader, b"upstream died"),
        (False, b"data: {}\n\n", BodyReader, b"data: {}\n\n"),
        (False, MARK + b"{}", BodyReader, b"{}"),
    ],
)
def test_the_first_character_says_what_a_body_is(
    step: int,
    streamed: bool,  # noqa: FBT001
    body: bytes,
    kind: type,
    rest: bytes,
) -> None:
    opening = Opening(streamed=streamed)
    for at in range(0, len(body), step):
        opened = opening.take(body[at : at + step])
        if opened is not None:
            reader, first = opened
            assert type(reader) is kind
            assert first + body[at + step :] == rest
            return
    raise AssertionError("it was never opened")


def test_white_space_is_held_in_no_memory() -> None:
    opening = Opening(streamed=True)
    for _ in range(1000):
        assert opening.take(b" \n" * 500) is None
    assert all(len(value) <= 1 for value in vars(opening).values() if isinstance(value, bytes))
