"""Ctrl-C and SIGTERM: the run is told once, heals, drains shortly and reports. The handlers are put back afterwards."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Literal

from rig.errors import EXIT_SIGINT, EXIT_SIGTERM

if TYPE_CHECKING:
    from types import TracebackType

Reason = Literal["interrupted", "terminated"]


class Interrupt:
    """Context manager; `event` is set at the first signal, `reason` says which, `exit_code` what to exit with.

    A second signal changes nothing: healing is bounded (a node heals by itself in any case) and must not be cut short.
    """

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason: Reason | None = None

    @property
    def exit_code(self) -> int:
        return EXIT_SIGTERM if self.reason == "terminated" else EXIT_SIGINT

    def _signalled(self, reason: Reason) -> None:
        if self.reason is None:
            self.reason = reason
            self.event.set()

    def __enter__(self) -> Interrupt:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._signalled, "interrupted")
        loop.add_signal_handler(signal.SIGTERM, self._signalled, "terminated")
        loop.add_signal_handler(signal.SIGHUP, self._signalled, "terminated")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
