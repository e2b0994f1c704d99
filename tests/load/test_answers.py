"""What the rig makes of the answers that servers give: real sockets, bytes as they were seen in the field."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from rig.journal.records import RequestEnded
from rig.load.request import perform
from rig.load.transport import LoadTransport
from tests.load.calls import call
from tests.load.conftest import Recorded
from tests.load.servers import ANSWER, DONE, END, FINISH, HEAD, Client, chunk, serving, token

MARK = b"\xef\xbb\xbf"
TOKENS = token("one ") + token("two ")
SOUND_BODY = (
    b"".join(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % text for text in (b"a", b"b"))
    + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def finishing(reason: object, content: str = "a") -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return chunk(b"data: %s\n\n" % json.dumps({"id": "x", "choices": [choice]}).encode())


def said(value: object) -> bytes:
    return chunk(b"data: %s\n\n" % json.dumps(value).encode())


def whole(value: object, content_type: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n{more}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answered(recorded: Recorded, answer: bytes, *, streamed: bool) -> RequestEnded:
    async def script(client: Client) -> None:
        await client.send(answer)

    async with serving(script) as server:
        made = call(server.url, streamed=streamed)
        return await perform(made, LoadTransport(recorded.journal.now), recorded.journal)


SOUND: dict[str, bytes] = {
    "a mark at the beginning": HEAD + chunk(MARK + token()[3:-2]) + token() + FINISH + DONE + END,
    "a mark in two chunks": HEAD + chunk(MARK[:1]) + chunk(MARK[1:]) + TOKENS + FINISH + DONE + END,
    "events as application/json": HEAD.replace(b"text/event-stream", b"application/json")
    + TOKENS
    + FINISH
    + DONE
    + END,
    "events as text/html": HEAD.replace(b"text/event-stream", b"text/html") + TOKENS + FINISH + DONE + END,
    "events of no type": HEAD.replace(b"content-type: text/event-stream\r\n", b"") + TOKENS + FINISH + DONE + END,
    "halves of a character": HEAD
    + chunk(rb'data: {"choices":[{"delta":{"content":"\ud83d"}}]}' + b"\n\n")
    + chunk(rb'data: {"choices":[{"delta":{"content":"\ude00"}}]}' + b"\n\n")
    + FINISH
    + DONE
    + END,
    "a head with bare line feeds": b"HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n" + SOUND_BODY,
    "a head with one bare line feed": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\n\r\n" + SOUND_BODY,
    "an empty heartbeat": HEAD + chunk(b"data:\n\n") + TOKENS + chunk(b"data: \n\n") + FINISH + DONE + END,
    "an empty error": HEAD + said({"error": {}}) + TOKENS + said({"error": {"message": ""}}) + FINISH + DONE + END,
    "two megabytes in a line": HEAD + token("x" * 2_000_000) + token() + FINISH + DONE + END,
    "a last event without its blank line": HEAD + TOKENS + FINISH + chunk(b"data: [DONE]") + END,
    "a reason of another dialect": HEAD + token() + finishing("eos_token") + DONE + END,
}


@pytest.mark.parametrize("name", SOUND)
async def test_sound_streams_are_completed(recorded: Recorded, name: str) -> None:
    ended = await answered(recorded, SOUND[name], streamed=True)
    assert (ended.outcome, ended.tokens, ended.evidence) == ("completed", 2, "")
    assert ended.first_token_t is not None
    assert (ended.unclean_end, ended.damaged) == (None, None)


async def test_a_mark_before_a_whole_answer(recorded: Recorded) -> None:
    ended = await answered(recorded, whole(MARK + ANSWER), streamed=False)
    assert (ended.outcome, ended.tokens, ended.finish_reason) == ("completed", 1, "stop")


BLANKS = ("", "null", "None", "none")


@pytest.mark.parametrize("reason", BLANKS)
async def test_a_blank_finish_reason_finishes_nothing(recorded: Recorded, reason: str) -> None:
    cut = HEAD + finishing(reason) + finishing(reason)
    ended = await answered(recorded, cut + END, streamed=True)
    assert (ended.outcome, ended.how, ended.tokens, ended.finish_reason) == ("lost", "truncated", 2, None)
    broken = await answered(recorded, cut, streamed=True)
    assert (broken.outcome, broken.tokens) == ("error", 2)
    assert broken.evidence.startswith("the connection broke")
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": reason}]}
    ended = await answered(recorded, whole(body), streamed=False)
    assert (ended.outcome, ended.how) == ("lost", "truncated")


@pytest.mark.parametrize("reason", ["abort", "cancelled", "timeout", "error"])
async def test_a_request_that_the_server_gave_up_is_an_error(recorded: Recorded, reason: str) -> None:
    streamed = await answered(recorded, HEAD + token() + finishing(reason, "") + DONE + END, streamed=True)
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": reason}]}
    plain = await answered(recorded, whole(body), streamed=False)
    for ended in (streamed, plain):
        assert (ended.outcome, ended.tokens, ended.finish_reason) == ("error", 1, None)
        assert ended.evidence.startswith(f"the server said: finish reason {reason} in ")


@pytest.mark.parametrize(
    ("after", "note"),
    [
        (
            said({"error": "engine died"}) + DONE + END,
            'after the finish reason the server said: {"error": "engine died"}',
        ),
        (token() + token() + DONE + END, "2 tokens came after the finish reason"),
        (END, "ended without [DONE]"),
        (b"", "the connection broke after the finish reason"),
        (DONE + END, None),
    ],
)
async def test_what_follows_the_finish_reason_is_said(recorded: Recorded, after: bytes, note: str | None) -> None:
    ended = await answered(recorded, HEAD + token() + FINISH + after, streamed=True)
    assert (ended.outcome, ended.unclean_end) == ("completed", note)


@pytest.mark.parametrize("streamed", [True, False])
async def test_tokens_that_are_claimed_and_not_there(recorded: Recorded, streamed: bool) -> None:  # noqa: FBT001
    usage: dict[str, Any] = {"usage": {"completion_tokens": 5}}
    if streamed:
        answer = HEAD + FINISH + said({"choices": [], **usage}) + DONE + END
    else:
        answer = whole({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}], **usage})
    ended = await answered(recorded, answer, streamed=streamed)
    assert (ended.outcome, ended.damaged) == ("completed", "no content arrived, usage says 5 tokens")


TOLD: dict[str, tuple[bytes, str]] = {
    "object": (HEAD + TOKENS + said({"object": "error", "message": "died", "code": 500}) + DONE + END, "died"),
    "error_code": (HEAD + TOKENS + said({"text": "NETWORK ERROR", "error_code": 50001}) + DONE + END, "NETWORK ERROR"),
    "error_type": (HEAD + said({"choices": None, "error_type": "Bad", "error_message": "long"}) + DONE + END, "long"),
    "status_code": (HEAD + said({"status_code": 500, "message": "boom"}) + DONE + END, "boom"),
    "message alone": (HEAD + said({"message": "no slot is free"}) + DONE + END, "no slot is free"),
    "detail": (whole({"detail": "Model is loading"}), "Model is loading"),
    "code and msg": (whole({"code": 500, "msg": "busy", "success": False}), "busy"),
    "queued": (whole({"id": "job1", "status": "queued"}, status="202 Accepted"), "queued"),
    "accepted": (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", "HTTP status 202"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "HTTP status 204"),
    "no line end": (HEAD + TOKENS + chunk(b'data: {"error": {"message": "engine died"}}') + END, "engine died"),
    "no blank line": (HEAD + TOKENS + chunk(b'event: error\ndata: {"message":"overloaded"}') + END, "overloaded"),
    "a field error": (HEAD + TOKENS + chunk(b'error: {"message":"slot died"}\n\n') + END, "slot died"),
    "JSON as events": (whole({"error": {"message": "prompt too long"}}, "text/event-stream"), "prompt too long"),
    "words as events": (whole(b"upstream died", "text/event-stream"), "upstream died"),
    "HTML as events": (whole(b"<html>Bad gateway</html>", "text/event-stream"), "Bad gateway"),
    "401": (whole({"error": {"message": "wrong key"}}, status="401 Unauthorized"), "wrong key"),
    "401 in words": (whole(b"wrong key", "text/plain", status="401 Unauthorized"), "wrong key"),
    "a redirect": (whole(b"", status="307 Moved", more="location: http://h:9/v1\r\n"), "Location: http://h:9/v1"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
async def test_what_the_client_is_told_is_an_error_with_the_words_as_its_reason(recorded: Recorded, name: str) -> None:
    answer, words = TOLD[name]
    ended = await answered(recorded, answer, streamed=True)
    assert (ended.outcome, ended.how) == ("error", None)
    assert words in ended.evidence.partition(" | ")[0]
    assert ended.evidence.count(words) == 1 or answer.startswith(HEAD), "nothing is quoted twice"


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_body_in_an_encoding_that_was_not_asked_for_is_not_quoted(
    recorded: Recorded,
    streamed: bool,  # noqa: FBT001
) -> None:
    answer = whole(gzip.compress(SOUND_BODY), "text/event-stream", more="content-encoding: gzip\r\n")
    ended = await answered(recorded, answer, streamed=streamed)
    assert ended.outcome == "error"
    assert ended.evidence == "cannot be parsed: content-encoding gzip, where identity was asked for"


async def test_a_limit_of_the_rigs_own_is_called_that(recorded: Recorded) -> None:
    ended = await answered(recorded, HEAD + token("x" * 17_000_000) + FINISH + DONE + END, streamed=True)
    assert ended.outcome == "error"
    assert "longer than 16777216 bytes, the rig's own limit for an event" in ended.evidence


async def test_endless_nesting_is_an_answer_that_cannot_be_parsed(recorded: Recorded) -> None:
    for streamed, answer in (
        (True, HEAD + chunk(b"data: " + b"[" * 100_000 + b"\n\n") + END),
        (False, whole(b"[" * 100_000)),
    ):
        ended = await answered(recorded, answer, streamed=streamed)
        assert ended.outcome == "error"
        assert ended.evidence.startswith("cannot be parsed: [[[")
