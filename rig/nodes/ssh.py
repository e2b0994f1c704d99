"""One persistent SSH connection per node: commands with deadlines, streams of lines, files put in place atomically.

Commands are sh syntax and run by `/bin/sh -c` on the node, whatever the login shell is. A transport that fails
(`SshError`) is told apart from a command that ends badly (`CommandFailed`, 255 included) and from one that does not end
in time (`CommandTimeout`; it may still be running). A lost connection is dialled again when the next command is given,
with back-off, and never so often that a guard such as sshguard would take notice. A command is never sent twice.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import asyncssh

from rig.config.inventory import Inventory, Node
from rig.errors import CommandFailed, CommandTimeout, NodeError, SshError
from rig.nodes.dial import CONNECT_TIMEOUT_S, Refused, dial, resolve
from rig.nodes.stream import CHUNK_BYTES, OUTPUT_LIMIT_BYTES, Result, Stream, ended

__all__ = ["NodeConnection", "Nodes", "Result", "Stream", "open_nodes"]

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 5.0
DIALS_PER_CALL = 4  # dials for one command, deadline permitting
SESSIONS = 9  # OpenSSH allows 10 in one connection (MaxSessions)

Nodes = Mapping[str, "NodeConnection"]


class NodeConnection:
    """A node of the inventory as the rig reaches it. Use from one event loop."""

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self.node = node
        self.dials = 0  # attempts so far, for bounds and reports
        self.lock = ""  # token of the lock that is held there through this connection; scripts strike under it alone
        self._address: str | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._dialling = asyncio.Lock()
        self._sessions = asyncio.Semaphore(SESSIONS)
        self._failures = 0
        self._not_before = 0.0  # on the event loop's clock
        self._refused: SshError | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def connect(self, *, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Resolves the host once and connects, unless connected. Raises SshError (HostKeyError)."""
        await self._connected(asyncio.get_running_loop().time() + timeout_s)

    async def run(
        self, command: str, *, timeout_s: float = 10.0, check: bool = True, stdin: str | bytes | None = None
    ) -> Result:
        """Runs a command to its end and returns its output (at most 4 MiB each way).

        Raises SshError, CommandTimeout, and with `check` CommandFailed for a status other than 0.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        process: asyncssh.SSHClientProcess[bytes] | None = None
        async with self._session(command, deadline):
            try:
                process = await self._start(command, deadline)
                async with asyncio.timeout_at(deadline):
                    result = await self._collect(process, stdin)
            except TimeoutError as exc:
                raise CommandTimeout(self.name, f"`{shortened(command)}` did not end within {timeout_s:g} s") from exc
            except (OSError, asyncssh.Error) as exc:
                raise SshError(self.name, f"connection lost during `{shortened(command)}`: {reason(exc)}") from exc
            finally:
                if process is not None:
                    process.close()
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
        start_by = loop.time() + min(timeout_s or 30.0, 30.0)
        async with self._session(command, start_by):
            process = await self._start(command, start_by)
            deadline = None if timeout_s is None else loop.time() + timeout_s
            stream = Stream(self.name, shortened(command), process, deadline)
            try:
                if stdin is not None:
                    await stream.write(stdin)
                    stream.close_stdin()
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

    @asynccontextmanager
    async def _session(self, command: str, deadline: float) -> AsyncGenerator[None]:
        """A place among the sessions that one connection may carry."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._sessions.acquire()
        except TimeoutError as exc:
            message = f"all {SESSIONS} sessions were in use, `{shortened(command)}` was not started"
            raise CommandTimeout(self.name, message) from exc
        try:
            yield
        finally:
            self._sessions.release()

    async def _start(self, command: str, deadline: float) -> asyncssh.SSHClientProcess[bytes]:
        """Opens a session and hands the command over. Raises SshError, CommandTimeout."""
        connection = await self._connected(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                return await connection.create_process(f"exec /bin/sh -c {shlex.quote(command)}", encoding=None)
        except TimeoutError as exc:
            message = f"`{shortened(command)}` could not be started by its deadline"
            raise CommandTimeout(self.name, message) from exc
        except asyncssh.ChannelOpenError as exc:
            raise SshError(self.name, f"the server refused a session: {exc.reason}") from exc
        except (OSError, asyncssh.Error) as exc:
            raise SshError(self.name, f"connection lost before `{shortened(command)}`: {reason(exc)}") from exc

    async def _collect(self, process: asyncssh.SSHClientProcess[bytes], stdin: str | bytes | None) -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        feeding = asyncio.create_task(_feed(process, data))
        stdout = asyncio.create_task(self._read(process.stdout))
        stderr = asyncio.create_task(self._read(process.stderr))
        try:
            await asyncio.gather(stdout, stderr)
            await process.wait_closed()
        finally:
            for task in (feeding, stdout, stderr):
                task.cancel()
            await asyncio.gather(feeding, stdout, stderr, return_exceptions=True)
        return ended(self.name, process, stdout.result(), stderr.result())

    async def _read(self, reader: asyncssh.SSHReader[bytes]) -> bytes:
        parts: list[bytes] = []
        size = 0
        while data := await reader.read(CHUNK_BYTES):
            size += len(data)
            if size > OUTPUT_LIMIT_BYTES:
                raise NodeError(self.name, f"the command's output is over {OUTPUT_LIMIT_BYTES} bytes")
            parts.append(data)
        return b"".join(parts)

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
                self._address = await resolve(self.name, self.node.ssh)
            self._connection = await dial(self.name, self.node.ssh, self._address)
        except Refused as refused:
            self._refused = refused.error
            raise refused.error from refused
        self._failures = 0
        return self._connection


async def _feed(process: asyncssh.SSHClientProcess[bytes], data: bytes) -> None:
    """Writes stdin and ends it. A command that does not read it to the end is not an error."""
    try:
        for start in range(0, len(data), CHUNK_BYTES):
            process.stdin.write(data[start : start + CHUNK_BYTES])
            await process.stdin.drain()
        process.stdin.write_eof()
    except (OSError, asyncssh.Error):
        return


@asynccontextmanager
async def open_nodes(
    inventory: Inventory, *, names: list[str] | None = None, on_unreachable: Callable[[SshError], object] | None = None
) -> AsyncGenerator[Nodes]:
    """Connects to the nodes (all, or those named) at once and yields them by name.

    Raises the SshError of the node that cannot be reached (the others' in its notes). With `on_unreachable` it is told
    of each instead, and the node is yielded all the same: it is dialled again when it is used.
    """
    nodes = {name: NodeConnection(name, inventory.nodes[name]) for name in names or list(inventory.nodes)}
    try:
        outcomes = await asyncio.gather(*(node.connect() for node in nodes.values()), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for failure in failed:
            if not isinstance(failure, SshError):
                raise failure
            if on_unreachable is not None:
                on_unreachable(failure)
        if failed and on_unreachable is None:
            for other in failed[1:]:
                failed[0].add_note(str(other))
            raise failed[0]
        yield nodes
    finally:
        await asyncio.gather(*(node.close() for node in nodes.values()))


def shortened(command: str, limit: int = 120) -> str:
    """A command as it is shown in messages: one line, bounded."""
    line = " ".join(command.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
