"""exo behind the seam of a target: its HTTP API, and the lines of its log that say who is master.

Facts: exo 0.3.70 and its later deployments keeper. There is no master in the API. `/state` as a whole is close to a
megabyte, so only sub-paths are read. `POST /place_instance` is answered with 200 even when nothing fits.

aiohttp's client because polls are many: it takes a fifth of the CPU that httpx takes for one (0.5 ms against 2.5 ms).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from rig.errors import TargetError, TargetMisread, TargetUnreachable
from rig.journal.records import Facet
from rig.nodes.node import NodeConnection
from rig.targets.exo import doubts, event_file, events, shapes, views
from rig.targets.exo.array import ArraySplitter
from rig.targets.target import (
    Answered,
    LogSign,
    NotUnderstood,
    Piece,
    Poll,
    Posted,
    Reported,
    ServedBy,
    TargetEvent,
)
from rig.targets.views import Deployments, Instances

ANSWER_LIMIT_BYTES: Final = 8 * 1024 * 1024
TASKS_LIMIT_BYTES: Final = 64 * 1024 * 1024  # old tasks stay listed, each with its prompt
PIECE_BYTES: Final = 65536
CALL_TIMEOUT_S: Final = 10.0
DEPLOY_TIMEOUT_S: Final = 60.0  # the first one makes exo load all its model cards, which took over 12 s

T = TypeVar("T")

_POLLS: Final = (
    Poll("/node_id", ("node_id",), rare=True),
    Poll("/state/lastEventAppliedIdx", ("event_index",), every=2),
    Poll("/state/instances", ("instances",)),
    Poll("/state/runners", ("runners", "loading")),
    Poll("/deployments", ("deployments",)),
    Poll("/state/topology", ("nodes", "links")),
    Poll("/state/nodeMemory", ("memory",), rare=True),
)
_PARSERS: Final[dict[str, tuple[Facet, Callable[[Any], Any]]]] = {
    "/node_id": ("node_id", shapes.node_id),
    "/state/lastEventAppliedIdx": ("event_index", shapes.event_index),
    "/state/instances": ("instances", shapes.instances),
    "/deployments": ("deployments", shapes.deployments),
    "/state/nodeMemory": ("memory", shapes.memory),
}
_CLAIMS: Final = re.compile(r"promoting self|maintaining self")
_YIELDS: Final = re.compile(r"demoting self|Node (\S+) elected master")
_MATTERS: Final = re.compile(
    r"\b(WARNING|ERROR|CRITICAL)\b|Traceback|Exception|elected|terminated|[Tt]imed out"
    r"|\b[Dd]eployment\b|\b[Ii]nstance\b"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Exo:
    """Every ability of `rig.targets.target`. One client for all nodes, a few kept connections to each."""

    polls = _POLLS
    master_ere = "(promoting|maintaining|demoting) self|Node [^ ]+ elected master"

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def read(self, url: str, poll: Poll, *, timeout_s: float) -> Answered:
        path = poll.name
        status, raw = await self._get(url, path, timeout_s=timeout_s)
        if status == 404 and path == "/deployments":  # no keeper in front, perhaps one in the state
            path = "/state/deployments"
            status, raw = await self._get(url, path, timeout_s=timeout_s)
            if status == 404:
                return Answered({})
        if status == 404:
            raise TargetMisread(f"{url}{path} is not there: {_message(raw)}")
        answer = _answer(url, path, status, raw)
        facets = _parsed(url, path, lambda: _facets(poll.name, answer))
        return Answered(facets, doubts.of(path, answer))

    async def node_id(self, url: str) -> str:
        return (await self._poll(url, "/node_id", "node_id"))["node_id"]

    async def instances(self, url: str) -> Instances:
        """Without what its runners do, which another request would tell."""
        found = views.listed(await self._poll(url, "/state/instances", "instances"))
        return {name: replace(instance, ready=None) for name, instance in found.items()}

    def listed(self, facets: Mapping[Facet, Any]) -> Instances:
        return views.listed(facets)

    def doing(self, facets: Mapping[Facet, Any]) -> Mapping[str, str]:
        return views.doing(facets)

    async def deployments(self, url: str) -> Deployments:
        facets = await self._poll(url, "/deployments", "deployments")
        if "deployments" not in facets:
            raise TargetError(f"{url} has no deployments keeper (/deployments is not there)")
        return facets["deployments"]

    async def deploy(self, url: str, request: Mapping[str, Any]) -> Posted:
        status, raw = await self._call("POST", url, "/deployments", body=request, timeout_s=DEPLOY_TIMEOUT_S)
        if status == 409:
            found = _UUID.search(_message(raw))
            return Posted(found[0] if found else None, created=False)
        answer = _parsed(url, "/deployments", lambda: shapes.mapping(_answer(url, "/deployments", status, raw), ""))
        identity = shapes.pick(answer, "deploymentId")
        return Posted(identity if isinstance(identity, str) else None, created=True)

    async def delete_deployment(self, url: str, deployment: str) -> bool:
        return await self._delete(url, f"/deployments/{deployment}")

    async def place(self, url: str, request: Mapping[str, Any]) -> None:
        status, raw = await self._call("POST", url, "/place_instance", body=request)
        _answer(url, "/place_instance", status, raw)

    async def delete_instance(self, url: str, instance: str) -> bool:
        return await self._delete(url, f"/instance/{instance}")

    async def served_by(self, url: str, response_ids: Iterable[str]) -> dict[str, str]:
        wanted = set(response_ids)
        status, raw = await self._call("GET", url, "/state/tasks", limit_bytes=TASKS_LIMIT_BYTES)
        tasks = _answer(url, "/state/tasks", status, raw)
        pairs = _parsed(url, "/state/tasks", lambda: list(shapes.tasks(tasks)))
        return {name: instance for name, instance in pairs if name in wanted}

    async def events(self, url: str, *, timeout_s: float, limit_bytes: int) -> AsyncGenerator[tuple[int, bytes]]:
        """`GET /events`: one finite array from the log's beginning. TargetError when it is cut or no array."""
        splitter = ArraySplitter()
        index = size = 0
        async with aclosing(self._pieces(f"{url}/events", timeout_s)) as pieces:
            async for piece in pieces:
                try:
                    for entry in splitter.feed(piece):
                        yield index, entry
                        index += 1
                except ValueError as error:
                    raise TargetError(f"{url}/events: {error}") from error
                size += len(piece)
                if size > limit_bytes:
                    raise TargetError(f"{url}/events: longer than {limit_bytes} bytes, read up to event {index}")
        if not splitter.finished:
            raise TargetError(f"{url}/events: cut short after {index} events")

    async def flush_events(self, url: str, *, timeout_s: float) -> None:
        """exo writes out its buffer when it begins with the entries of `/events`; the rest of them is not awaited."""
        size = 0
        async with aclosing(self._pieces(f"{url}/events", timeout_s)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > len("["):
                    return

    async def read_piece(self, conn: NodeConnection, offset: int) -> Piece | None:
        return await event_file.read_piece(conn, offset)

    def records(self) -> event_file.Records:
        return event_file.Records()

    def repeats(self, event: TargetEvent, known: dict[str, str]) -> bool:
        """A runner's status again, or the change between ready and running that every request brings."""
        if event.name != "RunnerStatusUpdated":
            return False
        runner, status = str(event.data.get("runner")), str(event.data.get("status"))
        before = known.get(runner)
        known[runner] = status
        return before == status or (before in views.SERVING_STATUSES and status in views.SERVING_STATUSES)

    def event(self, entry: bytes) -> TargetEvent | ServedBy | Reported | NotUnderstood | None:
        return events.parse(entry)

    def log_sign(self, line: str) -> LogSign:
        """`promoting self`, `maintaining self`: master; `demoting self`, `Node <id> elected master`: not."""
        if _CLAIMS.search(line):
            return LogSign(claims_master=True, matters=True)
        if (yields := _YIELDS.search(line)) is not None:
            return LogSign(claims_master=False, matters=True, elected=yields[1] or "")
        return LogSign(claims_master=None, matters=_MATTERS.search(line) is not None)

    async def _pieces(self, address: str, timeout_s: float) -> AsyncGenerator[bytes]:
        """The body of a good answer in pieces, all of it within `timeout_s`."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._client().get(address)
            try:
                if response.status != 200:
                    raise TargetError(f"{address} answered {response.status}")
                while True:
                    async with asyncio.timeout_at(deadline):
                        await asyncio.sleep(0)  # megabytes that are there already must not hold up the event loop
                        piece = await response.content.read(PIECE_BYTES)
                    if not piece:
                        return
                    yield piece
            finally:
                response.close()
        except (aiohttp.ClientError, OSError) as error:
            raise TargetUnreachable(f"{address}: {_reason(error)}") from error

    def _client(self) -> aiohttp.ClientSession:
        """Made at the first call, as it belongs to the running event loop. No limits here: every call has its own."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _poll(self, url: str, path: str, facet: Facet) -> Mapping[Facet, Any]:
        return (await self.read(url, Poll(path, (facet,)), timeout_s=CALL_TIMEOUT_S)).facets

    async def _get(self, url: str, path: str, *, timeout_s: float) -> tuple[int, bytes]:
        return await self._call("GET", url, path, timeout_s=timeout_s)

    async def _delete(self, url: str, path: str) -> bool:
        status, raw = await self._call("DELETE", url, path)
        if status == 404:
            return False
        _answer(url, path, status, raw)
        return True

    async def _call(
        self,
        method: str,
        url: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
        limit_bytes: int = ANSWER_LIMIT_BYTES,
    ) -> tuple[int, bytes]:
        """Status and body, whole within `timeout_s` however it drips. TargetUnreachable, or TargetError if too long."""
        content = None if body is None else msgspec.json.encode(dict(body))
        headers = {} if body is None else {"content-type": "application/json"}
        parts: list[bytes] = []
        size = 0
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client().request(method, f"{url}{path}", data=content, headers=headers) as response,
            ):
                async for part in response.content.iter_any():
                    size += len(part)
                    if size > limit_bytes:
                        raise TargetError(f"{url}{path}: the answer is longer than {limit_bytes} bytes")
                    parts.append(part)
                return response.status, b"".join(parts)
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise TargetUnreachable(f"{url}{path}: {_reason(error)}") from error


