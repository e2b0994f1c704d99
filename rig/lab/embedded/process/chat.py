"""One chat completion's connection: what the client is sent, byte for byte in the shapes of real answers.

The chunked body is written by hand on the transport, so that every way in which a body can end can be had: cleanly,
broken inside, cut short. Each event is a chunk of its own, as in exo.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiohttp import web

from rig.lab.embedded.settings import NodeSettings
from rig.lab.exo.effects import EndStream, StreamPrefill, StreamToken
from rig.lab.ledger import Ledger, RequestClosed, RequestEnd, RequestOpened

MAX_UNSENT_BYTES = 1 << 20  # a client that reads nothing is dropped
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

_encoded_texts: dict[str, bytes] = {}


def _json_text(text: str) -> bytes:
    """A JSON string. Runners say few different things, so that this is mostly a look-up."""
    encoded = _encoded_texts.get(text)
    if encoded is None:
        if len(_encoded_texts) > 1024:
            _encoded_texts.clear()
        encoded = _encoded_texts[text] = json.dumps(text).encode()
    return encoded


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _usage(end: EndStream) -> dict[str, Any]:
    return {
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.completion_tokens,
        "total_tokens": end.prompt_tokens + end.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


class ChatStream:
    """From the acceptance of a request to its end. `closed` is set when nothing more will be sent."""

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        settings: NodeSettings,
        ledger: Ledger,
        command_id: str,
        model: str,
        streamed: bool,
        request: str,
    ) -> None:
        self.request = request
        self.transport = transport
        self.node = settings.name
        self.ledger = ledger
        self.command_id = command_id
        self.model = model
        self.streamed = streamed
        self.closed = asyncio.Event()
        self.tokens = 0
        self._handed = 0  # of an answer that is not streamed: tokens in the body that was written
        self._opened = False
        self._early: list[bytes] = [KEEP_ALIVE] if streamed else []  # what comes before the headers are out
        self._started = time.monotonic()
        self._first_token_t: float | None = None
        self._last_token_t: float | None = None
        self._texts: list[str] = []
        created = int(time.time())
        self._head = {"id": command_id, "object": "chat.completion", "created": created, "model": model}
        self._prefix = (
            b"data: "
            + json.dumps(self._head, separators=(",", ":")).encode()[:-1]
            + b',"choices":[{"index":0,"delta":{"role":"assistant","content":'
        )
        ledger.write(
            RequestOpened(
                t=ledger.now(), node=self.node, response=command_id, model=model, streamed=streamed, request=request
            )
        )

    def open(self) -> None:
        """The headers are out: send what has come meanwhile, beginning with the first keep-alive."""
        self._opened = True
        if not self.transport.is_closing():
            for data in self._early:
                self.transport.write(_chunk(data))
        self._early.clear()

    def _write(self, data: bytes) -> None:
        if self.closed.is_set() or self.transport.is_closing():
            return
        if not self._opened:
            self._early.append(data)
            return
        if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._close("aborted", message="the client reads nothing")
            self.transport.abort()
            return
        self.transport.write(_chunk(data))

    def keep_alive(self) -> None:
        if self.streamed:
            self._write(KEEP_ALIVE)

    def prefill(self, effect: StreamPrefill) -> None:
        if self.streamed:
            self._write(
                b': prefill_progress {"PrefillProgressChunk":{"model":%b,"processed_tokens":%d,"total_tokens":%d}}\n\n'
                % (_json_text(effect.model), effect.processed, effect.total)
            )

    def token(self, effect: StreamToken) -> None:
        self._count_token()
        if self.streamed:
            self._write(b"%b%b}}]}\n\n" % (self._prefix, _json_text(effect.text)))
        else:
            self._texts.append(effect.text)

    def _count_token(self) -> None:
        self.tokens += 1
        self._last_token_t = time.monotonic()
        if self._first_token_t is None:
            self._first_token_t = self._last_token_t

    def end(self, effect: EndStream) -> None:
        """Send what the end looks like, and note what the client got."""
        if self.closed.is_set():
            return
        match effect.how:
            case "finish":
                self._finish(effect)
            case "error_event":
                error = {"message": effect.message, "type": "InternalServerError", "code": 500}
                self._write(b"data: " + json.dumps({"error": error}, separators=(",", ":")).encode() + b"\n\n")
                self._write(DONE)
                self._end_cleanly("error", message=effect.message)
            case "abort":
                self._close("error" if not self.streamed else "aborted", message=effect.message)
                self.transport.abort()
            case "cut_json":
                choice = {"index": 0, "message": {"role": "assistant", "content": "".join(self._texts)}}
                self._write(json.dumps({**self._head, "choices": [choice]}, separators=(",", ":")).encode())
                self._handed = self.tokens
                self._end_cleanly("cut", message=effect.message)
            case "clean_end" | "empty_body":
                self._end_cleanly("cut", message=effect.message)

    def _finish(self, effect: EndStream) -> None:
        self._count_token()
        if not self.streamed:
            text = "".join([*self._texts, effect.text])
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": effect.finish_reason}
            body = {**self._head, "choices": [choice], "usage": _usage(effect)}
            self._write(json.dumps(body, separators=(",", ":")).encode())
            self._handed = self.tokens
        else:
            last = b'%b%b},"finish_reason":%b}],"usage":%b}\n\n' % (
                self._prefix,
                _json_text(effect.text),
                _json_text(effect.finish_reason or "stop"),
                json.dumps(_usage(effect), separators=(",", ":")).encode(),
            )
            self._write(last)
            self._write(self._statistics(effect))
            self._write(DONE)
        self._end_cleanly("finished", finish_reason=effect.finish_reason)

    def _statistics(self, effect: EndStream) -> bytes:
        now = time.monotonic()
        first = self._first_token_t or now
        statistics = {
            "prompt_tps": effect.prompt_tokens / max(first - self._started, 1e-3),
            "generation_tps": effect.completion_tokens / max(now - first, 1e-3),
            "prompt_tokens": effect.prompt_tokens,
            "generation_tokens": effect.completion_tokens,
            "peak_memory_usage": {"in_bytes": 10_639_545},
            "prefix_cache_hit": "none",
        }
        return b": generation_stats " + json.dumps(statistics, separators=(",", ":")).encode() + b"\n\n"

    def _end_cleanly(self, end: RequestEnd, *, finish_reason: str | None = None, message: str = "") -> None:
        """The last chunk is written when the handler, woken by `closed`, returns its response."""
        self._close(end, finish_reason=finish_reason, message=message)

    def left(self) -> bool:
        """The client is gone. Whether that is how the request ended (and not only what followed its end)."""
        if self.closed.is_set():
            return False
        self._close("left")
        return True

    def _close(self, end: RequestEnd, *, finish_reason: str | None = None, message: str = "") -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        if self.transport.is_closing() and end != "aborted":
            end = "left"
        self.ledger.write(
            RequestClosed(
                t=self.ledger.now(),
                node=self.node,
                response=self.command_id,
                end=end,
                status=200,
                finish_reason=finish_reason,
                tokens=self.tokens if self.streamed else self._handed,
                last_token_t=self._last_token_t,
                message=message,
                request=self.request,
            )
        )


STREAM_HEADERS = {
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "content-type": "text/event-stream; charset=utf-8",
    "vary": "Origin",
}
PLAIN_HEADERS = {"content-type": "application/json", "vary": "Origin"}


async def begin(request: web.Request, *, streamed: bool) -> web.StreamResponse:
    """200 and the headers, at once; the body is written on the transport from here on."""
    response = web.StreamResponse(headers=STREAM_HEADERS if streamed else PLAIN_HEADERS)
    response.enable_chunked_encoding()
    response.force_close()
    await response.prepare(request)
    return response
