"""A real HTTP server on loopback that answers as exo's API does, with what a test puts into `answers`.

As a script it serves a folder's captures in a process of its own (to be stopped by SIGSTOP): it prints its URL.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

DATA = Path(__file__).with_name("data")
STATE: dict[str, Any] = json.loads((DATA / "state_2inst_3dep.json").read_text())

Answer = bytes | Callable[[web.Request], Awaitable[web.StreamResponse]]


def stock_answers() -> dict[str, Answer]:
    """Paths → bodies, from the captures."""
    paths = ("instances", "runners", "topology", "lastEventAppliedIdx", "nodeMemory", "tasks")
    answers: dict[str, Answer] = {f"/state/{path}": json.dumps(STATE[path]).encode() for path in paths}
    answers["/node_id"] = json.dumps(STATE["topology"]["nodes"][0]).encode()
    answers["/deployments"] = (DATA / "deployments_mixed.json").read_bytes()
    answers["/events"] = (DATA / "events.json").read_bytes()
    return answers


@dataclass
class Api:
    """`asked` is every request so far as (method, path, body); `outstanding_max` the most at the same time."""

    answers: dict[str, Answer] = field(default_factory=stock_answers)
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    asked: list[tuple[str, str, bytes]] = field(default_factory=list[tuple[str, str, bytes]])
    outstanding_max: int = 0
    url: str = ""
    _outstanding: int = 0
    _runner: web.AppRunner | None = None
    _port: int = 0

    async def start(self) -> None:
        """On the same port again after a `stop`."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = int(self._runner.addresses[0][1])
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def count(self, path: str) -> int:
        return sum(1 for _, asked, _ in self.asked if asked == path)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path, await request.read()))
        self._outstanding += 1
        self.outstanding_max = max(self.outstanding_max, self._outstanding)
        try:
            answer = self.answers.get(f"{request.method} {request.path}", self.answers.get(request.path))
            if answer is None:
                return web.Response(status=404, body=b'{"detail":"Not Found"}')
            if isinstance(answer, bytes):
                return web.Response(status=self.statuses.get(request.path, 200), body=answer)
            return await answer(request)
        finally:
            self._outstanding -= 1


async def main() -> None:
    api = Api()
    await api.start()
    print(api.url, flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the test that started it is gone


if __name__ == "__main__":
    asyncio.run(main())
