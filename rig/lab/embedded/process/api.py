"""exo's HTTP API on a real port (of 127.0.0.1, or of the node's own network): answers from the node's logic, in the
shapes of exo's own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
import uuid
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web

from rig.lab.embedded.process import validation
from rig.lab.embedded.process.chat import ChatStream, begin
from rig.lab.embedded.process.host import Host
from rig.lab.exo import views
from rig.lab.exo.api_types import ChatRequest, Reply, failure
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.ledger import RequestClosed

MAX_BODY_BYTES = 4 << 20
SHARDINGS = ("Pipeline", "Tensor")
METAS = ("MlxRing", "MlxJaccl")
REQUEST_ID = "x-request-id"
DEFAULT_MAX_TOKENS = 32
CHARS_PER_TOKEN = 4
AWAIT_POLL_S = 0.5
EVENTS_AT_ONCE = 200


def answer(reply: Reply) -> web.Response:
    return plain(reply.body, reply.status)


def plain(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=views.encode(value), content_type="application/json")


@web.middleware
async def errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What a handler refuses, in exo's words. Every connection is closed after its answer, as most clients ask."""
    try:
        response = await handler(request)
    except validation.Invalid as invalid:
        response = plain({"detail": invalid.detail}, status=422)
    except web.HTTPException as error:
        response = plain({"detail": error.reason}, status=error.status)
    return response


