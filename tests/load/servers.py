"""Real servers for the tests of the load: one that plays what a test scripts, and the mock of the bench."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END: Final = b"0\r\n\r\n"


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


def token(text: str = "a") -> bytes:
    return chunk(b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % text.encode())


FINISH: Final = chunk(b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
DONE: Final = chunk(b"data: [DONE]\n\n")
SOUND: Final = HEAD + token() + FINISH + DONE + END


ANSWER: Final = (
    b'{"id":"y","choices":[{"message":{"content":"ab"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}'
)


async def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Return when the condition holds; an AssertionError when it does not come to."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        await asyncio.sleep(0.005)


def whole(body: bytes = ANSWER) -> bytes:
    """A response that is not streamed."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


async def sound(client: Client) -> None:
    """The script of a server without fault."""
    await client.send(SOUND if client.request["stream"] else whole())


class Client:
    """One connection as the server sees it; `request` is the JSON body it sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
        self.request = request
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def gone(self) -> None:
        """Return when the client has closed its side."""
        while await self._reader.read(1024):
            pass

    def reset(self) -> None:
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self._writer.transport.abort()


Script = Callable[[Client], Awaitable[None]]


class Server:
    """Counts what it was asked. `url` is its address."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []


@asynccontextmanager
async def serving(script: Script, port: int = 0) -> AsyncGenerator[Server]:
    """A server that plays `script` to each connection and then closes it."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            request: dict[str, Any] = json.loads(await reader.readexactly(length))
            server.requests.append(request)
            server.times.append(time.monotonic())
            await script(Client(reader, writer, request))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, as clients of these tests do, or the server ends
        finally:
            tasks.discard(task)
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", port, backlog=1024)
    server = Server(listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_mock(binary: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    """The bench's mock server, once it answers; the caller ends it."""
    port = free_port()
    process = subprocess.Popen(
        [binary, "--port", str(port), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 5
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process, f"http://127.0.0.1:{port}"
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                process.kill()
                process.wait()
                raise
            time.sleep(0.01)
