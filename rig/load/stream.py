"""What an answer says, read as it comes: streamed (server-sent events) or whole (one JSON body). Pure.

Tokens are chunks whose delta bears content: text, reasoning text or tool calls. A delta with a role alone or with empty
text is none (exo sends an empty text where a token ends inside a character). Progress is a token, or a
`prefill_progress` comment whose count is higher than any before; keep-alives are none. One chunk counts as one token,
whatever a server packs into it. Tokens that arrive in one read share its time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol, cast

import msgspec

from rig.journal.records import Gaps
from rig.load.outcome import Heard
from rig.load.sketch import GapSketch
from rig.load.sse import MAX_EVENT_BYTES, SseSplitter

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_TEXT_BYTES: Final = 200  # of what was said or could not be parsed
_MOST_TOKENS: Final = 2**53
_PREFILL: Final = re.compile(rb'"processed_tokens":\s*(\d+)')


class _Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None  # of a whole answer
    text: Any = None  # of the older completions API
    finish_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct, gc=False):
    id: Any = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)
_several = msgspec.json.Decoder(list[_Chunk | int])
_MARK: Final = secrets.randbits(62)  # no server can know it, see `_decoded`
_BETWEEN: Final = b",%d," % _MARK
_DONE_EVENT: Final = b"data: [DONE]\n\n"


class Reader(Protocol):
    """What reads a body: `feed` with pieces as the server framed them and the arrival time of each (one read may have
    brought several), `end` when no more comes."""

    heard: Heard
    first_token_t: float | None
    last_token_t: float | None
    last_progress_t: float | None

    def feed(self, pieces: Sequence[bytes], times: Sequence[float]) -> None: ...
    def end(self, *, clean: bool) -> None: ...
    def gaps(self) -> Gaps: ...


class StreamReader:
    """Reads server-sent events of a chat completion. Times are on the caller's clock, in seconds."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.heard = Heard()
        self.first_token_t: float | None = None
        self.last_token_t: float | None = None
        self.last_progress_t: float | None = None
        self._max_event_bytes = max_event_bytes
        self._splitter = SseSplitter(max_event_bytes)
        self._prefilled = 0
        self._sketch = GapSketch()
        self._gap_count = 0
        self._gap_zero = 0  # gaps of tokens in one read, added to the sketch at the end
        self._gap_sum_s = 0.0
        self._gap_max_s = 0.0

    def feed(self, pieces: Sequence[bytes], times: Sequence[float]) -> None:
        size = sum(map(len, pieces))
        self.heard.body_bytes += size
        if size <= self._max_event_bytes and self._splitter.idle and self._an_event_each(pieces, times):
            return
        for t, together in groupby(zip(times, pieces, strict=True), key=itemgetter(0)):
            self._read(b"".join(piece for _, piece in together), t)

    def _an_event_each(self, pieces: Sequence[bytes], times: Sequence[float]) -> bool:
        """Take the usual thing in few steps: each piece is an event of one `data: {…}` line, and the last may be
        `[DONE]`; most servers frame events so. False: nothing was taken."""
        count = len(pieces)
        if count == 1:
            piece = pieces[0]
            if (
                not (piece.startswith(b"data: ") and piece.endswith(b"\n\n"))
                or b"\r" in piece
                or piece.count(b"\n") != 2
            ):
                return False
            self._data(piece[6:-2], times[0])
            return True
        body = b"".join(pieces)
        if b"\r" in body or body.count(b"\n") != 2 * count or [piece[:6] for piece in pieces].count(b"data: ") != count:
            return False
        done = pieces[-1] == _DONE_EVENT
        payloads = [piece[6:-2] for piece in (pieces[:-1] if done else pieces)]
        chunks = _decoded(payloads)
        if chunks is None:
            return False
        self._chunks(chunks, payloads, times)
        self.heard.done = self.heard.done or done
        return True

    def _read(self, data: bytes, t: float) -> None:
        """What one read brought, however it is framed."""
        if data.startswith(b"data: ") and len(data) <= self._max_event_bytes and self._splitter.idle:
            data = self._whole_events(data, t)
            if not data:
                return
        heard = self.heard
        for kind, payload in self._splitter.feed(data):
            if kind == "data":
                self._data(payload, t)
            elif kind == "comment":
                self._comment(payload, t)
            elif kind == "error":
                self._failure(payload)
            elif heard.finish_reason is None and heard.error is None and heard.garbage is None:
                heard.garbage = _text(payload)

    def _whole_events(self, data: bytes, t: float) -> bytes:
        """Like `_an_event_each`, where one piece has several. What is not taken is returned; nothing is taken where
        there is anything else than whole events of one line."""
        if b"\r" in data:
            return data
        done = data.endswith(_DONE_EVENT)
        end = len(data) - len(_DONE_EVENT) if done else data.rfind(b"\n\n") + 2
        payloads = data[6 : max(end - 2, 0)].split(b"\n\ndata: ")
        if not data.endswith(b"\n\n", 0, end):
            return data
        chunks = _decoded(payloads)
        if chunks is None:
            return data
        self._chunks(chunks, payloads, [t] * len(chunks))
        self.heard.done = self.heard.done or done
        return b"" if done else data[end:]

    def _chunks(self, chunks: list[_Chunk], payloads: list[bytes], times: Sequence[float]) -> None:
        """Tokens that came at one time are counted together."""
        tokens, at, known = 0, times[0], self.heard.response_id is not None
        for chunk, payload, t in zip(chunks, payloads, times, strict=False):  # `[DONE]` has a time, too
            if tokens and t != at:
                self._tokens(tokens, at)
                tokens = 0
            at = t
            choices = chunk.choices
            if choices and chunk.error is None and chunk.usage is None and (chunk.id is None or known):
                delta = choices[0].delta
                if delta is not None and delta.content and choices[0].finish_reason is None:
                    tokens += 1
                    continue
            if self._understand(chunk, t):
                self._failure(payload)
            known = self.heard.response_id is not None
        if tokens:
            self._tokens(tokens, at)

    def end(self, *, clean: bool) -> None:
        """Nothing: an event without its blank line is dropped, as the standard says."""

    def gaps(self) -> Gaps:
        if self._gap_zero:
            self._sketch.add(0.0, self._gap_zero)
            self._gap_zero = 0
        return Gaps(count=self._gap_count, sum_s=self._gap_sum_s, max_s=self._gap_max_s, sketch=self._sketch.record())

    def _data(self, payload: bytes, t: float) -> None:
        heard = self.heard
        if payload == b"[DONE]":
            heard.done = True
            return
        try:
            chunk = _decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._unreadable(payload)
            return
        if self._understand(chunk, t):
            self._failure(payload)

    def _understand(self, chunk: _Chunk, t: float) -> bool:
        """Take in one chunk; whether it says that the request has failed."""
        heard = self.heard
        if heard.response_id is None and chunk.id is not None:
            heard.response_id = str(chunk.id)
        if chunk.usage is not None and chunk.usage.completion_tokens is not None:
            heard.usage_tokens = _kept(chunk.usage.completion_tokens)
        if chunk.error is not None:
            return True
        return self._choice(chunk.choices[0], t) if chunk.choices else False

    def _choice(self, choice: _Choice, t: float) -> bool:
        heard = self.heard
        delta = choice.delta
        if choice.text or (delta is not None and (delta.content or _bears_content(delta))):
            self._tokens(1, t)
        else:
            heard.blanks += 1
        reason = choice.finish_reason
        if reason == "error":
            return True
        if reason is not None and heard.finish_reason is None and heard.error is None and heard.garbage is None:
            heard.finish_reason = reason
        return False

    def _tokens(self, count: int, t: float) -> None:
        """So many tokens came in one read: the gap before the first is a gap, those between them are none."""
        self.heard.tokens += count
        last = self.last_token_t
        if last is None:
            self.first_token_t = t
            self._gap_count += count - 1
            self._gap_zero += count - 1
        else:
            self._gap_count += count
            gap_s = t - last
            if gap_s <= 0.0:
                self._gap_zero += count
            else:
                self._gap_zero += count - 1
                self._gap_sum_s += gap_s
                self._gap_max_s = max(gap_s, self._gap_max_s)
                self._sketch.add(gap_s)
        self.last_token_t = self.last_progress_t = t

    def _comment(self, text: bytes, t: float) -> None:
        if text.startswith(b"prefill_progress") and (match := _PREFILL.search(text)):
            processed = int(match[1])
            if processed > self._prefilled:
                self._prefilled = processed
                self.last_progress_t = t

    def _failure(self, payload: bytes) -> None:
        heard = self.heard
        if heard.finish_reason is None and heard.error is None and heard.garbage is None:
            heard.error = _text(payload)

    def _unreadable(self, payload: bytes) -> None:
        """Not JSON, or JSON of another shape: an error object says so even then."""
        heard = self.heard
        if heard.finish_reason is not None or heard.error is not None or heard.garbage is not None:
            return
        if _says_error(payload):
            heard.error = _text(payload)
        else:
            heard.garbage = _text(payload)


