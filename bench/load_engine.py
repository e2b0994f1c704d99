"""How fast and how exact the load engine is, against the stamped mock server, beside other HTTP stacks.

    python bench/load_engine.py [--quick] [--json FILE]

Throughput: responses of 64 events without gaps, in thousand events per CPU-second of the client process, JSON parsed.
`rig` is the whole engine: draw, request, parse, outcome, two journal lines. The others only read and parse.
Exactness: true time to first token 50 ms, true gap 10 ms; the reported TTFT minus the server's own (request received to
first event sent), so that connecting counts as error. Each engine runs in a process of its own. The server is compiled
from `sse_mock.c` with `cc`. On a shared machine trust ratios, not absolutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import httpx
import msgspec
import uvloop
from httpx_aiohttp import AiohttpTransport
from rich.console import Console
from rich.table import Table

from rig.clock import RunClock
from rig.config.workload import Workload
from rig.journal.write import Journal
from rig.load.collector import settle_collector
from rig.load.deadlines import Limits
from rig.load.draw import Draw, completions_url
from rig.load.open_files import allow_open_files
from rig.load.request import Call, perform
from rig.load.transport import LoadTransport

HERE: Final = Path(__file__).parent
ENGINES: Final = ("floor", "rig", "httpx over aiohttp", "httpx")
_EVENTS: Final = 64
_SERVER_RECORD: Final = struct.Struct(
    "<5Q4I"
)  # of sse_mock's log: seq, received, first, last, ended, events, fault, state, stream

Ask = Callable[[], Awaitable[float]]
"""One request to its end; the TTFT in seconds, from the moment it began."""


def _body() -> bytes:
    return json.dumps(
        {"model": "mock", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": _EVENTS},
        separators=(",", ":"),
    ).encode()


class Splitter:
    """The least that makes events of a body: blocks, JSON."""

    def __init__(self) -> None:
        self._rest = b""
        self.first_ns = 0
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def feed(self, data: bytes) -> None:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: {"):
                value = self._decode(block[6:])
                if not self.first_ns and value["choices"] and value["choices"][0]["delta"].get("content"):
                    self.first_ns = time.monotonic_ns()


@asynccontextmanager
async def _floor(url: str) -> AsyncGenerator[Ask]:
    """Raw asyncio streams, chunk framing left in: a floor for what can be had here."""
    host, port = url.removeprefix("http://").split(":")
    body = _body()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(
        body
    )

    async def ask() -> float:
        start_ns = time.monotonic_ns()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + body)
        first_ns, rest = 0, b""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        while data := await reader.read(65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    value = decode(line[6:])
                    if not first_ns and value["choices"][0]["delta"].get("content"):
                        first_ns = time.monotonic_ns()
            if rest == b"" and b"0\r\n\r\n" in data[-5:]:
                break
        writer.close()
        return (first_ns - start_ns) / 1e9

    yield ask


@asynccontextmanager
async def _rig(url: str) -> AsyncGenerator[Ask]:
    folder = tempfile.TemporaryDirectory(prefix="rig-bench-")
    journal = Journal(Path(folder.name), RunClock())
    transport = LoadTransport(journal.now)
    workload = Workload.model_validate({"name": "bench", "models": [{"model": "mock"}], "streamed_share": 1.0})
    draw, address, limits = Draw(workload, 1, "bench"), completions_url(url), Limits()
    numbers = iter(range(1 << 40))

    async def ask() -> float:
        drawn = draw.next()
        call = Call(
            id=f"r{next(numbers)}",
            source="load",
            client="bench",
            model=drawn.model,
            entry="server",
            url=address,
            streamed=True,
            prompt=drawn.prompt,
            prompt_tokens=drawn.prompt_tokens,
            max_tokens=_EVENTS,
            limits=limits,
            planned_t=journal.now(),
        )
        ended = await perform(call, transport, journal)
        assert ended.outcome == "completed", ended
        assert ended.first_token_t is not None
        return ended.first_token_t - ended.started_t

    with folder:
        yield ask


@asynccontextmanager
async def _httpx(url: str, *, over_aiohttp: bool) -> AsyncGenerator[Ask]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    if over_aiohttp:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
        client = httpx.AsyncClient(transport=AiohttpTransport(client=session), timeout=None, trust_env=False)
    else:
        client = httpx.AsyncClient(timeout=None, trust_env=False, limits=limits)
    body = _body()

    async def ask() -> float:
        start_ns, splitter = time.monotonic_ns(), Splitter()
        async with client.stream("POST", url + "/v1/chat/completions", content=body) as response:
            async for data in response.aiter_raw():
                splitter.feed(data)
        return (splitter.first_ns - start_ns) / 1e9

    async with client:
        yield ask


async def _measure(engine: str, url: str, clients: int, seconds: float, stagger_s: float) -> dict[str, float]:
    """Run `clients` closed loops for so long. Returns events per CPU-second and the sorted TTFTs' percentiles."""
    engines = {"floor": _floor(url), "rig": _rig(url)}
    async with engines.get(engine) or _httpx(url, over_aiohttp=engine != "httpx") as ask:
        return await _loops(ask, clients, seconds, stagger_s)


