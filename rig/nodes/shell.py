"""Commands with deadlines, streams of lines, and files put in place whole, over whatever starts a command there.

Commands are sh syntax and run by `/bin/sh -c` on the node, whatever the login shell is. A transport that fails
(`TransportError`) is told apart from a command that ends badly (`CommandFailed`, 255 included) and from one that does
not end in time (`CommandTimeout`; it may still be running). A command is never sent twice.
"""

from __future__ import annotations

import asyncio
import shlex
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import ClassVar

from rig.config.inventory import Node
from rig.errors import CommandFailed, CommandTimeout
from rig.nodes.stream import Channel, Result, Stream, collect

COMMANDS_AT_ONCE = 9  # OpenSSH allows 10 sessions in one connection (MaxSessions)
START_LIMIT_S = 30.0


class Shell(ABC):
    """The shell of a node. Use from one event loop."""

    transport: ClassVar[str]  # in a word, for findings

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self.node = node
        self.lock = ""
        self._places = asyncio.Semaphore(COMMANDS_AT_ONCE)

    @abstractmethod
    async def connect(self) -> None:
        """Makes sure that commands can be given. Raises TransportError."""

    @abstractmethod
    async def close(self) -> None:
        """Commands after this fail."""

    @abstractmethod
    async def _start(self, command: str, deadline: float) -> Channel:
        """Starts `/bin/sh -c command`, at most once. Raises TransportError, CommandTimeout."""

    async def run(
        self, command: str, *, timeout_s: float = 10.0, check: bool = True, stdin: str | bytes | None = None
    ) -> Result:
        """Runs a command to its end and returns its output (at most 4 MiB each way).

        Raises TransportError, CommandTimeout, and with `check` CommandFailed for a status other than 0.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        deadline = asyncio.get_running_loop().time() + timeout_s
        channel: Channel | None = None
        async with self._place(command, deadline):
            try:
                channel = await self._start(command, deadline)
                async with asyncio.timeout_at(deadline):
                    result = await collect(self.name, channel, data)
            except TimeoutError as exc:
                raise CommandTimeout(self.name, f"`{shortened(command)}` did not end within {timeout_s:g} s") from exc
            finally:
                if channel is not None:
                    channel.close()
        if check and result.status != 0:
            raise CommandFailed(self.name, shortened(command), result.status, result.stderr or result.stdout)
        return result

    @asynccontextmanager
    async def stream(
        self, command: str, *, timeout_s: float | None, stdin: bytes | None = None
    ) -> AsyncGenerator[Stream]:
        """Starts a command and yields its stream; `timeout_s` bounds it all, None: for ever.

        Leaving the block closes the channel, not the command on the node. `stdin` is all that the command gets to read;
        with None, what is written to the stream.
        """
        loop = asyncio.get_running_loop()
        start_by = loop.time() + min(timeout_s or START_LIMIT_S, START_LIMIT_S)
        async with self._place(command, start_by):
            channel = await self._start(command, start_by)
            deadline = None if timeout_s is None else loop.time() + timeout_s
            stream = Stream(self.name, shortened(command), channel, deadline)
            try:
                if stdin is not None:
                    await stream.write(stdin)
                    stream.end_input()
                yield stream
            finally:
                await stream.close()

    async def put(self, path: str, data: bytes, mode: int = 0o600, *, timeout_s: float = 20.0) -> None:
        """Writes a file through a temporary name; it appears whole or not at all. Its folder must exist."""
        quoted, temporary = shlex.quote(path), shlex.quote(f"{path}.{id(data):x}.tmp")
        command = (
            f"umask 077; cat >{temporary} && [ $(wc -c <{temporary}) -eq {len(data)} ]"
            f" && chmod {mode:o} {temporary} && mv -f {temporary} {quoted}"
            f" || {{ rm -f {temporary}; echo 'could not write '{quoted} >&2; exit 1; }}"
        )
        await self.run(command, timeout_s=timeout_s, stdin=data)

    @asynccontextmanager
    async def _place(self, command: str, deadline: float) -> AsyncGenerator[None]:
        """A place among the commands that may run there at once."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._places.acquire()
        except TimeoutError as exc:
            message = f"{COMMANDS_AT_ONCE} commands were running already, `{shortened(command)}` was not started"
            raise CommandTimeout(self.name, message) from exc
        try:
            yield
        finally:
            self._places.release()


def shortened(command: str, limit: int = 120) -> str:
    """A command as it is shown in messages: one line, bounded."""
    line = " ".join(command.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