def _decoded(payloads: list[bytes]) -> list[_Chunk] | None:
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
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if len(values) != 2 * count - 1 or values[1::2].count(_MARK) != count - 1:
        return None
    chunks = cast("list[_Chunk]", values[::2])
    return chunks if set(map(type, chunks)) == {_Chunk} else None


class BodyReader:
    """Reads an answer that is not streamed. Its one progress is the arrival of bytes; it has no first token."""

    def __init__(self, max_bytes: int = MAX_BODY_BYTES) -> None:
        self.heard = Heard()
        self.first_token_t: float | None = None
        self.last_token_t: float | None = None
        self.last_progress_t: float | None = None
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, pieces: Sequence[bytes], times: Sequence[float]) -> None:
        self._size += sum(map(len, pieces))
        self.last_progress_t = times[-1]
        if self._size > self._max_bytes:
            self.heard.garbage = f"a body longer than {self._max_bytes} bytes"
            self._pieces.clear()
        else:
            self._pieces += pieces

    def end(self, *, clean: bool) -> None:
        """Only a whole body is judged: what a broken connection left of one says nothing."""
        body = b"".join(self._pieces).strip()
        self._pieces.clear()
        self.heard.body_bytes = len(body)
        if not clean or not body or self.heard.garbage is not None:
            return
        try:
            answer = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if _says_error(body):
                self.heard.error = _text(body)
            else:
                self.heard.garbage = _text(body)
            return
        self._understand(answer, body)

    def gaps(self) -> Gaps:
        return Gaps()

    def _understand(self, answer: _Chunk, body: bytes) -> None:
        heard = self.heard
        heard.response_id = None if answer.id is None else str(answer.id)
        if answer.usage is not None and answer.usage.completion_tokens is not None:
            heard.usage_tokens = _kept(answer.usage.completion_tokens)
        if answer.error is not None:
            heard.error = _text(body)
            return
        choice = answer.choices[0] if answer.choices else _Choice()
        message = choice.message
        if choice.text or (message is not None and _bears_content(message)):
            heard.tokens = 1
        if choice.finish_reason == "error":
            heard.error = _text(body)
        else:
            heard.finish_reason = choice.finish_reason


def _bears_content(delta: _Delta) -> bool:
    return bool(delta.content or delta.reasoning_content or delta.reasoning or delta.tool_calls)


def reader_for(*, streamed: bool, content_type: str) -> Reader:
    """A server may answer a streamed request with a whole body (an error, a login page): its content type says so."""
    kind = content_type.partition(";")[0].strip().lower()
    if streamed and kind not in ("application/json", "text/html"):
        return StreamReader()
    return BodyReader()


def _kept(tokens: int) -> int:
    """A server may claim any number; a column holds so many."""
    return max(-_MOST_TOKENS, min(tokens, _MOST_TOKENS))


class _ErrorAlone(msgspec.Struct):
    error: Any


_error_decoder = msgspec.json.Decoder(_ErrorAlone)


def _says_error(payload: bytes) -> bool:
    try:
        return _error_decoder.decode(payload).error is not None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _text(payload: bytes) -> str:
    return payload[:_TEXT_BYTES].decode("utf-8", "backslashreplace")
