"""The outcome rules, as literals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rig.load.outcome import End, Heard, decided, judge

FINISHED = Heard(tokens=3, finish_reason="stop", done=True)
HALF = Heard(tokens=3)
NOTHING = Heard()


@pytest.mark.parametrize(
    ("heard", "end", "outcome", "how"),
    [
        (FINISHED, "clean", "completed", None),
        (FINISHED, "broken", "completed", None),
        (FINISHED, "unparsable", "completed", None),
        (FINISHED, "grace", "completed", None),
        (FINISHED, "total", "completed", None),
        (Heard(tokens=3, finish_reason="length"), "clean", "completed", None),
        (HALF, "clean", "lost", "truncated"),
        (Heard(tokens=3, done=True), "clean", "lost", "truncated"),  # [DONE] proves nothing
        (HALF, "broken", "error", None),
        (HALF, "unparsable", "error", None),
        (HALF, "progress", "lost", "hung"),
        (HALF, "total", "lost", "overdue"),
        (NOTHING, "clean", "lost", "empty"),
        (Heard(done=True, body_bytes=14), "clean", "lost", "empty"),
        (NOTHING, "broken", "error", None),
        (NOTHING, "progress", "lost", "hung"),
        (NOTHING, "total", "lost", "hung"),
        (NOTHING, "unconnected", "error", None),
        (Heard(tokens=3, error="runner died"), "clean", "error", None),
        (Heard(tokens=3, error="runner died"), "progress", "error", None),
        (Heard(tokens=3, garbage="{broken"), "clean", "error", None),
        (Heard(blanks=2, body_bytes=300), "clean", "lost", "empty"),
    ],
)
def test_streams(heard: Heard, end: End, outcome: str, how: str | None) -> None:
    judgement = judge(streamed=True, status=200, heard=heard, end=end)
    assert (judgement.outcome, judgement.how) == (outcome, how)
    assert bool(judgement.reason) == (outcome != "completed")


@pytest.mark.parametrize(
    ("heard", "end", "outcome", "how"),
    [
        (Heard(tokens=1, finish_reason="stop", body_bytes=90), "clean", "completed", None),
        (Heard(tokens=1, body_bytes=90), "clean", "lost", "truncated"),
        (Heard(tokens=0, body_bytes=90), "clean", "lost", "truncated"),  # valid JSON, no finish reason, no text
        (NOTHING, "clean", "lost", "empty"),
        (NOTHING, "total", "lost", "hung"),
        (Heard(tokens=1, body_bytes=90), "total", "lost", "hung"),  # not streamed is never overdue
        (NOTHING, "broken", "error", None),
        (Heard(garbage="<html>", body_bytes=90), "clean", "error", None),
        (Heard(error="no", body_bytes=90), "clean", "error", None),
    ],
)
def test_whole_answers(heard: Heard, end: End, outcome: str, how: str | None) -> None:
    judgement = judge(streamed=False, status=200, heard=heard, end=end)
    assert (judgement.outcome, judgement.how) == (outcome, how)


@pytest.mark.parametrize("status", [307, 400, 404, 422, 500, 503])
def test_a_status_that_is_no_success_is_an_error_whatever_the_body_says(status: int) -> None:
    for heard in (FINISHED, HALF, NOTHING):
        for end in ("clean", "broken", "grace"):
            judgement = judge(streamed=True, status=status, heard=heard, end=end)
            assert (judgement.outcome, judgement.reason) == ("error", f"HTTP status {status}")


def test_hung_before_any_response() -> None:
    assert judge(streamed=True, status=None, heard=NOTHING, end="progress").how == "hung"
    assert judge(streamed=False, status=None, heard=NOTHING, end="total").how == "hung"
    assert judge(streamed=True, status=None, heard=NOTHING, end="broken").outcome == "error"


@pytest.mark.parametrize(
    ("end", "done", "streamed", "note"),
    [
        ("clean", True, True, None),
        ("clean", False, True, "ended without [DONE]"),
        ("clean", False, False, None),
        ("broken", True, True, "the connection broke after the finish reason"),
        ("grace", True, True, "did not end after the finish reason"),
    ],
)
def test_what_follows_the_finish_reason_is_noted(end: End, done: bool, streamed: bool, note: str | None) -> None:  # noqa: FBT001 (parameters of the test)
    heard = Heard(tokens=1, finish_reason="stop", done=done)
    assert judge(streamed=streamed, status=200, heard=heard, end=end).unclean_end == note


@pytest.mark.parametrize(
    ("tokens", "blanks", "usage", "streamed", "whole"),
    [
        (5, 0, 5, False, False),
        (5, 1, 5, False, False),  # the last chunk bears the finish reason alone
        (5, 3, 8, False, False),  # three tokens without text of their own
        (5, 3, 9, True, False),
        (5, 0, 4, True, False),
        (5, 0, None, False, False),
        (0, 1, 1, True, True),  # tokens are claimed, and there is nothing of them
        (0, 40, 40, True, True),
        (0, 1, 0, False, False),  # nothing was said, and nothing is claimed
        (0, 1, None, False, False),
    ],
)
def test_damaged(tokens: int, blanks: int, usage: int | None, streamed: bool, whole: bool) -> None:  # noqa: FBT001 (parameters of the test)
    heard = Heard(tokens=tokens, blanks=blanks, usage_tokens=usage, finish_reason="stop", done=True)
    for asked, damaged in ((True, streamed), (False, whole)):
        judgement = judge(streamed=asked, status=200, heard=heard, end="clean")
        assert (judgement.outcome, judgement.damaged is not None) == ("completed", damaged)


@pytest.mark.parametrize(
    ("tokens", "usage", "damaged"),
    [(5, 9, False), (5, 4, False), (0, 4, False), (0, 5, True), (0, 0, False)],
)
def test_chunks_of_a_server_that_holds_bytes_back_are_not_counted(tokens: int, usage: int, damaged: bool) -> None:  # noqa: FBT001 (parameters of the test)
    heard = Heard(tokens=tokens, usage_tokens=usage, finish_reason="stop", done=True)
    judgement = judge(streamed=True, status=200, heard=heard, end="clean", token_a_chunk=False)
    assert (judgement.damaged is not None) is damaged


@pytest.mark.parametrize(
    ("heard", "note"),
    [
        (Heard(after='{"error": "late"}'), 'after the finish reason the server said: {"error": "late"}'),
        (Heard(after="late", late_tokens=2), "after the finish reason the server said: late"),
        (Heard(late_tokens=2), "2 tokens came after the finish reason"),
    ],
)
def test_what_was_said_after_the_finish_reason_is_noted_whatever_the_end(heard: Heard, note: str) -> None:
    said = replace(heard, tokens=4, finish_reason="stop", done=True)
    for end in ("clean", "broken", "grace"):
        judgement = judge(streamed=True, status=200, heard=said, end=end)
        assert (judgement.outcome, judgement.unclean_end) == ("completed", note)


@pytest.mark.parametrize(
    ("status", "heard", "reason"),
    [
        (401, Heard(error='{"error": "no key"}'), 'HTTP status 401: {"error": "no key"}'),
        (401, Heard(garbage="Unauthorized"), "HTTP status 401: Unauthorized"),
        (404, Heard(remark='{"message": "no route"}'), 'HTTP status 404: {"message": "no route"}'),
        (200, Heard(remark='{"message": "busy"}'), 'instead of an answer the server said: {"message": "busy"}'),
        (202, NOTHING, "HTTP status 202 and no answer"),
        (204, NOTHING, "HTTP status 204 and no answer"),
    ],
)
def test_what_the_client_was_told_is_in_the_reason(status: int, heard: Heard, reason: str) -> None:
    for streamed in (True, False):
        judgement = judge(streamed=streamed, status=status, heard=heard, end="clean")
        assert (judgement.outcome, judgement.reason) == ("error", reason)


def test_words_without_an_end_are_no_answer_either() -> None:
    heard = Heard(tokens=3, remark='{"message": "queued"}')
    assert judge(streamed=True, status=200, heard=heard, end="progress").how == "hung"
    assert judge(streamed=True, status=200, heard=heard, end="total").how == "overdue"


def test_decided() -> None:
    assert not decided(None, NOTHING)
    assert not decided(200, HALF)
    assert decided(404, NOTHING)
    assert decided(200, FINISHED)
    assert decided(200, Heard(error="x"))
    assert decided(200, Heard(garbage="x"))
