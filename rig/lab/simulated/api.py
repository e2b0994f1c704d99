"""exo's API of simulated nodes behind the rig's own `Exo` target: same answers, same parsing, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from rig.errors import TargetUnreachable
from rig.lab.exo import views
from rig.lab.exo.api_types import Reply
from rig.lab.exo.effects import Effect
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.simulation import Simulation
from rig.targets.exo.api import ANSWER_LIMIT_BYTES, CALL_TIMEOUT_S, Exo

FIRST_PORT: Final = 52500  # of the first node's API: a name, nothing listens
_ONE_WAY_S: Final = 0.002
_LOOK_S: Final = 0.05
_EVENTS_AT_ONCE: Final = 500


def port_of(index: int) -> int:
    return FIRST_PORT + index


class VirtualExo(Exo):
    """The nodes are told apart by the port of their URL."""

    def __init__(self, sim: Simulation) -> None:
        super().__init__()
        self._sim = sim

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
        del limit_bytes
        node = await self._reached(url, path, timeout_s, method)
        status, value = self._answer(node, method, path, body or {})
        await asyncio.sleep(_ONE_WAY_S)
        return status, views.encode(value)

    async def _pieces(self, address: str, timeout_s: float) -> AsyncGenerator[bytes]:
        node = await self._reached(address, "", timeout_s, "GET")
        logic = self._sim.logic(node)
        assert logic is not None
        batch: list[bytes] = []
        for piece in views.events_json(logic.replica, STOCK_MODELS):
            batch.append(piece)
            if len(batch) >= _EVENTS_AT_ONCE:
                yield b"".join(batch)
                batch.clear()
        yield b"".join(batch)

    async def _reached(self, url: str, path: str, timeout_s: float, method: str) -> str:
        """The node, once it answers. Raises TargetUnreachable: nobody there, or stopped or busy for too long."""
        node = self._sim.names[(urlsplit(url).port or FIRST_PORT) - FIRST_PORT]
        give_up = self._sim.now + timeout_s
        await asyncio.sleep(_ONE_WAY_S)
        asked = await self._running(node, url + path, give_up)
        parts = [part for part in urlsplit(url + path).path.split("/") if part]
        takes_s = asked.takes(self._sim.now, method, parts)
        if takes_s > 0.0:
            await asyncio.sleep(max(0.0, min(takes_s, give_up - self._sim.now)))
            if await self._running(node, url + path, give_up) is not asked:
                raise TargetUnreachable(f"{url}{path}: ConnectionResetError")
            if self._sim.now >= give_up:
                raise TargetUnreachable(f"{url}{path}: no answer in time")
        return node

    async def _running(self, node: str, address: str, give_up: float) -> NodeLogic:
        """Its process, once it is not stopped. Raises TargetUnreachable."""
        while self._sim.logic(node) is not None and self._sim.is_frozen(node):
            if self._sim.now >= give_up:
                raise TargetUnreachable(f"{address}: no answer in time")
            await asyncio.sleep(_LOOK_S)
        logic = self._sim.logic(node)
        if logic is None:
            raise TargetUnreachable(f"{address}: ConnectionRefusedError")
        return logic

    def _answer(self, node: str, method: str, path: str, body: Mapping[str, Any]) -> tuple[int, object]:
        logic = self._sim.logic(node)
        assert logic is not None
        parts = [part for part in path.split("/") if part]
        match method, parts:
            case "GET", ["node_id"]:
                return 200, logic.node_id
            case "GET", ["deployments"]:
                return 200, logic.deployments()
            case "GET", ["state", *rest]:
                found, value = views.state_part(logic.replica, STOCK_MODELS, lambda t: t, rest)
                return (200, value) if found else (404, {"detail": "Not Found"})
            case _:
                return self._change(node, method, parts, body)

    def _change(self, node: str, method: str, parts: list[str], body: Mapping[str, Any]) -> tuple[int, object]:
        match method, parts:
            case "POST", ["deployments"]:
                return self._ask(node, lambda n, t: n.create_deployment(t, **_placement(body)))
            case "POST", ["place_instance"]:
                return self._ask(node, lambda n, t: n.place_instance(t, **_placement(body)))
            case "DELETE", ["deployments", name]:
                return self._ask(node, lambda n, t: n.delete_deployment(t, name))
            case "DELETE", ["instance", name]:
                return self._ask(node, lambda n, t: n.delete_instance(t, name))
            case _:
                return 404, {"detail": "Not Found"}

    def _ask(self, node: str, act: Callable[[NodeLogic, float], tuple[object, list[Effect]]]) -> tuple[int, object]:
        reply = self._sim.ask(node, act)
        assert isinstance(reply, Reply)
        return reply.status, reply.body


def _placement(body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {name: body[name] for name in ("sharding", "instance_meta", "min_nodes") if name in body}
    return {"model_id": str(body.get("model_id", "")), **wanted}
