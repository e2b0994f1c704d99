"""An httpx transport for load: a fresh connection for each request, stamped arrivals, and no second try.

It stands behind httpx's own seam (`httpx.AsyncBaseTransport`; httpx requests, responses and exceptions). Why not a
stock one: httpcore's pool does quadratic work from some twenty connections on; the transport over aiohttp names every
reset a connect timeout, does not tell when the connection stood, and stamps an answer only when the reading task gets
its turn. Here bytes are stamped in `data_received`. `bench/load_engine.py` measures all three.

Exceptions of sockets and of the parser are mapped here, and nowhere else:

    httpx.ConnectError         no connection: refused, reset, unreachable, TLS
    └── OwnFailureError        the rig's machine could not even try: no address for the name, no port, no descriptor
    httpx.ConnectTimeout       no connection in time
    httpx.ReadError            the connection was reset before the answer's end
    httpx.RemoteProtocolError  the connection was closed before the answer's end
    └── NotHttpError           what came is no HTTP/1.x
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import httpx

from rig.load.access import Access
from rig.load.addresses import addresses_of, is_address, is_own, is_told_by_the_host
from rig.load.http1 import ResponseParser
from rig.load.turns import Turns

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
HELD_S: Final = 0.1  # for which a piece of a stream, stamped, may wait to be read with the next ones
_AT_ONCE: Final = 16
_LEAST_BYTES: Final = 24  # less is no event: the end of a body, or a torn piece
_MOST_BYTES: Final = 2048  # more is several events already
_LAST_CHUNK: Final = b"0\r\n\r\n"
_PORTS: Final = {"http": 80, "https": 443}


class NotHttpError(httpx.RemoteProtocolError):
    """What the server sent is no HTTP/1.x response."""


class OwnFailureError(httpx.ConnectError):
    """It is the rig's own machine that failed, and not the target."""


@dataclass(slots=True)
class Marks:
    """When the steps of one exchange happened, on the transport's clock; kept current while it runs."""

    resolved: bool = False  # the host's address is known, or its name is for the host itself to tell
    connected_t: float | None = None
    first_byte_t: float | None = None
    ended_t: float | None = None  # the answer's end, or the connection's


Sink: TypeAlias = Callable[[Sequence[bytes], Sequence[float]], None]
"""Takes what came of a body, in pieces as the server framed them, and the time of arrival of each."""