async def _loops(ask: Ask, clients: int, seconds: float, stagger_s: float) -> dict[str, float]:
    await ask()
    settle_collector()
    ttfts: list[float] = []
    cpu, until = time.process_time(), time.monotonic() + seconds

    async def loop(number: int) -> None:
        await asyncio.sleep(number * stagger_s)
        while time.monotonic() < until:
            ttfts.append(await ask())

    await asyncio.gather(*(loop(number) for number in range(clients)))
    used = time.process_time() - cpu
    ttfts.sort()
    return {
        "requests": float(len(ttfts)),
        "events_per_cpu_s": len(ttfts) * (_EVENTS + 1) / used,
        "p50_s": ttfts[len(ttfts) // 2],
        "p99_s": ttfts[min(len(ttfts) - 1, len(ttfts) * 99 // 100)],
    }


def _child(engine: str, url: str, clients: int, seconds: float, stagger_s: float) -> None:
    allow_open_files(clients)
    print(json.dumps(uvloop.run(_measure(engine, url, clients, seconds, stagger_s))))


class Mock:
    """The server, started with these options; `true_ttft_s` afterwards, from its own log."""

    def __init__(self, binary: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._log = Path(tempfile.mkstemp(prefix="rig-bench-")[1])
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [binary, "--port", str(port), "--tokens", str(_EVENTS), "--log", self._log, *options],
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 5
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def stop(self) -> list[float]:
        """End it. The true TTFTs in seconds, in ascending order."""
        self._process.terminate()
        self._process.wait()
        data = self._log.read_bytes()
        self._log.unlink()
        size = _SERVER_RECORD.size
        rows = [_SERVER_RECORD.unpack_from(data, at) for at in range(0, len(data) - size + 1, size)]
        return sorted((first - received) / 1e9 for _, received, first, *_ in rows if first)


@contextmanager
def mock_server() -> Generator[Path]:
    """The mock server, compiled."""
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        binary = Path(folder) / "sse_mock"
        subprocess.run(["cc", "-O2", "-w", "-o", binary, HERE / "sse_mock.c"], check=True)
        yield binary


def _run(engine: str, mock: Mock, clients: int, seconds: float, stagger_s: float) -> dict[str, float]:
    arguments = [engine, mock.url, str(clients), str(seconds), str(stagger_s)]
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE, check=True, timeout=seconds * 10 + 60
    )
    return json.loads(done.stdout)


def throughput(binary: Path, engines: tuple[str, ...], counts: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for clients in counts:
        for engine in engines:
            mock = Mock(binary)
            result = _run(engine, mock, clients, seconds, 0.0)
            mock.stop()
            rows.append({"engine": engine, "clients": clients, "events_per_cpu_s": round(result["events_per_cpu_s"])})
    return rows


def exactness(binary: Path, engines: tuple[str, ...], counts: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    """Clients start spread over one response's length, so that connects do not come in lockstep."""
    rows: list[dict[str, Any]] = []
    for clients in counts:
        for engine in engines:
            mock = Mock(binary, "--ttft", "50", "--itl", "10")
            result = _run(engine, mock, clients, seconds, 0.7 / clients)
            true_s = mock.stop()
            rows.append(
                {
                    "engine": engine,
                    "clients": clients,
                    "requests": int(result["requests"]),
                    "p50_error_ms": round((result["p50_s"] - true_s[len(true_s) // 2]) * 1000, 2),
                    "p99_error_ms": round((result["p99_s"] - true_s[len(true_s) * 99 // 100]) * 1000, 2),
                }
            )
    return rows


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "engine" else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="shorter, and without 1000 clients")
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        engine, url, clients, seconds, stagger_s = options.child
        _child(engine, url, int(clients), float(seconds), float(stagger_s))
        return
    with mock_server() as binary:
        seconds = 1.5 if options.quick else 5.0
        speed = throughput(binary, ENGINES, (12, 100) if options.quick else (12, 100, 1000), seconds)
        exact = exactness(binary, ENGINES, (12,) if options.quick else (12, 500), 3.0 if options.quick else 10.0)
    console = Console()
    console.print(_table("Throughput", speed))
    console.print(_table("TTFT: reported minus true", exact))
    if options.json is not None:
        options.json.write_text(json.dumps({"throughput": speed, "ttft": exact}, indent=1))


if __name__ == "__main__":
    main()
