"""A running embedded cluster, reached as the rig reaches it: over SSH and HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import asyncssh
import psutil
import pytest

from rig.config.inventory import Embedded, Inventory
from rig.lab.embedded.cluster import load_own_inventory
from rig.lab.embedded.lifeline import Lifeline
from rig.lab.embedded.prepare import ClusterLayout, prepare
from rig.lab.embedded.ready import wait_until_ready
from rig.lab.embedded.reap import marked, reap
from tests.nodes.servers import ssh_of


@dataclass(frozen=True)
class Done:
    status: int | None  # None: ended by a signal
    signal: str | None
    out: str
    err: str


@dataclass
class Stream:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seen: bytes = b""

    async def read_until(self, wanted: bytes, *, within_s: float = 5.0) -> None:
        async with asyncio.timeout(within_s):
            while wanted not in self.seen:
                data = await self.reader.read(65536)
                assert data, self.seen[-300:]
                self.seen += data

    async def read_for(self, seconds: float) -> bool:
        """Read what comes; whether the connection ended within that time."""
        try:
            async with asyncio.timeout(seconds):
                while data := await self.reader.read(65536):
                    self.seen += data
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    @property
    def ended_cleanly(self) -> bool:
        return self.seen.endswith(b"0\r\n\r\n")

    @property
    def body(self) -> bytes:
        return self.seen.partition(b"\r\n\r\n")[2]


@dataclass
class Running:
    """A cluster and its owner's side of it; `lifeline.cut()` is the death of the owner."""

    layout: ClusterLayout
    inventory: Inventory
    supervisor: psutil.Popen
    lifeline: Lifeline

    @property
    def folder(self) -> Path:
        return Path(self.layout.folder)

    def api(self, node: str) -> str:
        return self.inventory.nodes[node].api

    def node_folder(self, node: str) -> Path:
        return self.layout.node_folder(node)

    def main_pid(self, node: str) -> int:
        return int(Path(self.inventory.nodes[node].process.pid_path).read_text())

    async def connect(self, node: str, *, key: str | None = None) -> asyncssh.SSHClientConnection:
        ssh = ssh_of(self.inventory.nodes[node])
        assert ssh.host_key is not None
        host_key = asyncssh.import_public_key(ssh.host_key)
        return await asyncssh.connect(
            ssh.host,
            ssh.port,
            username=ssh.user or "rig",
            client_keys=[key or ssh.key or ""],
            known_hosts=([host_key], [], []),
            config=None,
            agent_path=None,
        )

    async def ssh(self, node: str, command: str, *, stdin: str | None = None, timeout_s: float = 20.0) -> Done:
        """One command over a connection of its own."""
        connection = await self.connect(node)
        try:
            done = await connection.run(
                command, timeout=timeout_s, input=stdin, stdin=None if stdin else asyncssh.DEVNULL
            )
        finally:
            connection.close()
        signal = None if done.exit_signal is None else str(done.exit_signal[0])
        status = done.exit_status if signal is None else None
        return Done(status=status, signal=signal, out=str(done.stdout or ""), err=str(done.stderr or ""))

    async def get(self, node: str, path: str, *, timeout_s: float = 5.0) -> tuple[int, Any]:
        return await self.request("GET", node, path, timeout_s=timeout_s)

    async def request(
        self, method: str, node: str, path: str, body: object = None, *, timeout_s: float = 5.0
    ) -> tuple[int, Any]:
        """(status, parsed JSON)."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.request(method, self.api(node) + path, json=body) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    async def deploy(self, model: str, *, min_nodes: int = 1) -> str:
        """Deploy a model unless it is; return its deployment id when it is served."""
        _, body = await self.request("POST", "node-1", "/deployments", {"model_id": model, "min_nodes": min_nodes})
        await until(lambda: self.serving(model), what=f"{model} served")
        if "deployment_id" in body:
            return str(body["deployment_id"])
        return next(
            d["deployment"]["deploymentId"]
            for d in (await self.get("node-1", "/deployments"))[1]["deployments"]
            if d["deployment"]["modelCard"]["modelId"] == model
        )

    async def serving(self, model: str) -> bool:
        """Whether every node says so, and a request through the first one proves it."""
        for node in self.layout.nodes:
            _, body = await self.get(node, "/deployments")
            states = {d["deployment"]["modelCard"]["modelId"]: d["status"] for d in body["deployments"]}
            if states.get(model) != "serving":
                return False
        status, answer = await self.chat("node-1", model, max_tokens=1)
        return status == 200 and answer["choices"][0].get("finish_reason") == "length"

    async def chat(self, node: str, model: str, *, max_tokens: int = 4, timeout_s: float = 10.0) -> tuple[int, Any]:
        """Not streamed; (status, parsed body or None)."""
        body = {"model": model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": "hello"}]}
        try:
            return await self.request("POST", node, "/v1/chat/completions", body, timeout_s=timeout_s)
        except (aiohttp.ClientError, ValueError):
            return 0, None

    async def stream(self, node: str, model: str, *, streamed: bool = True, max_tokens: int = 4000) -> Stream:
        """A chat completion in flight, as raw bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.api(node).rpartition(":")[2]))
        body = {
            "model": model,
            "stream": streamed,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": "x"}],
        }
        payload = json.dumps(body).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(payload) + payload)
        return Stream(reader, writer)

    def master(self) -> str:
        """The node whose main process holds the master's log open; fails unless it is one."""
        (name,) = (
            name
            for name in self.layout.nodes
            if any("event_log/master/events.bin" in f.path for f in psutil.Process(self.main_pid(name)).open_files())
        )
        return name

    async def hosts(self, model: str) -> list[str]:
        """The nodes that a model's only instance runs on, rank 0 first."""
        ids = {(await self.get(name, "/node_id"))[1]: name for name in self.layout.nodes}
        _, instances = await self.get(self.layout.nodes[0], "/state/instances")
        (shards,) = (
            body["shardAssignments"]
            for tagged in instances.values()
            for body in tagged.values()
            if body["shardAssignments"]["modelId"] == model
        )
        runners = {runner: ids[node] for node, runner in shards["nodeToRunner"].items()}
        ranks = {next(iter(s.values()))["deviceRank"]: runners[r] for r, s in shards["runnerToShard"].items()}
        return [ranks[rank] for rank in sorted(ranks)]

    async def whole(self, among: list[str] | None = None) -> bool:
        """Whether the views of these nodes list each of them and no other."""
        among = among or self.layout.nodes
        for node in among:
            try:
                _, nodes = await self.get(node, "/state/topology/nodes", timeout_s=2.0)
            except (aiohttp.ClientError, TimeoutError):
                return False
            if len(nodes) != len(among):
                return False
        return True

    def processes(self) -> list[psutil.Process]:
        """Every living process of the cluster's nodes."""
        return list(marked(f"{self.layout.cluster}/"))

    def own_processes(self) -> list[psutil.Process]:
        """Supervisor, machines and sampler."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                if process.status() != psutil.STATUS_ZOMBIE and any(w.startswith(self.layout.folder) for w in words):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def machine(self, node: str) -> psutil.Process:
        folder = str(self.node_folder(node))
        return next(
            process
            for process in self.own_processes()
            if "rig.lab.embedded.machine" in process.cmdline() and folder in process.cmdline()
        )


async def until(
    condition: Callable[[], Awaitable[bool] | bool], *, what: str, within_s: float = 20.0, every_s: float = 0.05
) -> float:
    """Seconds until a condition held; fails the test when it does not in time."""
    start = time.monotonic()
    while True:
        held = condition()
        if held if isinstance(held, bool) else await held:
            return time.monotonic() - start
        if time.monotonic() - start > within_s:
            pytest.fail(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(every_s)


Until: TypeAlias = Callable[..., Awaitable[float]]
Start: TypeAlias = Callable[..., Awaitable[Running]]


@contextmanager
def _running(folder: Path, spec: Embedded, inert: frozenset[str] = frozenset()) -> Generator[Running]:
    layout = prepare(spec, folder, inert=inert)
    lifeline = Lifeline()
    with (folder / "cluster.log").open("wb") as log:
        supervisor = psutil.Popen(
            [sys.executable, "-m", "rig.lab.embedded.supervise", str(folder), "--lifeline", str(lifeline.read_fd)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lifeline.read_fd],
            start_new_session=True,
        )
    lifeline.release()
    running = Running(layout, load_own_inventory(folder), supervisor, lifeline)
    try:
        asyncio.run(wait_until_ready(running.inventory, deadline=time.monotonic() + 30))
        yield running
    finally:
        if supervisor.poll() is None:
            supervisor.terminate()
            try:
                supervisor.wait(5)
            except psutil.TimeoutExpired:
                supervisor.kill()
                supervisor.wait(5)
        lifeline.cut()
        reap(layout)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three sound nodes, shared: a test leaves it whole."""
    with _running(tmp_path_factory.mktemp("cluster"), Embedded(pace=20)) as running:
        yield running


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three nodes that behave as exo 0.3.70, shared: a test leaves them whole."""
    with _running(
        tmp_path_factory.mktemp("flawed"), Embedded(pace=20, behaviour="exo-0.3.70", habits=False)
    ) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a cluster of the test's own: `await start(nodes=1, behaviour=…)`."""
    contexts: list[Any] = []

    async def begin(*, inert: frozenset[str] = frozenset(), **spec: Any) -> Running:
        wanted = Embedded.model_validate({"pace": 20.0, "nodes": 1, "habits": False, **spec})
        context = _running(tmp_path / f"own-{len(contexts)}", wanted, inert)
        running = await asyncio.to_thread(context.__enter__)
        contexts.append(context)
        return running

    yield begin
    for context in contexts:
        context.__exit__(None, None, None)


@pytest.fixture(name="until")
def until_fixture() -> Until:
    return until
