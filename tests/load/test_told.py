from __future__ import annotations

from typing import Any

import pytest

from rig.load.told import finish_of, gave_up, has_message, says_failure


@pytest.mark.parametrize("reason", [None, "", " ", "null", "None", "none"])
def test_a_blank_reason_is_none(reason: str | None) -> None:
    assert finish_of(reason) is None


@pytest.mark.parametrize(
    ("reason", "given_up"),
    [
        *((reason, False) for reason in ("stop", "length", "tool_calls", "function_call", "content_filter")),
        *((reason, False) for reason in ("eos_token", "stop_sequence", "end_turn", "max_tokens", "STOP")),
        *((reason, True) for reason in ("error", "abort", "cancelled", "canceled", "timeout", "overloaded", "unload")),
    ],
)
def test_a_reason_that_is_of_no_whole_answer_gives_the_request_up(reason: str, given_up: bool) -> None:  # noqa: FBT001
    assert finish_of(reason) == reason
    assert gave_up(reason) == given_up


@pytest.mark.parametrize(
    "value",
    [
        {"error": "died"},
        {"error": {"message": "died", "code": None}},
        {"object": "error", "message": "engine died", "code": 500},
        {"type": "error", "message": "overloaded"},
        {"text": "NETWORK ERROR", "error_code": 50001},
        {"error_type": "validation", "error_message": "too long"},
        {"detail": "Model is loading"},
        {"detail": [{"loc": ["body"], "msg": "field required"}]},
        {"code": 500, "msg": "busy", "success": False},
        {"code": -1, "msg": "busy"},
        {"code": "503", "message": "busy"},
        {"status_code": 500, "message": "boom"},
        {"status": 429},
        {"status": "failed"},
        {"success": False},
    ],
)
def test_a_failure_by_any_name(value: dict[str, Any]) -> None:
    assert says_failure(value)
    assert says_failure({"id": "c1", "choices": None, **value})


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"error": None},
        {"error": ""},
        {"error": {"message": "", "code": 0}},
        {"error_code": 0, "errors": []},
        {"object": "chat.completion.chunk", "choices": []},
        {"code": 0, "success": True},
        {"code": 200, "status": "ok"},
        {"status": "queued", "id": "job1"},
        {"message": "queued"},
        {"message": {"role": "assistant", "content": "a"}},
        ["error"],
        "error",
        500,
        None,
    ],
)
def test_no_failure(value: object) -> None:
    assert not says_failure(value)


def test_words_for_the_client() -> None:
    assert has_message({"message": "busy"})
    assert has_message({"msg": "busy"})
    for value in ({"message": ""}, {"message": {"content": "a"}}, {"status": "queued"}, "busy", None):
        assert not has_message(value)
