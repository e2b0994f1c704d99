"""A node over SSH: one persistent connection for all its commands.

A lost connection is dialled again when the next command is given, with back-off, and never so often that a guard such
as sshguard would take notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import asyncssh

from rig.config.inventory import Node
from rig.errors import CommandTimeout, SshError
from rig.nodes.dial import CONNECT_TIMEOUT_S, Refused, dial, resolve
from rig.nodes.operations import ShellNode
from rig.nodes.shell import shortened
from rig.nodes.stream import CHUNK_BYTES

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 5.0
DIALS_PER_CALL = 4  # dials for one command, deadline permitting

_T = TypeVar("_T")


class SshNode(ShellNode):
    transport: ClassVar[str] = "ssh"

    def __init__(self, name: str, node: Node) -> None:
        assert node.ssh is not None, f"the inventory does not say how {name} is reached over SSH"
        super().__init__(name, node)
        self.dials = 0  # attempts so far, for bounds and reports
        self._ssh = node.ssh
        self._address: str | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._dialling = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0  # on the event loop's clock
        self._refused: SshError | None = None
        self._closed = False

    async def connect(self, *, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Resolves the host once and connects, unless connected. Raises SshError (HostKeyError)."""
        await self._connected(asyncio.get_running_loop().time() + timeout_s)

    async def close(self) -> None:
        """Ends the connection; commands after this fail."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            try:
                async with asyncio.timeout(2.0):
                    await connection.wait_closed()
            except TimeoutError:
                connection.abort()

    async def _start(self, command: str, deadline: float) -> SshChannel:
        """Opens a session and hands the command over. Raises SshError, CommandTimeout."""
        connection = await self._connected(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                process = await connection.create_process(f"exec /bin/sh -c {shlex.quote(command)}", encoding=None)
        except TimeoutError as exc:
            message = f"`{shortened(command)}` could not be started by its deadline"
            raise CommandTimeout(self.name, message) from exc
        except asyncssh.ChannelOpenError as exc:
            raise SshError(self.name, f"the server refused a session: {exc.reason}") from exc
        except (OSError, asyncssh.Error) as exc:
            raise SshError(self.name, f"connection lost before `{shortened(command)}`: {_reason(exc)}") from exc
        return SshChannel(self.name, shortened(command), process)

    async def _connected(self, deadline: float) -> asyncssh.SSHClientConnection:
        """The connection, dialled when needed: at most DIALS_PER_CALL times, with back-off, until the deadline."""
        loop = asyncio.get_running_loop()
        last: SshError | None = None
        try:
            async with asyncio.timeout_at(deadline), self._dialling:
                for _ in range(DIALS_PER_CALL):
                    if self._refused is not None:
                        raise self._refused
                    if self._closed:
                        raise SshError(self.name, "the connection was closed by the rig")
                    if self._connection is not None and not self._connection.is_closed():
                        return self._connection
                    await asyncio.sleep(self._not_before - loop.time())
                    try:
                        return await self._dial()
                    except SshError as exc:
                        last = exc
        except TimeoutError as exc:
            raise last or SshError(self.name, "no SSH connection by the command's deadline") from exc
        assert last is not None
        raise last

    async def _dial(self) -> asyncssh.SSHClientConnection:
        loop = asyncio.get_running_loop()
        backoff_s = min(BACKOFF_FIRST_S * 2 ** min(self._failures, 10), BACKOFF_MAX_S)
        self._not_before = loop.time() + backoff_s  # set before the attempt: a cancelled one counts as well
        self._failures += 1
        self.dials += 1
        try:
            if self._address is None:
                self._address = await resolve(self.name, self._ssh)
            self._connection = await dial(self.name, self._ssh, self._address)
        except Refused as refused:
            self._refused = refused.error
            raise refused.error from refused
        self._failures = 0
        return self._connection


@dataclass(frozen=True)
class SshChannel:
    """A command in a session of its own."""

    node: str
    command: str
    process: asyncssh.SSHClientProcess[bytes]

    async def read(self) -> bytes:
        return await self._mapped(self.process.stdout.read(CHUNK_BYTES))

    async def read_error(self) -> bytes:
        return await self._mapped(self.process.stderr.read(CHUNK_BYTES))

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the command has ended, or has closed its stdin
            self.process.stdin.write(data)
            await self._mapped(self.process.stdin.drain())

    def end_input(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write_eof()

    async def ended(self) -> tuple[int, str | None]:
        await self._mapped(self.process.wait_closed())
        if self.process.exit_signal is not None:
            return 128 - (self.process.returncode or 0), self.process.exit_signal[0]
        if self.process.exit_status is None or self.process.exit_status < 0:
            raise SshError(self.node, "the connection was lost before the command's status came")
        return self.process.exit_status, None

    def close(self) -> None:
        self.process.close()

    async def _mapped(self, awaitable: Awaitable[_T]) -> _T:
        try:
            return await awaitable
        except (OSError, asyncssh.Error) as exc:
            raise SshError(self.node, f"connection lost during `{self.command}`: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
