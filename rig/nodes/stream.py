"""The output of a long command, line by line, with back pressure; its end, told apart from the loss of SSH."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import TypeVar

import asyncssh

from rig.errors import CommandTimeout, SshError

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
    """A running command. `lines()` may be iterated once; nothing is read ahead beyond SSH's window."""

    def __init__(
        self, node: str, command: str, process: asyncssh.SSHClientProcess[bytes], deadline: float | None
    ) -> None:
        self.node = node
        self.command = command
        self._process = process
        self._deadline = deadline  # on the event loop's clock
        self._stderr = b""
        self._stderr_task = asyncio.create_task(self._keep_stderr())

    async def lines(self) -> AsyncIterator[str]:
        """Lines of stdout until it ends. Raises SshError when the transport is lost, CommandTimeout at the deadline."""
        lines = Lines()
        while data := await self._timed(self._read()):
            for line in lines.feed(data):
                yield line
        for line in lines.end():
            yield line

    async def wait(self) -> Result:
        """The end of the command (stdout that nobody read is dropped). Raises as `lines` does."""
        while await self._timed(self._read()):
            pass
        await self._timed(self._process.wait_closed())
        await self._timed(asyncio.shield(self._stderr_task))
        return ended(self.node, self._process, b"", self._stderr)

    async def write(self, data: bytes) -> None:
        """Writes to the command's stdin."""
        try:
            self._process.stdin.write(data)
            await self._timed(self._process.stdin.drain())
        except (OSError, asyncssh.Error) as exc:
            raise SshError(self.node, f"connection lost during `{self.command}`: {exc}") from exc

    def close_stdin(self) -> None:
        self._process.stdin.write_eof()

    async def close(self) -> None:
        """Closes the channel; the command on the node is not ended by that."""
        self._process.close()
        self._stderr_task.cancel()
        await asyncio.gather(self._stderr_task, return_exceptions=True)

    async def _read(self) -> bytes:
        try:
            return await self._process.stdout.read(CHUNK_BYTES)
        except (OSError, asyncssh.Error) as exc:
            raise SshError(self.node, f"connection lost during `{self.command}`: {exc}") from exc

    async def _keep_stderr(self) -> None:
        try:
            while data := await self._process.stderr.read(CHUNK_BYTES):
                self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]
        except (OSError, asyncssh.Error):
            return  # the reader of stdout sees the same loss and says so

    async def _timed(self, awaitable: Awaitable[T]) -> T:
        """Waits for it until the deadline of the command; closes the channel when that passes."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await awaitable
        except TimeoutError as exc:
            self._process.close()
            raise CommandTimeout(self.node, f"`{self.command}` did not end by its deadline") from exc


def ended(node: str, process: asyncssh.SSHClientProcess[bytes], stdout: bytes, stderr: bytes) -> Result:
    """The result of a process whose channel is closed. Raises SshError when neither status nor signal came."""
    out, err = stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
    if process.exit_signal is not None:
        return Result(128 - (process.returncode or 0), out, err, process.exit_signal[0])
    if process.exit_status is None or process.exit_status < 0:
        raise SshError(node, "the connection was lost before the command's status came")
    return Result(process.exit_status, out, err)
