"""How fast and how exact the load engine is, against the stamped mock server, beside other HTTP stacks.

    python -m bench.load_engine [--quick] [--json FILE]

Throughput: responses of 64 events without gaps, in thousand events per CPU-second of the client process, JSON parsed.
`rig` is the whole engine: draw, request, parse, outcome, two journal lines. The others only read and parse.
Exactness: true time to first token 50 ms, true gap 10 ms; the reported TTFT minus the server's own (request received to
first event sent), so that connecting counts as error; ITL likewise. A connection a request, the first ones spread
over one response's length. Each engine runs in a process of its own. The server is compiled from `sse_mock.c`. On a
shared machine trust ratios, not absolutes.
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
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import aiohttp
import httpx
import msgspec
import uvloop
from httpx_aiohttp import AiohttpTransport

from bench.table import print_rows
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
TIMES: Final = ("ttft", "itl")
SHARES: Final = (0.5, 0.99)
TARGETS_MS: Final = {12: 1.0, 500: 5.0}
"""By how much the p99 error may be above that of the floor."""
TARGET_EVENTS: Final = 150_000
_SERVER_RECORD: Final = struct.Struct(
    "<5Q4I"
)  # of sse_mock's log: seq, received, first, last, ended, events, fault, state, stream

Ask = Callable[[], Awaitable[tuple[float, float]]]
"""One request to its end; TTFT from the moment it began, and ITL, in seconds."""


def _body() -> bytes:
    return json.dumps(
        {"model": "mock", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": _EVENTS},
        separators=(",", ":"),
    ).encode()


class Splitter:
    """The least that makes events of a body: blocks, JSON."""

    def __init__(self, between: bytes = b"\n\n") -> None:
        self._between = between
        self._rest = b""
        self.first_ns = self.last_ns = self.tokens = 0
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def feed(self, data: bytes) -> None:
        *blocks, self._rest = (self._rest + data).split(self._between)
        for block in blocks:
            if block.startswith(b"data: {"):
                value = self._decode(block[6:])
                if value["choices"] and value["choices"][0]["delta"].get("content"):
                    self.last_ns = time.monotonic_ns()
                    self.first_ns = self.first_ns or self.last_ns
                    self.tokens += 1

    def times(self, start_ns: int) -> tuple[float, float]:
        itl_ns = (self.last_ns - self.first_ns) / max(self.tokens - 1, 1)
        return (self.first_ns - start_ns) / 1e9, itl_ns / 1e9


@asynccontextmanager
async def _floor(url: str) -> AsyncGenerator[Ask]:
    """Raw asyncio streams, chunk framing left in: a floor for what can be had here."""
    host, port = url.removeprefix("http://").split(":")
    body = _body()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(
        body
    )

    async def ask() -> tuple[float, float]:
        start_ns, splitter = time.monotonic_ns(), Splitter(b"\n")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + body)
        while data := await reader.read(65536):
            splitter.feed(data)
            if b"0\r\n\r\n" in data[-5:]:
                break
        writer.close()
        return splitter.times(start_ns)

    yield ask


@asynccontextmanager
async def _rig(url: str) -> AsyncGenerator[Ask]:
    folder = tempfile.TemporaryDirectory(prefix="rig-bench-")
    journal = Journal(Path(folder.name), RunClock())
    transport = LoadTransport(journal.now)
    workload = Workload.model_validate({"name": "bench", "models": [{"model": "mock"}], "streamed_share": 1.0})
    draw, address, limits = Draw(workload, 1, "bench"), completions_url(url), Limits()
    numbers = iter(range(1 << 40))

    async def ask() -> tuple[float, float]:
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
        assert ended.last_token_t is not None
        itl_s = (ended.last_token_t - ended.first_token_t) / (_EVENTS - 1)
        return ended.first_token_t - ended.started_t, itl_s

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

    async def ask() -> tuple[float, float]:
        start_ns, splitter = time.monotonic_ns(), Splitter()
        async with client.stream("POST", url + "/v1/chat/completions", content=body) as response:
            async for data in response.aiter_raw():
                splitter.feed(data)
        return splitter.times(start_ns)

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
    times: list[tuple[float, float]] = []
    cpu, until = time.process_time(), time.monotonic() + seconds

    async def loop(number: int) -> None:
        await asyncio.sleep(number * stagger_s)
        while time.monotonic() < until:
            times.append(await ask())

    await asyncio.gather(*(loop(number) for number in range(clients)))
    used = time.process_time() - cpu
    found = {"requests": float(len(times)), "events_per_cpu_s": len(times) * (_EVENTS + 1) / used}
    for at, name in enumerate(TIMES):
        for share in SHARES:
            found[f"{name}_{share}"] = percentile([one[at] for one in times], share)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


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

    def records(self) -> list[tuple[float, float]]:
        """The true TTFT and ITL in seconds of every stream so far, in the order of their ends."""
        data = self._log.read_bytes()
        size = _SERVER_RECORD.size
        rows = [_SERVER_RECORD.unpack_from(data, at) for at in range(0, len(data) - size + 1, size)]
        return [
            ((first - received) / 1e9, (last - first) / 1e9 / max(events - 1, 1))
            for _, received, first, last, _, events, *_ in rows
            if first
        ]

    def stop(self) -> list[tuple[float, float]]:
        """End it; its records, all of them."""
        self._process.terminate()
        self._process.wait()
        found = self.records()
        self._log.unlink()
        return found


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
        [sys.executable, "-m", "bench.load_engine", "--child", *arguments],
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds * 10 + 60,
    )
    return json.loads(done.stdout)


def throughput(binary: Path, engines: tuple[str, ...], counts: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for clients in counts:
        for engine in engines:
            mock = Mock(binary)
            result = _run(engine, mock, clients, seconds, 0.0)
            mock.stop()
            per_s, asked = round(result["events_per_cpu_s"]), TARGET_EVENTS if engine == "rig" else None
            rows.append(
                {
                    "engine": engine,
                    "clients": clients,
                    "events_per_cpu_s": per_s,
                    "of_floor": round(per_s / rows[-(len(rows) % len(engines))]["events_per_cpu_s"], 2)
                    if len(rows) % len(engines)
                    else 1.0,
                    "target": asked,
                    "met": None if asked is None else per_s >= asked,
                }
            )
    return rows


def exactness(
    binary: Path, engines: tuple[str, ...], counts: tuple[int, ...], seconds: float, rounds: int
) -> list[dict[str, Any]]:
    """Clients start spread over one response's length, so that connects do not come in lockstep. The engines take
    turns; of each figure the median of the rounds is given, for what else the machine does comes in bursts."""
    rows: list[dict[str, Any]] = []
    for clients in counts:
        found = {engine: list[dict[str, float]]() for engine in engines}
        for _ in range(rounds):
            for engine in engines:
                found[engine].append(_errors(engine, Mock(binary, "--ttft", "50", "--itl", "10"), clients, seconds))
        middle = {
            engine: {name: median(one[name] for one in each) for name in each[0]} for engine, each in found.items()
        }
        for engine, errors in middle.items():
            row: dict[str, Any] = {"engine": engine, "clients": clients}
            row |= {name: round(value, 2) for name, value in errors.items()}
            if "floor" in middle:
                over_ms = {
                    name: errors[name] - middle["floor"][name] for name in ("ttft_p99_error_ms", "itl_p99_error_ms")
                }
                row["ttft_p99_over_floor_ms"], row["itl_p99_over_floor_ms"] = (round(v, 2) for v in over_ms.values())
                row["target_ms"] = TARGETS_MS.get(clients) if engine == "rig" else None
                row["met"] = max(over_ms.values()) <= TARGETS_MS[clients] if row["target_ms"] is not None else None
            rows.append(row)
    return rows


def _errors(engine: str, mock: Mock, clients: int, seconds: float) -> dict[str, float]:
    """Of one run: how many requests, and reported minus true in ms, by name."""
    result = _run(engine, mock, clients, seconds, 0.7 / clients)
    true = mock.stop()
    found = {"requests": result["requests"]}
    for at, name in enumerate(TIMES):
        for share in SHARES:
            error_s = result[f"{name}_{share}"] - percentile([one[at] for one in true], share)
            found[f"{name}_p{share * 100:.0f}_error_ms"] = error_s * 1000
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="shorter")
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        engine, url, clients, seconds, stagger_s = options.child
        _child(engine, url, int(clients), float(seconds), float(stagger_s))
        return
    with mock_server() as binary:
        seconds = 1.5 if options.quick else 5.0
        engines = ENGINES[:2] if options.quick else ENGINES
        speed = throughput(binary, engines, (12, 100, 1000), seconds)
        exact = exactness(binary, engines, (12, 500), 3.0 if options.quick else 10.0, 3 if options.quick else 5)
    print_rows("Throughput", speed)
    print_rows("Times: reported minus true", exact)
    if options.json is not None:
        options.json.write_text(json.dumps({"throughput": speed, "times": exact}, indent=1))


if __name__ == "__main__":
    main()