def _facets(path: str, raw: Any) -> Mapping[Facet, Any]:
    if path == "/state/topology":
        nodes, links = shapes.nodes_and_links(raw)
        return {"nodes": nodes, "links": links}
    if path == "/state/runners":
        return {"runners": shapes.runners(raw), "loading": shapes.loading(raw)}
    facet, parse = _PARSERS[path]
    return {facet: parse(raw)}


def _answer(url: str, path: str, status: int, raw: bytes) -> Any:
    """The JSON of a good answer. Raises TargetError with what the target said."""
    if status >= 400:
        raise TargetError(f"{url}{path} answered {status}: {_message(raw)}")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TargetMisread(f"{url}{path}: no JSON ({error}): {_tail(raw)}") from error


def _parsed(url: str, path: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except ValueError as error:
        raise TargetMisread(f"{url}{path}: {error}") from error


def _message(raw: bytes) -> str:
    """What an error answer says: `{"error": {"message"}}`, `{"detail": …}`, or its text."""
    try:
        answer = shapes.mapping(msgspec.json.decode(raw), "an error")
        error = answer.get("error")
        message = shapes.mapping(error, "error").get("message") if isinstance(error, dict) else None
    except (ValueError, msgspec.DecodeError):
        return _tail(raw)
    return message if isinstance(message, str) else _tail(raw)


def _tail(raw: bytes) -> str:
    return " ".join(raw[:400].decode("utf-8", "replace").split())


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__} {error}".strip()