class Api:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.logic = host.logic

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/node_id", self.node_id),
            web.get("/state", self.state),
            web.get("/state/{path:.+}", self.state),
            web.get("/events", self.events),
            web.get("/v1/models", self.models),
            web.get("/models", self.models),
            web.get("/instance/previews", self.previews),
            web.get("/instance/await", self.await_instance),
            web.post("/place_instance", self.place_instance),
            web.post("/instance", self.create_instance),
            web.get("/instance/{id}", self.instance),
            web.delete("/instance/{id}", self.delete_instance),
            web.get("/deployments", self.deployments),
            web.post("/deployments", self.create_deployment),
            web.delete("/deployments/{id}", self.delete_deployment),
            web.post("/v1/chat/completions", self.chat),
            web.post("/v1/cancel/{id}", self.cancel),
        ]

    async def _take_its_time(self, request: web.Request) -> None:
        """What exo does before it answers this."""
        path = [part for part in request.path.split("/") if part]
        if (wait_s := self.host.takes(request.method, path)) > 0.0:
            await asyncio.sleep(wait_s)

    # reading

    async def node_id(self, request: web.Request) -> web.Response:
        del request
        return plain(self.logic.node_id)

    async def state(self, request: web.Request) -> web.Response:
        """`/state` and any path below it."""
        await self._take_its_time(request)
        path = [part for part in request.match_info.get("path", "").split("/") if part]
        found, value = views.state_part(self.logic.replica, STOCK_MODELS, self.host.wall, path)
        if not found:
            raise web.HTTPNotFound
        return plain(value)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """One finite array, sent in pieces so that a long log does not hold up the node."""
        await self._take_its_time(request)
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        self.host.event_log.flush()
        pieces = views.events_json(self.logic.replica, STOCK_MODELS)
        while batch := b"".join(itertools.islice(pieces, EVENTS_AT_ONCE)):
            await response.write(batch)
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    async def models(self, request: web.Request) -> web.Response:
        del request
        return plain(views.models_json(STOCK_MODELS, int(time.time())))

    async def previews(self, request: web.Request) -> web.Response:
        model = request.query.get("model_id", "")
        if not model:
            raise validation.Invalid(
                [{"type": "missing", "loc": ["query", "model_id"], "msg": "Field required", "input": None}]
            )
        port = random.randint(49153, 65535)
        return plain(views.previews(self.logic.replica, STOCK_MODELS, model, lambda: str(uuid.uuid4()), port))

    async def instance(self, request: web.Request) -> web.Response:
        path = ["instances", request.match_info["id"]]
        found, value = views.state_part(self.logic.replica, STOCK_MODELS, self.host.wall, path)
        return plain(value) if found else answer(failure(404, "Instance not found"))

    async def await_instance(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events until an instance of the model is ready."""
        model = request.query.get("model_id", "")
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        response.force_close()
        await response.prepare(request)
        while True:
            state = self.logic.state
            instances = state.instances_of(model)
            ready = next((each for each in instances if state.is_ready(each)), None)
            if ready is not None:
                data = {"instance_id": ready.instance_id, "status": "ready"}
                await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                await response.write_eof()
                return response
            await response.write(b": keep-alive\n\n")
            await asyncio.sleep(AWAIT_POLL_S)

    async def deployments(self, request: web.Request) -> web.Response:
        del request
        return plain(self.logic.deployments())

    # commands

    async def place_instance(self, request: web.Request) -> web.Response:
        wanted = await self._placement(request)
        return answer(self.host.call(lambda now: self.logic.place_instance(now, **wanted)))

    async def create_instance(self, request: web.Request) -> web.Response:
        body = await validation.read_body(request)
        if "instance" not in body:
            raise validation.Invalid(
                [{"type": "missing", "loc": ["body", "instance"], "msg": "Field required", "input": body}]
            )
        return answer(self.host.call(lambda now: self.logic.create_instance(now, body["instance"])))

    async def delete_instance(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return answer(self.host.call(lambda now: self.logic.delete_instance(now, name)))

    async def create_deployment(self, request: web.Request) -> web.Response:
        wanted = await self._placement(request)
        await self._take_its_time(request)
        return answer(self.host.call(lambda now: self.logic.create_deployment(now, **wanted)))

    async def delete_deployment(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return answer(self.host.call(lambda now: self.logic.delete_deployment(now, name)))

    async def _placement(self, request: web.Request) -> dict[str, Any]:
        body = await validation.read_body(request)
        return {
            "model_id": validation.text(body, "model_id"),
            "sharding": validation.text(body, "sharding", "Pipeline", one_of=SHARDINGS),
            "instance_meta": validation.text(body, "instance_meta", "MlxRing", one_of=METAS),
            "min_nodes": validation.number(body, "min_nodes", 1),
        }

    async def cancel(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.host.streams:
            return answer(failure(404, "Command not found or already completed"))
        self.host.cancel(name)
        return plain({"message": "Command cancelled.", "command_id": name})

    # generation

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Held open until the logic ends the request, with a keep-alive every so often; or until the client leaves."""
        wanted = chat_request(await validation.read_body(request))
        transport = request.transport
        if transport is None:
            raise web.HTTPBadRequest
        name = request.headers.get(REQUEST_ID, "")[:64]
        stream = self.host.chat(wanted, lambda command_id: self._stream(transport, wanted, command_id, name))
        if isinstance(stream, Reply):
            self._note_refusal(stream, wanted.model, name)
            return answer(stream)
        try:
            response = await begin(request, streamed=wanted.streamed)
            stream.open()
            await self._until_closed(stream)
            return response
        finally:
            if stream.left():
                self.host.client_gone(stream.command_id)

    def _stream(self, transport: asyncio.BaseTransport, wanted: ChatRequest, command_id: str, name: str) -> ChatStream:
        return ChatStream(
            cast("asyncio.Transport", transport),
            settings=self.host.settings,
            ledger=self.host.ledger,
            command_id=command_id,
            model=wanted.model,
            streamed=wanted.streamed,
            request=name,
        )

    def _note_refusal(self, reply: Reply, model: str, name: str) -> None:
        ledger = self.host.ledger
        ledger.write(
            RequestClosed(
                t=ledger.now(),
                node=self.host.settings.name,
                response=f"refused-{uuid.uuid4()}",
                end="error",
                status=reply.status,
                message=model,
                request=name,
            )
        )

    async def _until_closed(self, stream: ChatStream) -> None:
        while not stream.closed.is_set():
            try:
                async with asyncio.timeout(self.host.timers.keepalive_s):
                    await stream.closed.wait()
            except TimeoutError:
                stream.keep_alive()


def chat_request(body: dict[str, Any]) -> ChatRequest:
    """Lengths in tokens; a prompt's is estimated from its text."""
    messages: object = body.get("messages")
    if not isinstance(messages, list):
        raise validation.Invalid(
            [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": body}]
        )
    prompt = json.dumps(messages)
    limit_name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    limit = (
        validation.number(body, limit_name, DEFAULT_MAX_TOKENS)
        if body.get(limit_name) is not None
        else DEFAULT_MAX_TOKENS
    )
    return ChatRequest(
        model=validation.text(body, "model"),
        streamed=body.get("stream") is True,
        prompt_tokens=max(1, len(prompt) // CHARS_PER_TOKEN),
        max_tokens=max(1, min(limit, 8192)),
        prompt_hash=zlib.crc32(prompt.encode()),
    )


async def serve_api(host: Host) -> web.AppRunner:
    """Listen on the node's API port. The handler of a client that leaves is cancelled, so that its request can be."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[errors])
    app.add_routes(Api(host).routes())
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(
        runner, host.settings.api_bind, host.settings.api_port, reuse_port=True, reuse_address=True, backlog=512
    ).start()
    return runner
