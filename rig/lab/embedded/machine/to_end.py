"""Runs a coroutine to its end, and nothing after it.

`asyncio.run` then cancels what is left and waits for it. A task that is cancelled while it starts a process can wait
for ever: asyncio waits for the end of a process whose pipes were never connected. The caller has ended everything and
leaves by `os._exit`, so there is nothing to wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """What `main` returns, in an event loop of its own that is left as it is."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(main)
