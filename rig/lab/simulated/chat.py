"""The connection of one chat completion to a simulated node: bytes as exo's API would send them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from rig.lab.embedded.process.api import chat_request
from rig.lab.exo.api_types import Accepted, ChatRequest, Reply
from rig.lab.exo.effects import EndStream, StreamPrefill, StreamToken
from rig.lab.exo.simulated import Request, Seen
from rig.lab.exo.simulation import Simulation

_DONE = b"data: [DONE]\n\n"


def head(status: int, kind: str) -> bytes:
    return b"HTTP/1.1 %d -\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n" % (status, kind.encode())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class ChatConnection(asyncio.Transport):
    """What the client writes is its request, whole; what the node shows is handed to the client's protocol."""

    def __init__(self, sim: Simulation, node: str, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._sim = sim
        self._node = node
        self._protocol = protocol
        self._request: Request | None = None
        self._wanted: ChatRequest | None = None
        self._id = ""
        self._texts: list[str] = []
        self._closed = False
        protocol.connection_made(self)

    # the client's side

    def write(self, data: bytes | bytearray | memoryview) -> None:
        body = bytes(data).partition(b"\r\n\r\n")[2]
        self._wanted = chat_request(json.loads(body))
        self._request = self._sim.chat(self._node, self._wanted, self._show)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._request is not None:
                self._sim.leave(self._request)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closed

    def pause_reading(self) -> None:
        """A simulated client is never too slow."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""

    # the node's side

    def _show(self, seen: Seen) -> None:
        if self._closed or self._wanted is None:
            return
        match seen:
            case None:
                self._closed = True
                self._protocol.connection_lost(ConnectionResetError("connection reset by peer"))
            case Accepted(command_id):
                self._id = command_id
                kind = "text/event-stream" if self._wanted.streamed else "application/json"
                self._send(head(200, kind) + (chunk(b": keep-alive\n\n") if self._wanted.streamed else b""))
            case Reply(status, body):
                self._send(head(status, "application/json") + chunk(json.dumps(body).encode()))
                self._end()
            case StreamPrefill():
                if self._wanted.streamed:
                    self._send(chunk(_prefill(seen)))
            case StreamToken(text=text):
                if self._wanted.streamed:
                    self._send(chunk(self._token(text)))
                else:
                    self._texts.append(text)
            case EndStream():
                self._finish(seen)

    def _finish(self, end: EndStream) -> None:
        match end.how:
            case "finish":
                self._send(chunk(self._last(end)))
                self._end()
            case "error_event":
                error = {"error": {"message": end.message, "type": "InternalServerError", "code": 500}}
                self._send(chunk(b"data: " + json.dumps(error).encode() + b"\n\n" + _DONE))
                self._end()
            case "abort":
                self._closed = True
                self._protocol.connection_lost(ConnectionResetError("connection reset by peer"))
            case "cut_json":
                self._send(chunk(json.dumps(self._whole("".join(self._texts), None)).encode()))
                self._end()
            case "clean_end" | "empty_body":
                self._end()

    def _send(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def _end(self) -> None:
        self._send(b"0\r\n\r\n")

    def _token(self, text: str) -> bytes:
        delta = {"id": self._id, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}
        return b"data: " + json.dumps(delta, separators=(",", ":")).encode() + b"\n\n"

    def _last(self, end: EndStream) -> bytes:
        usage = {"prompt_tokens": end.prompt_tokens, "completion_tokens": end.completion_tokens}
        if self._wanted is not None and not self._wanted.streamed:
            whole = self._whole("".join([*self._texts, end.text]), end.finish_reason)
            return json.dumps({**whole, "usage": usage}).encode()
        choice = {"index": 0, "delta": {"content": end.text}, "finish_reason": end.finish_reason}
        last = {"id": self._id, "choices": [choice], "usage": usage}
        return b"data: " + json.dumps(last).encode() + b"\n\n" + _DONE

    def _whole(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}}
        if finish_reason is not None:
            choice["finish_reason"] = finish_reason
        return {"id": self._id, "choices": [choice]}


def _prefill(seen: StreamPrefill) -> bytes:
    said = {"PrefillProgressChunk": {"processed_tokens": seen.processed, "total_tokens": seen.total}}
    return b": prefill_progress " + json.dumps(said).encode() + b"\n\n"
