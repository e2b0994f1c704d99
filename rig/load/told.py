"""What the words of a server mean: which finish reasons end an answer, and which objects tell of a failure. Pure.

Servers tell of failures in their own ways, and clients read what is there: `error` (OpenAI, vLLM), `object: error`
(older vLLM), `detail` (FastAPI), `error_type` (TGI), `error_code` (FastChat), `code` with `msg` or `message`
(gateways), `status_code` with `message`, `success: false`. All but the first are looked for only where there are no
`choices`.
"""

from __future__ import annotations

from typing import Any, Final, cast

ENDS: Final = frozenset(
    {
        "stop", "length", "tool_calls", "function_call", "content_filter",  # OpenAI
        "eos", "eos_token", "stop_sequence",  # TGI
        "end_turn", "max_tokens", "tool_use", "refusal", "safety",  # of other dialects, as gateways hand them through
    }
)  # fmt: skip
"""The finish reasons of a whole answer, in lower case. Any other one says that the server gave the request up."""
_BLANK: Final = frozenset({"", "null", "none"})

_FAILURES: Final = ("error", "errors", "error_code", "error_type", "error_message", "error_msg", "detail")
_CODES: Final = ("code", "status_code", "status")
_FAILED: Final = frozenset({"error", "failed", "failure"})
_SOUND_CODES: Final = range(400)


def finish_of(reason: str | None) -> str | None:
    """The finish reason, or None where it is none: some servers write an empty text, or the word null, until then."""
    return None if reason is None or reason.strip().lower() in _BLANK else reason


def gave_up(reason: str) -> bool:
    """Whether a finish reason (not None, not blank) ends something else than an answer: abort, cancelled, error, …"""
    return reason.strip().lower() not in ENDS


def is_empty(value: object) -> bool:
    """Whether it says nothing: some servers send an `error` with every chunk, empty until there is one."""
    if isinstance(value, dict):
        return all(is_empty(each) for each in cast("dict[str, object]", value).values())
    return not value


def says_failure(value: object) -> bool:
    """Whether a JSON value without an answer in it (`choices`) tells the client that the request has failed."""
    if not isinstance(value, dict):
        return False
    told = cast("dict[str, Any]", value)
    if any(not is_empty(told.get(key)) for key in _FAILURES) or told.get("success") is False:
        return True
    if any(isinstance(word := told.get(key), str) and word.lower() in _FAILED for key in ("object", "type", "status")):
        return True
    return any((code := _number(told.get(key))) is not None and code not in _SOUND_CODES for key in _CODES)


def has_message(value: object) -> bool:
    """Whether it has words for the client, of which it is not known whether they tell of a failure."""
    if not isinstance(value, dict):
        return False
    told = cast("dict[str, Any]", value)
    return any(isinstance(word := told.get(key), str) and bool(word) for key in ("message", "msg"))


def _number(code: object) -> int | None:
    """A numeric code, also one that is written as text."""
    if isinstance(code, str) and code.strip().isdecimal():
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else None