class Exchange(asyncio.Protocol):
    """One connection: one request out, one response in.

    What arrived waits in `arrived` with its time, to be `read`; or, once there is a sink for it, is handed over without
    a turn of the loop for each. Pieces of a stream are stamped as they arrive and read several at a time, which takes a
    third of the work: with hundreds of streams it is the loop's work that would make stamps late. They wait for at most
    `HELD_S`, and what ends a chunked body, or is no usual piece of one, does not wait.
    """

    def __init__(self, now: Callable[[], float], marks: Marks, request: bytes) -> None:
        self.parser = ResponseParser()
        self.marks = marks
        self.arrived: deque[tuple[float, bytes]] = deque()
        self.arrivals = 0  # how often something has come in, the end of the connection included
        self._now = now
        self._unread = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._over = False
        self._request = request
        self._sink: Sink | None = None
        self._data: list[bytes] = []  # stamped, and not yet read
        self._times: list[float] = []
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.marks.connected_t = self._now()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self.arrivals += 1
        self._data.append(data)
        self._times.append(self._now())
        if (
            self._sink is None
            or not self.parser.chunked
            or not _LEAST_BYTES < len(data) < _MOST_BYTES
            or data.endswith(_LAST_CHUNK)
            or len(self._data) >= _AT_ONCE
        ):
            self.take_in()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HELD_S, self.take_in)

    def take_in(self) -> None:
        """Read everything that has been stamped and waits."""
        self._stop_timer()
        data, times = self._data, self._times
        if not data:
            return
        self._data, self._times = [], []
        if self.marks.first_byte_t is None:
            self.marks.first_byte_t = times[0]
        pieces = self.parser.one_chunk_each(data) if len(data) > 1 else None
        if pieces is not None and self._sink is not None:
            self._hand_over(self._sink, pieces, times)
            return
        for one, t in zip(data, times, strict=True):
            if self._over:
                return
            self._read(one, t)

    def _read(self, data: bytes, t: float) -> None:
        """One arrival."""
        pieces = self.parser.feed(data)
        if pieces:
            if self._sink is not None:
                self._hand_over(self._sink, pieces, [t] * len(pieces))
            else:
                self._keep(t, pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if self.parser.failure is not None:
            self._finish(t, NotHttpError(self.parser.failure))
        elif self.parser.complete:
            self._finish(t, None)
        elif self._sink is None:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.take_in()
        if self._over:
            return
        self.arrivals += 1
        when = "inside the body" if self.parser.status is not None else "before a response"
        if exc is not None:
            self._finish(self._now(), httpx.ReadError(f"{_named(exc)} {when}"))
        elif self.parser.at_end():
            self._finish(self._now(), None)
        else:
            self._finish(self._now(), httpx.RemoteProtocolError(f"connection closed {when}"))

    async def head(self) -> None:
        """Return when status and headers are there. Raises httpx.TransportError."""
        while self.parser.status is None:
            if self._failure is not None:
                raise self._failure
            await self._wait()

    async def read(self) -> tuple[float, bytes] | None:
        """What arrived next, with its time; None at a proper end. Raises httpx.TransportError after the last of it."""
        while not self.arrived:
            if self._failure is not None:
                raise self._failure
            if self._over:
                return None
            await self._wait()
        item = self.arrived.popleft()
        self._unread -= len(item[1])
        if self._paused and self._unread <= MAX_UNREAD_BYTES // 2 and self._transport is not None:
            self._transport.resume_reading()
            self._paused = False
        return item

    async def read_into(self, sink: Sink) -> None:
        """Hand over everything to `sink` until a proper end. Raises httpx.TransportError after the last of it, and
        what the sink raised."""
        while self.arrived and self._sink is None:
            t, body = self.arrived.popleft()
            self._hand_over(sink, [body], [t])
        self._sink = sink
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
            self._paused = False
        while not self._over:
            await self._wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Close properly after a whole answer, else at once. Lets go of what knows the exchange: a request that leaves
        no cycle behind leaves nothing to the garbage collector, whose looks would make stamps late."""
        transport, self._transport, self._sink = self._transport, None, None
        if transport is not None:
            if self.parser.complete:
                transport.close()
            else:
                transport.abort()
        self._over = True
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _keep(self, t: float, body: bytes) -> None:
        self.arrived.append((t, body))
        self._unread += len(body)
        if self._unread > MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def _hand_over(self, sink: Sink, pieces: Sequence[bytes], times: Sequence[float]) -> None:
        """What the sink raises is a defect; it belongs to the task that reads, not to the loop."""
        try:
            sink(pieces, times)
        except Exception as error:
            self._finish(times[-1], error)

    def _finish(self, t: float, failure: Exception | None) -> None:
        self._over = True
        self._failure = self._failure or failure
        self.marks.ended_t = t
        self._wake()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ArrivalStream(httpx.AsyncByteStream):
    """The body of a response. `read` gives arrival times as well; iterating gives bytes alone, as httpx expects."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (item := await self.exchange.read()) is not None:
            yield item[1]

    async def aclose(self) -> None:
        self.exchange.close()


class LoadTransport(httpx.AsyncBaseTransport):
    """`now` stamps arrivals; `access` gives the headers and certificates that the server wants. No proxy is used.

    Of a request's extensions it reads `timeout` (`connect`, seconds) and `exchange`, a callable that is told of the
    exchange before it connects.
    """

    def __init__(self, now: Callable[[], float], access: Access | None = None) -> None:
        self._now = now
        self.turns = Turns()
        self.access = Access() if access is None else access

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(self._now, Marks(), await _request_bytes(request, self.access.head))
        tell = cast("Callable[[Exchange], None] | None", request.extensions.get("exchange"))
        if tell is not None:
            tell(exchange)
        try:
            await self._connect(request, exchange)
            await exchange.head()
        except BaseException:
            exchange.close()
            raise
        parser = exchange.parser
        assert parser.status is not None
        return httpx.Response(parser.status, headers=parser.headers, stream=ArrivalStream(exchange), request=request)

    async def _connect(self, request: httpx.Request, exchange: Exchange) -> None:
        """Raises httpx.ConnectError, OwnFailureError, httpx.ConnectTimeout."""
        url, marks = request.url, exchange.marks
        tls = self.access.tls() if url.scheme == "https" else None
        timeouts = cast("dict[str, Any]", request.extensions.get("timeout", {}))
        limit_s = cast("float | None", timeouts.get("connect"))
        port = url.port or _PORTS[url.scheme]
        marks.resolved = is_address(url.host) or is_told_by_the_host(url.host)
        failures: list[OSError] = []
        try:
            async with asyncio.timeout(limit_s):
                for address in await addresses_of(url.host, port):
                    marks.resolved = True
                    try:
                        await asyncio.get_running_loop().create_connection(
                            lambda: exchange, address, port, ssl=tls, server_hostname=url.host if tls else None
                        )
                    except TimeoutError:  # an OSError, too
                        raise
                    except OSError as error:  # refused, reset, unreachable, TLS
                        failures.append(error)
                    else:
                        return
        except TimeoutError as error:
            if not marks.resolved:
                raise OwnFailureError(f"no address for {url.host} within {limit_s} s") from error
            raise httpx.ConnectTimeout(f"not connected within {limit_s} s") from error
        except OSError as error:  # the name is unknown
            failures.append(error)
        kind = OwnFailureError if is_own(failures, url.host) else httpx.ConnectError
        raise kind("; ".join(map(_named, failures))) from failures[-1]


async def _request_bytes(request: httpx.Request, more_head: bytes) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n" + more_head + b"\r\n" + await request.aread()


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
