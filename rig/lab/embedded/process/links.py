"""Main's links to its peers: one connection a pair, over the nodes' network, IPv6 link-local as exo's own.

The node that comes first in the list of nodes dials; the other accepts. A frame is four bytes of length and a message
of the logic; the first frame of a dialled connection is the dialler's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from typing import Protocol, cast

import msgspec

from rig.lab.embedded.settings import EXO_PORT, NodeSettings, Peer
from rig.lab.exo.messages import MAX_MESSAGE_BYTES, AnyMessage, decode, encode

LENGTH = struct.Struct(">I")
MAX_QUEUED_BYTES = 2 * MAX_MESSAGE_BYTES  # a peer that takes nothing for so long loses its link
DIAL_TIMEOUT_S = 2.0


class Hub(Protocol):
    """Who is told of links and messages."""

    def link_up(self, peer: str) -> None: ...
    def link_down(self, peer: str) -> None: ...
    def received(self, peer: str, messages: list[AnyMessage]) -> None: ...


class _Link(asyncio.Protocol):
    """A connection. Before its first frame (or the network's `ok`) it belongs to no peer."""

    def __init__(self, links: Links, dialled: Peer | None) -> None:
        self.links = links
        self.peer = None if dialled is None else dialled.name
        self.transport: asyncio.Transport | None = None
        self.up = False
        self.settled = asyncio.Event()  # it is up, or it is gone
        self._dialled = dialled
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclasses
        if self._dialled is not None and self.links.real:
            self._frame(self.links.settings.name.encode())
            self._be_up()
        elif self._dialled is not None:
            self.transport.write(f"OUT {self._dialled.ipv6} {EXO_PORT} {os.getpid()}\n".encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.up and self._dialled is not None and not self._answered():
            return
        try:
            self._frames()
        except msgspec.DecodeError:
            self.drop()

    def _answered(self) -> bool:
        """Whether the network has said `ok`; a refused connection is closed by it."""
        line, separator, rest = bytes(self._buffer).partition(b"\n")
        if not separator or line != b"ok":
            return False
        self._buffer = bytearray(rest)
        self._frame(self.links.settings.name.encode())
        self._be_up()
        return True

    def _frames(self) -> None:
        messages: list[AnyMessage] = []
        position = 0
        buffer = self._buffer
        while len(buffer) - position >= LENGTH.size:
            (size,) = LENGTH.unpack_from(buffer, position)
            if size > MAX_MESSAGE_BYTES:
                raise msgspec.DecodeError(f"a message of {size} bytes")
            end = position + LENGTH.size + size
            if len(buffer) < end:
                break
            frame = bytes(buffer[position + LENGTH.size : end])
            position = end
            if self.peer is None:
                self.peer = frame.decode()
                if self.peer not in self.links.names:
                    raise msgspec.DecodeError("no peer of ours")
                self._be_up()
            else:
                messages.append(decode(frame))
        del buffer[:position]
        if messages and self.peer is not None and self.links.current.get(self.peer) is self:
            self.links.hub.received(self.peer, messages)

    def _be_up(self) -> None:
        assert self.peer is not None
        self.up = True
        self.settled.set()
        self.links.replace(self.peer, self)

    def send(self, payload: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
            self.drop()
            return
        self._frame(payload)

    def _frame(self, payload: bytes) -> None:
        assert self.transport is not None
        self.transport.write(LENGTH.pack(len(payload)) + payload)

    def drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.settled.set()
        if self.peer is not None:
            self.links.lost(self.peer, self)


class Links:
    """`current` holds the link in use of each peer."""

    def __init__(self, settings: NodeSettings, hub: Hub, *, redial_s: float) -> None:
        self.settings = settings
        self.hub = hub
        self.redial_s = redial_s
        self.real = settings.hosts == "namespaces"  # real sockets between real addresses
        self.names = {peer.name for peer in settings.peers}
        self.current: dict[str, _Link] = {}
        self._dialling: dict[str, asyncio.Task[None]] = {}

    async def listen(self) -> asyncio.Server:
        if self.real:
            return await asyncio.get_running_loop().create_server(
                lambda: _Link(self, None), "::", EXO_PORT, family=socket.AF_INET6, backlog=128
            )
        path = self.settings.listener(EXO_PORT)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return await asyncio.get_running_loop().create_unix_server(lambda: _Link(self, None), path, backlog=128)

    def dial(self) -> None:
        """Keep trying to reach the peers that are this node's to dial."""
        for peer in self.settings.peers:
            if _order(self.settings.name) < _order(peer.name):
                self._dialling[peer.name] = asyncio.create_task(self._keep_dialled(peer))

    def send(self, peer: str, message: AnyMessage) -> None:
        link = self.current.get(peer)
        if link is not None:
            link.send(encode(message))

    def drop(self, peer: str) -> None:
        link = self.current.get(peer)
        if link is not None:
            link.drop()

    def replace(self, peer: str, link: _Link) -> None:
        old = self.current.pop(peer, None)
        if old is not None:
            self.hub.link_down(peer)
            old.drop()
        self.current[peer] = link
        self.hub.link_up(peer)

    def lost(self, peer: str, link: _Link) -> None:
        if self.current.get(peer) is link:
            del self.current[peer]
            self.hub.link_down(peer)

    async def _keep_dialled(self, peer: Peer) -> None:
        """For as long as the process lives. An attempt may be swallowed on the way, so each has its own time."""
        loop = asyncio.get_running_loop()
        while True:
            if peer.name not in self.current:
                link = _Link(self, peer)
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(DIAL_TIMEOUT_S):
                        if self.real:
                            address = f"{peer.ipv6}%{self.settings.interface}"
                            await loop.create_connection(lambda link=link: link, address, EXO_PORT)
                        else:
                            await loop.create_unix_connection(lambda link=link: link, self.settings.net_socket)
                        await link.settled.wait()
                if not link.up:
                    link.drop()
            await asyncio.sleep(self.redial_s)


def _order(name: str) -> tuple[int, str]:
    """node-2 before node-10."""
    digits = name.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, name)
