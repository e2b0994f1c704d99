"""Calls as the tests make them."""

from __future__ import annotations

import httpx

from rig.load.deadlines import Limits
from rig.load.draw import completions_url
from rig.load.request import Call

LIMITS = Limits(connect_s=1.0, progress_s=1.0, total_s=3.0)


def call(
    url: str | httpx.URL, *, streamed: bool = True, limits: Limits = LIMITS, number: int = 1, max_tokens: int = 8
) -> Call:
    return Call(
        id=f"r{number}",
        source="load",
        client="client-1",
        model="mock",
        entry="server",
        url=completions_url(url) if isinstance(url, str) else url,
        streamed=streamed,
        prompt="hello",
        prompt_tokens=1,
        max_tokens=max_tokens,
        limits=limits,
        planned_t=0.0,
    )
