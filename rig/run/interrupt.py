"""Ctrl-C and SIGTERM: the run is told once, heals, drains shortly and reports. The handlers are put back afterwards."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Literal

from rig.errors import EXIT_SIGINT, EXIT_SIGTERM

if TYPE_CHECKING:
    from types import TracebackType

Reason = Literal["interrupted", "terminated"]
_REASONS: dict[signal.Signals, Reason] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated",
}


class Interrupt:
    """Context manager; `event` is set at the first signal, `reason` says which, `exit_code` what to exit with.

    A second signal changes nothing: healing is bounded (a node heals by itself in any case) and must not be cut short.
    What was ignored when the command was started stays ignored: `nohup rig soak …` outlives its terminal.
    """

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason: Reason | None = None
        self._handled: list[signal.Signals] = []

    @property
    def exit_code(self) -> int:
        return EXIT_SIGTERM if self.reason == "terminated" else EXIT_SIGINT

    def _signalled(self, reason: Reason) -> None:
        if self.reason is None:
            self.reason = reason
            self.event.set()

    def __enter__(self) -> Interrupt:
        loop = asyncio.get_running_loop()
        for number, reason in _REASONS.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._signalled, reason)
                self._handled.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._handled:
            loop.remove_signal_handler(number)
