"""What an OpenAI-compatible server tells when it is asked: that it answers, by `GET /health`.

Whatever it answers, it is there: 200 (mlx_lm.server, llama.cpp, vLLM), 404 (Ollama, which has no such path), 401
without a key. llama.cpp and vLLM answer 503 while they load a model. `/v1/models` would not do: mlx_lm.server breaks
the connection there when it was started with a folder and has no cache of a hub.
"""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp

from rig.errors import TargetUnreachable
from rig.targets.target import Answered, Poll

HEALTH: Final = Poll("/health", ())
ANSWER_LIMIT_BYTES: Final = 1024 * 1024


class Server:
    """Polls alone. One client for all nodes."""

    polls = (HEALTH,)

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def read(self, url: str, poll: Poll, *, timeout_s: float) -> Answered:
        """Nothing but that it answers. Raises TargetUnreachable, also for a server that is not ready (5xx)."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(timeout_s), self._session.get(f"{url}{poll.name}") as answer:
                await answer.content.read(ANSWER_LIMIT_BYTES)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise TargetUnreachable(f"{url}{poll.name}: {why}") from error
        if answer.status >= 500:
            raise TargetUnreachable(f"{url}{poll.name} answered {answer.status}: it is not ready")
        return Answered({})

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
