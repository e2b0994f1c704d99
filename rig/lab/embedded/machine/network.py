"""The network between the nodes, as one machine sees it.

A connection from a process of this node goes: process → (unix socket) → this machine → (unix socket) → the peer's
machine → the listener there. Each machine asks its own packet filter for every chunk, in the direction of its node,
and holds back what does not pass, as TCP would with packets that are never acknowledged: nothing is refused, the
sender just waits. A machine reads no more of a connection while it holds a chunk of it, so that what is held is
bounded and the sender feels it.

The first line on a connection says what it is: `OUT ADDRESS PORT PID` from a process of the node, `IN SOURCE PORT
ADDRESS PORT` from a peer's machine. The answer is `ok` or `refused`, or nothing at all for as long as the path is
blocked.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from dataclasses import dataclass
from typing import cast

from rig.lab.embedded.machine.packet_filter import Flow, Hook, PacketFilter
from rig.lab.embedded.machine.peer_pid import peer_pid
from rig.lab.embedded.settings import API_PORT, SSH_PORT, NodeSettings, Peer

RETRY_S = 0.2  # how often held data is offered to the filter again: its retransmission
UNACKNOWLEDGED_BYTES = 14_600  # what passes one way while no acknowledgement comes back (ten segments)
MAX_LINKS = 512
CONNECT_LIMIT_S = 120.0  # nobody waits longer for a blocked connection
HEADER_LIMIT = 256


class End(asyncio.Protocol):
    """One of the two sockets of a link: reads a first line if asked to, then pushes into its direction."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.outgoing: Direction | None = None
        self.incoming: Direction | None = None
        self.line: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()
        self._early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclasses

    def data_received(self, data: bytes) -> None:
        if self.outgoing is not None:
            self.outgoing.push(data)
            return
        self._early += data
        end = self._early.find(b"\n")
        if not self.line.done() and (end >= 0 or len(self._early) > HEADER_LIMIT):
            self.line.set_result(self._early[: max(end, 0)].decode(errors="replace"))
            del self._early[: end + 1]
            self.pause()

    def flow_into(self, direction: Direction) -> None:
        """From now on what is read goes into `direction`, beginning with what came with the first line."""
        self.outgoing = direction
        early, self._early = bytes(self._early), bytearray()
        if early:
            direction.push(early)
        if not direction.held:
            self.resume()
        if self.gone.is_set():
            direction.source_gone()

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self.gone.is_set():
            self.transport.write(data)

    def pause(self) -> None:
        if self.transport is not None and not self.gone.is_set() and self.transport.is_reading():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.gone.is_set() and not self.transport.is_reading():
            self.transport.resume_reading()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        if self.incoming is not None:
            self.incoming.sink_full = True
            self.incoming.source.pause()

    def resume_writing(self) -> None:
        if self.incoming is not None:
            self.incoming.sink_full = False
            if not self.incoming.held:
                self.incoming.source.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        if not self.line.done():
            self.line.set_result("")
        if self.outgoing is not None:
            self.outgoing.source_gone()


class Direction:
    """Bytes from one end to the other, through this machine's filter."""

    def __init__(self, network: Network, source: End, sink: End, flow: Flow, hook: Hook) -> None:
        self.network = network
        self.source = source
        self.sink = sink
        self.flow = flow
        self.hook: Hook = hook
        self.held = bytearray()
        self.sink_full = False
        self._finishing = False
        self._unacknowledged = 0

    def push(self, data: bytes) -> None:
        if not self.held and self._admits(len(data)):
            self.sink.write(data)
            return
        self.held += data
        self.source.pause()
        self.network.holding.add(self)

    def source_gone(self) -> None:
        """The end of the stream is a packet like any other: it waits behind what is held."""
        if self._finishing:
            return
        self._finishing = True
        if not self.held and self._admits(1):
            self.sink.close()
        else:
            self.network.holding.add(self)

    def retry(self) -> bool:
        """Offer what is held to the filter again. Whether nothing is held any more."""
        if self.sink.gone.is_set():
            self.held.clear()
            return True
        if not self._admits(len(self.held) or 1):
            return False
        if self.held:
            self.sink.write(bytes(self.held))
            self.held.clear()
        if self._finishing:
            self.sink.close()
        elif not self.sink_full:
            self.source.resume()
        return True

    def _admits(self, size: int) -> bool:
        packet_filter = self.network.filter
        if packet_filter.idle():
            self._unacknowledged = 0
            return True
        if not packet_filter.passes(self.hook, self.flow):
            return False
        if packet_filter.passes(_opposite(self.hook), self.flow.reversed()):
            self._unacknowledged = 0
            return True
        self._unacknowledged += size
        return self._unacknowledged <= UNACKNOWLEDGED_BYTES


def _opposite(hook: Hook) -> Hook:
    return "in" if hook == "out" else "out"


@dataclass(frozen=True, eq=False)
class Link:
    """A connection as a process of this node has it: what `lsof` tells."""

    pid: int
    flow: Flow  # from this node's point of view: source is here


