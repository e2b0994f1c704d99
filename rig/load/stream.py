"""What a streamed answer says (server-sent events), read as it comes. Pure.

Tokens are chunks whose delta bears content: text, reasoning text or tool calls. A delta with a role alone or with empty
text is none (some send an empty text where a token ends inside a character). Progress is a token, or a
`prefill_progress` comment whose count is higher than any before; keep-alives are none. One chunk counts as one token,
whatever a server packs into it. Tokens that arrive in one read share its time.

At a clean end an event without its blank line counts, if it is whole: the server has said it, and clients that read
line by line have heard it. At any other end only an error in it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

from rig.journal.records import Gaps
from rig.load.answer import Answer
from rig.load.chunks import Choice, Chunk, bears_content, chunk_of, decoded, given_up, kept, text_of, value_of
from rig.load.outcome import Heard
from rig.load.sketch import GapSketch
from rig.load.sse import MAX_EVENT_BYTES, SseSplitter
from rig.load.told import finish_of, gave_up, has_message, is_empty, says_failure

_PREFILL: Final = re.compile(rb'"processed_tokens":\s*(\d+)')
_DONE_EVENT: Final = b"data: [DONE]\n\n"
_MIXED_CHARACTERS: Final = 200
_AFTER_DONE: Final = "chunks after [DONE]"


class Reader(Protocol):
    """What reads a body: `feed` with pieces as the server framed them and the arrival time of each (one read may have
    brought several), `end` when no more comes."""

    heard: Heard
    answer: Answer | None  # of a canary: what was said, beside that something was
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
        self.answer: Answer | None = None
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
        self._read_t = 0.0  # when the last thing came that is not whole events of one line each
        self._finished_tokens = 0  # those that had come when the finish reason came
        self._remarked_tokens = 0  # likewise at the last remark

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
        chunks = decoded(payloads)
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
        self._read_t = t
        for kind, payload in self._splitter.feed(data):
            if kind == "data":
                self._data(payload, t)
            elif kind == "comment":
                self._comment(payload, t)
            elif kind == "error":
                self._failure(payload)
            else:
                self._unreadable(payload)

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
        chunks = decoded(payloads)
        if chunks is None:
            return data
        self._chunks(chunks, payloads, [t] * len(chunks))
        self.heard.done = self.heard.done or done
        return b"" if done else data[end:]

    def _chunks(self, chunks: list[Chunk], payloads: list[bytes], times: Sequence[float]) -> None:
        """Tokens that came at one time are counted together."""
        if self.answer is not None:
            self.answer.chunks(chunks, payloads)
        if self.heard.done:
            self._mixed(_AFTER_DONE)
        tokens, at, name = 0, times[0], self.heard.response_id
        for chunk, payload, t in zip(chunks, payloads, times, strict=False):  # `[DONE]` has a time, too
            if tokens and t != at:
                self._tokens(tokens, at)
                tokens = 0
            at = t
            choices = chunk.choices
            if choices and chunk.error is None and chunk.usage is None and chunk.id == name:
                delta = choices[0].delta
                if delta is not None and delta.content and choices[0].finish_reason is None:
                    tokens += 1
                    continue
            if tokens:
                self._tokens(tokens, at)
                tokens = 0
            self._understand(chunk, payload, t)
            name = self.heard.response_id
        if tokens:
            self._tokens(tokens, at)

    def end(self, *, clean: bool) -> None:
        """Take what has no blank line after it; of data that is cut off in the middle nothing is known."""
        for kind, payload in self._splitter.end():
            if kind == "error":
                self._failure(payload)
            elif kind == "garbage" and clean:
                self._unreadable(payload)
            elif kind == "data" and _is_json(payload) and (clean or says_failure(value_of(payload))):
                self._data(payload, self._read_t)
        heard = self.heard
        if heard.finish_reason is not None:
            heard.late_tokens = heard.tokens - self._finished_tokens
        if heard.tokens != self._remarked_tokens:
            heard.remark = None  # what was said before a token was no last word

    def gaps(self) -> Gaps:
        if self._gap_zero:
            self._sketch.add(0.0, self._gap_zero)
            self._gap_zero = 0
        return Gaps(count=self._gap_count, sum_s=self._gap_sum_s, max_s=self._gap_max_s, sketch=self._sketch.record())

    def _data(self, payload: bytes, t: float) -> None:
        if payload == b"[DONE]":
            self.heard.done = True
            return
        if self.heard.done:
            self._mixed(_AFTER_DONE)
        chunk = chunk_of(payload)
        if chunk is not None:
            if self.answer is not None:
                self.answer.chunk(chunk, payload)
            self._understand(chunk, payload, t)
        elif payload.strip():  # else a heartbeat
            self._unreadable(payload)

    def _understand(self, chunk: Chunk, payload: bytes, t: float) -> None:
        """Take in one chunk."""
        heard = self.heard
        if chunk.id is not None:
            self._named(str(chunk.id))
        if chunk.usage is not None and chunk.usage.completion_tokens is not None:
            heard.usage_tokens = kept(chunk.usage.completion_tokens)
        if chunk.error is not None and not is_empty(chunk.error):
            self._failure(payload)
        elif chunk.choices:
            self._choice(chunk.choices[0], payload, t)
        elif chunk.usage is None:
            self._beside(payload)

    def _named(self, name: str) -> None:
        heard = self.heard
        if heard.response_id is None:
            heard.response_id = name
        elif name != heard.response_id:
            self._mixed(f"chunks of two answers: {heard.response_id} and {name}")

    def _mixed(self, what: str) -> None:
        """The first such thing is kept."""
        self.heard.mixed = self.heard.mixed or what[:_MIXED_CHARACTERS]

    def _choice(self, choice: Choice, payload: bytes, t: float) -> None:
        heard, delta = self.heard, choice.delta
        if choice.text or (delta is not None and (delta.content or bears_content(delta))):
            self._tokens(1, t)
        else:
            heard.blanks += 1
        if not is_empty(choice.error):
            self._failure(payload)
        reason = finish_of(choice.finish_reason)
        if reason is None:
            return
        if heard.finish_reason is not None:
            self._mixed(f"a second finish reason: {heard.finish_reason}, then {reason}")
        if gave_up(reason):
            self._failure(given_up(reason, payload))
        elif self._open():
            heard.finish_reason = reason
            self._finished_tokens = heard.tokens

    def _beside(self, payload: bytes) -> None:
        """A chunk without an answer in it."""
        value = value_of(payload)
        if says_failure(value):
            self._failure(payload)
        elif has_message(value):
            self.heard.remark, self._remarked_tokens = text_of(payload), self.heard.tokens

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
        if self._open():
            self.heard.error = text_of(payload)
        else:
            self._after(payload)

    def _unreadable(self, payload: bytes) -> None:
        """Not JSON, or JSON of another shape: an error object says so even then."""
        if says_failure(value_of(payload)):
            self._failure(payload)
        elif self._open():
            self.heard.garbage = text_of(payload)
        else:
            self._after(payload)

    def _open(self) -> bool:
        """Whether nothing has decided yet."""
        return self.heard.finish_reason is None and self.heard.error is None and self.heard.garbage is None

    def _after(self, payload: bytes) -> None:
        if self.heard.finish_reason is not None and self.heard.after is None:
            self.heard.after = text_of(payload)


def _is_json(payload: bytes) -> bool:
    return payload == b"[DONE]" or value_of(payload) is not None
