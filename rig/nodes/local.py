"""A node that is this machine, without SSH: the same commands, as processes that outlive the rig as those of sshd do.

The processes of `asyncio` are not used: it kills them when it lets go of them, and a fault that is killed in the middle
of its hold heals nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, ClassVar

from rig.config.inventory import Node
from rig.errors import TransportError
from rig.nodes.operations import ShellNode
from rig.nodes.shell import shortened
from rig.nodes.stream import CHUNK_BYTES


class LocalNode(ShellNode):
    transport: ClassVar[str] = "local"

    def __init__(self, name: str, node: Node) -> None:
        super().__init__(name, node)
        self._closed = False

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        self._closed = True

    async def controller_address(self) -> str:
        """It is not on the network between them."""
        return ""

    async def _start(self, command: str, deadline: float) -> LocalChannel:
        del deadline
        if self._closed:
            raise TransportError(self.name, "the connection was closed by the rig")
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 (it returns once the shell is there: a millisecond)
                ["/bin/sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=Path.home(),
                start_new_session=True,  # a Ctrl-C is the rig's alone
            )
        except OSError as exc:
            raise TransportError(self.name, f"`{shortened(command)}` could not be started: {exc}") from exc
        return LocalChannel(process)


class LocalChannel:
    """A process by its pipes. It is waited for in a thread, so that it never stays a zombie."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._loop = asyncio.get_running_loop()
        self._stdin, self._stdout, self._stderr = map(_Pipe, (process.stdin, process.stdout, process.stderr))
        self._status: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._await, args=(process,), daemon=True).start()

    async def read(self) -> bytes:
        return await self._stdout.read()

    async def read_error(self) -> bytes:
        return await self._stderr.read()

    async def write(self, data: bytes) -> None:
        await self._stdin.write(data)

    def end_input(self) -> None:
        self._stdin.close()

    async def ended(self) -> tuple[int, str | None]:
        status = await asyncio.shield(self._status)
        if status >= 0:
            return status, None
        return 128 - status, signal.Signals(-status).name.removeprefix("SIG")

    def close(self) -> None:
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._status.set_result, status)


class _Pipe:
    """One end of a pipe. Whoever waits for it goes on when it is closed here."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] | None = None
        os.set_blocking(file.fileno(), False)

    async def read(self) -> bytes:
        while not self._file.closed:
            try:
                return os.read(self._file.fileno(), CHUNK_BYTES)
            except BlockingIOError:
                await self._until_ready(self._loop.add_reader)
        return b""

    async def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left and not self._file.closed:
            try:
                left = left[os.write(self._file.fileno(), left) :]
            except BlockingIOError:
                await self._until_ready(self._loop.add_writer)
            except BrokenPipeError:
                return

    def close(self) -> None:
        self._stop_waiting()
        self._file.close()

    async def _until_ready(self, watch: Callable[..., object]) -> None:
        self._ready = ready = self._loop.create_future()
        watch(self._file.fileno(), self._stop_waiting)
        try:
            await ready
        finally:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        ready, self._ready = self._ready, None
        if ready is None:
            return
        self._loop.remove_reader(self._file.fileno())
        self._loop.remove_writer(self._file.fileno())
        if not ready.done():
            ready.set_result(None)
