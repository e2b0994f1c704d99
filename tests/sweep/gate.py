"""The way from the controller to a node in a network namespace, which can be cut and opened again.

Listens on loopback where the rig runs; what it accepts it carries to a port inside the namespace. One thread, which
lives in that namespace, with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNET = 0x40000000


class Gate:
    """`port` is where the rig connects to. `cut` breaks what goes through and lets nothing new in, until `open`."""

    def __init__(self, namespace: str, inner_port: int) -> None:
        self._namespace = namespace
        self._inner_port = inner_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        self._call(self._cut)

    def open(self) -> None:
        self._is_open = True

    def close(self) -> None:
        self._call(self._cut)
        self._call(self._loop.stop)
        self._thread.join(5)

    def _call(self, what: Callable[[], object]) -> None:
        done = threading.Event()

        def run() -> None:
            what()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(5)

    def _cut(self) -> None:
        self._is_open = False
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        with Path("/run/netns", self._namespace).open() as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._carry, sock=self._listener))
        self._loop.run_forever()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_open:
            writer.transport.abort()
            return
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, inner_writer}
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        self._writers -= {writer, inner_writer}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
