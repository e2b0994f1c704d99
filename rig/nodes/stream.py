"""The output of a long command, line by line, with back pressure; its end, told apart from the loss of its node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rig.errors import CommandTimeout, NodeError, TransportError

T = TypeVar("T")

CHUNK_BYTES = 65536
LINE_LIMIT_BYTES = 65536  # what is longer is cut there, the rest of the line dropped
STDERR_TAIL_BYTES = 8192
OUTPUT_LIMIT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Result:
    """What a command left: its status (128 + n when signal n, named in `signal`, ended it) and its output."""

    status: int
    stdout: str
    stderr: str
    signal: str | None = None


class Channel(Protocol):
    """A running command as a transport offers it. Every method raises TransportError when the node is lost."""

    async def read(self) -> bytes:
        """Of stdout, at most CHUNK_BYTES; empty at its end. Nothing is read ahead beyond the transport's window."""
        ...

    async def read_error(self) -> bytes:
        """Likewise of stderr."""
        ...

    async def write(self, data: bytes) -> None:
        """To stdin. A command that does not read it is not an error."""
        ...

    def end_input(self) -> None: ...

    async def ended(self) -> tuple[int, str | None]:
        """The status and the signal, once stdout and stderr have ended."""
        ...

    def close(self) -> None:
        """Gives up the command's three streams. The command itself is not ended by that."""
        ...


class Lines:
    """Bytes in, complete lines out (without their end). Pure; holds at most LINE_LIMIT_BYTES."""

    def __init__(self) -> None:
        self._rest = b""
        self._cut = False

    def feed(self, data: bytes) -> list[str]:
        *complete, rest = (self._rest + data).split(b"\n")
        lines: list[str] = []
        for line in complete:
            if not self._cut:
                lines.append(line[:LINE_LIMIT_BYTES].decode("utf-8", "replace"))
            self._cut = False
        self._rest = b"" if self._cut else rest
        if len(self._rest) > LINE_LIMIT_BYTES:
            lines.append(self._rest[:LINE_LIMIT_BYTES].decode("utf-8", "replace"))
            self._rest, self._cut = b"", True
        return lines

    def end(self) -> list[str]:
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []


class Stream:
    """A running command. `lines()` may be iterated once."""

    def __init__(self, node: str, command: str, channel: Channel, deadline: float | None) -> None:
        self._node = node
        self._command = command
        self._channel = channel
        self._deadline = deadline  # on the event loop's clock
        self._stderr = b""
        self._stderr_task = asyncio.create_task(self._keep_stderr())

    async def lines(self) -> AsyncIterator[str]:
        """Lines of stdout until it ends. Raises TransportError, and CommandTimeout at the deadline."""
        lines = Lines()
        while data := await self._timed(self._channel.read()):
            for line in lines.feed(data):
                yield line
        for line in lines.end():
            yield line

    async def wait(self) -> Result:
        """The end of the command (stdout that nobody read is dropped). Raises as `lines` does."""
        while await self._timed(self._channel.read()):
            pass
        status, signal = await self._timed(self._channel.ended())
        await self._timed(asyncio.shield(self._stderr_task))
        return Result(status, "", self._stderr.decode("utf-8", "replace"), signal)

    async def write(self, data: bytes) -> None:
        """Writes to the command's stdin."""
        await self._timed(self._channel.write(data))

    def end_input(self) -> None:
        self._channel.end_input()

    async def close(self) -> None:
        """Closes the channel; the command on the node is not ended by that."""
        self._channel.close()
        self._stderr_task.cancel()
        await asyncio.gather(self._stderr_task, return_exceptions=True)

    async def _keep_stderr(self) -> None:
        try:
            while data := await self._channel.read_error():
                self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]
        except TransportError:
            return  # the reader of stdout sees the same loss and says so

    async def _timed(self, awaitable: Awaitable[T]) -> T:
        """Waits for it until the deadline of the command; closes the channel when that passes."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await awaitable
        except TimeoutError as exc:
            self._channel.close()
            raise CommandTimeout(self._node, f"`{self._command}` did not end by its deadline") from exc


async def collect(node: str, channel: Channel, data: bytes) -> Result:
    """Feeds a command its stdin and returns all that it leaves. Raises NodeError when that is too much."""
    feeding = asyncio.create_task(_feed(channel, data))
    stdout = asyncio.create_task(_read_all(node, channel.read))
    stderr = asyncio.create_task(_read_all(node, channel.read_error))
    try:
        await asyncio.gather(stdout, stderr)
        status, signal = await channel.ended()
    finally:
        for task in (feeding, stdout, stderr):
            task.cancel()
        await asyncio.gather(feeding, stdout, stderr, return_exceptions=True)
    out, err = (task.result().decode("utf-8", "replace") for task in (stdout, stderr))
    return Result(status, out, err, signal)


async def _feed(channel: Channel, data: bytes) -> None:
    try:
        for start in range(0, len(data), CHUNK_BYTES):
            await channel.write(data[start : start + CHUNK_BYTES])
        channel.end_input()
    except TransportError:
        return  # the readers see the same loss


async def _read_all(node: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := await read():
        size += len(data)
        if size > OUTPUT_LIMIT_BYTES:
            raise NodeError(node, f"the command's output is over {OUTPUT_LIMIT_BYTES} bytes")
        parts.append(data)
    return b"".join(parts)