class Network:
    """All connections of one node. `listening(port)` tells where a virtual port is served, `filter` what may pass."""

    def __init__(self, settings: NodeSettings, packet_filter: PacketFilter) -> None:
        self.settings = settings
        self.filter = packet_filter
        self.holding: set[Direction] = set()
        self.links: set[Link] = set()
        self._peers: dict[str, Peer] = {}
        for peer in settings.peers:
            self._peers[peer.ipv4] = self._peers[peer.ipv6] = peer
        self._own = {settings.ipv4, settings.ipv6}
        self._ports = itertools.cycle(range(32768, 49152))
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        packet_filter.changed.append(self._on_filter_changed)

    async def serve(self) -> None:
        """Listen, and offer held data to the filter again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(self._accept, self.settings.net_socket, backlog=128)
        try:
            while True:
                await asyncio.sleep(RETRY_S)
                self._retry()
        finally:
            server.close()

    def virtual(self, address: str) -> bool:
        """Whether an address is of this network (of a node that exists or not)."""
        return address.startswith("10.77.0.") or address.lower().startswith("fe80::77:")

    async def probe(self, address: str, port: int, *, timeout_s: float) -> bool:
        """Whether a connection can be opened from this node, within `timeout_s`."""
        end = End()
        try:
            async with asyncio.timeout(timeout_s):
                other = await self._open(end, address, port, self._flow(address, port))
        except TimeoutError:
            return False
        if other is None:
            return False
        other.close()
        return True

    def held_bytes(self) -> int:
        return sum(len(direction.held) for direction in self.holding)

    def _on_filter_changed(self, command: str) -> None:
        del command
        self._changed.set()
        self._changed = asyncio.Event()
        self._retry()

    def _retry(self) -> None:
        for direction in list(self.holding):
            if direction.retry():
                self.holding.discard(direction)

    def _accept(self) -> asyncio.Protocol:
        end = End()
        task = asyncio.create_task(self._handle(end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return end

    async def _handle(self, end: End) -> None:
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                words = (await end.line).split()
            match words:
                case ["OUT", address, port, pid] if len(self._tasks) <= MAX_LINKS:
                    await self._handle_out(end, address.partition("%")[0], int(port), int(pid))
                case ["IN", source, source_port, address, port] if len(self._tasks) <= MAX_LINKS:
                    await self._handle_in(end, Flow(source, int(source_port), address, int(port)))
                case _:
                    pass
        except (ValueError, TimeoutError):
            pass
        finally:
            end.close()

    async def _handle_out(self, end: End, address: str, port: int, pid: int) -> None:
        flow = self._flow(address, port)
        async with asyncio.timeout(CONNECT_LIMIT_S):
            other = await self._open(end, address, port, flow)
        if other is None:
            end.write(b"refused\n")
            return
        end.write(b"ok\n")
        await self._carry(end, other, flow, "out", Link(pid=pid, flow=flow))

    async def _handle_in(self, end: End, flow: Flow) -> None:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            if not await self._until_open("in", flow, end):
                return
        other = await self._connect_local(flow.destination, flow.destination_port)
        if other is None:
            end.write(b"refused\n")
            return
        end.write(b"ok\n")
        await self._carry(end, other, flow, "in", Link(pid=_peer_pid(other), flow=flow.reversed()))

    async def _carry(self, near: End, far: End, flow: Flow, hook: Hook, link: Link) -> None:
        """Join the two ends until both are gone."""
        there = Direction(self, near, far, flow, hook)
        back = Direction(self, far, near, flow.reversed(), _opposite(hook))
        near.incoming, far.incoming = back, there
        near.flow_into(there)
        far.flow_into(back)
        self.links.add(link)
        try:
            await near.gone.wait()
            await far.gone.wait()
        finally:
            far.close()
            self.links.discard(link)
            self.holding.discard(there)
            self.holding.discard(back)

    def _flow(self, address: str, port: int) -> Flow:
        address = address.partition("%")[0]
        source = self.settings.ipv6 if ":" in address else self.settings.ipv4
        return Flow(source, next(self._ports), address, port)

    async def _open(self, end: End, address: str, port: int, flow: Flow) -> End | None:
        """The far end of a new connection; None when it was refused. Waits while the path is blocked or the host is
        down.
        """
        address = address.partition("%")[0]
        if address in self._own:
            return await self._connect_local(address, port)
        if not await self._until_open("out", flow, end):
            return None
        peer = self._peers.get(address)
        loop = asyncio.get_running_loop()
        try:
            if peer is None:
                raise FileNotFoundError(address)
            _, far = await loop.create_unix_connection(End, peer.net_socket)
        except OSError:  # no such host, or its machine is down: nothing answers
            await end.gone.wait()
            return None
        far.write(f"IN {flow.source} {flow.source_port} {flow.destination} {flow.destination_port}\n".encode())
        gone = asyncio.ensure_future(end.gone.wait())
        try:
            await asyncio.wait({gone, far.line}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not (far.line.done() and far.line.result() == "ok"):
                far.close()
        return far if far.line.done() and far.line.result() == "ok" else None

    async def _until_open(self, hook: Hook, flow: Flow, end: End) -> bool:
        """Wait until a connection's first packet and its answer pass. False when the other side gave up meanwhile."""
        while not end.gone.is_set():
            if self.filter.passes(hook, flow) and self.filter.passes(_opposite(hook), flow.reversed()):
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self._changed.wait()
        return False

    async def _connect_local(self, address: str, port: int) -> End | None:
        """A connection to what listens on a port of this node; None when nothing does. exo's API is IPv4 only."""
        loop = asyncio.get_running_loop()
        real = {API_PORT: self.settings.api_port, SSH_PORT: self.settings.ssh_port}.get(port)
        if port == API_PORT and ":" in address:
            return None
        try:
            if real is not None:
                _, far = await loop.create_connection(End, "127.0.0.1", real)
            else:
                _, far = await loop.create_unix_connection(End, self.settings.listener(port))
        except OSError:
            return None
        return far


def _peer_pid(end: End) -> int:
    sock = None if end.transport is None else end.transport.get_extra_info("socket")
    return peer_pid(sock) if sock is not None and sock.family == socket.AF_UNIX else 0


def remove_stale(path: str) -> None:
    """A unix socket's file outlives its process; who listens next removes it first."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
