"""The JSON of an answer: chunks of a stream, or one whole answer of the same shape. Pure.

Of each, what the outcome rules need: whether there is content, the finish reason, usage, errors. Decoding is most of
what reading an answer costs, so that all chunks of a read are decoded in one call.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Final, cast

import msgspec

_TEXT_BYTES: Final = 200  # of what was said or could not be parsed
_MOST_TOKENS: Final = 2**53
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class Choice(msgspec.Struct, gc=False):
    delta: Delta | None = None
    message: Delta | None = None  # of a whole answer
    text: Any = None  # of the older completions API
    finish_reason: str | None = None
    error: Any = None


class Usage(msgspec.Struct, gc=False):
    completion_tokens: int | None = None


class Chunk(msgspec.Struct, gc=False):
    id: Any = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(Chunk)
_several = msgspec.json.Decoder(list[Chunk | int])
_MARK: Final = secrets.randbits(62)  # no server can know it, see `decoded`
_BETWEEN: Final = b",%d," % _MARK


def decoded(payloads: list[bytes]) -> list[Chunk] | None:
    """The chunks of so many payloads of one line each; None when one of them is anything else.

    One call decodes them all, as an array with a secret number between any two. That this gives what decoding each of
    them would give: every number is back at the top level, so none is inside a value, so no value spans two payloads;
    one value stands between any two numbers, so each payload holds one.
    """
    count = len(payloads)
    array = b"[%s]" % _BETWEEN.join(payloads)
    if b"\n" in array:
        return None
    try:
        values = _several.decode(array)
    except _UNDECODABLE:
        return None
    if len(values) != 2 * count - 1 or values[1::2].count(_MARK) != count - 1:
        return None
    chunks = cast("list[Chunk]", values[::2])
    return chunks if set(map(type, chunks)) == {Chunk} else None


def bears_content(delta: Delta) -> bool:
    return bool(
        delta.content
        or delta.reasoning_content
        or delta.reasoning
        or delta.tool_calls
        or delta.function_call
        or delta.refusal
    )


def kept(tokens: int) -> int:
    """A server may claim any number; a column holds so many."""
    return max(-_MOST_TOKENS, min(tokens, _MOST_TOKENS))


def chunk_of(payload: bytes) -> Chunk | None:
    """None where it is none. Halves of a surrogate pair, escaped in two chunks, are legal JSON that msgspec refuses;
    of a text only whether there is any matters here, so that another character does instead."""
    for text in (payload, _SURROGATE.sub(rb"\\ufffd", payload)):
        try:
            return _decoder.decode(text)
        except _UNDECODABLE:
            continue
    return None


def value_of(payload: bytes) -> Any:
    """The value of any JSON text; None where it is none."""
    try:
        return msgspec.json.decode(_SURROGATE.sub(rb"\\ufffd", payload))
    except _UNDECODABLE:
        return None


def given_up(reason: str, payload: bytes) -> bytes:
    return b"finish reason %s in %s" % (reason.encode(), payload)


def text_of(payload: bytes) -> str:
    return payload[:_TEXT_BYTES].decode("utf-8", "backslashreplace")
