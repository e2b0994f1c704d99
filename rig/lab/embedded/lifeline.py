"""A pipe that a child holds the read end of and its parent the write end: however the parent dies, the child reads
the end.

The parent never writes. The write end is close-on-exec, so no other child of the parent can keep it open by accident.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable


class Lifeline:
    """The parent's side. Pass `read_fd` to the child (`pass_fds`), then `release()` it; `cut()` ends the child."""

    def __init__(self) -> None:
        self.read_fd, self._write_fd = os.pipe()

    def release(self) -> None:
        """Close the read end here once the child has its own."""
        if self.read_fd >= 0:
            os.close(self.read_fd)
            self.read_fd = -1

    def cut(self) -> None:
        self.release()
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1


def watch(read_fd: int, ended: Callable[[], None]) -> None:
    """Child's side, in a running event loop: call `ended` once when the parent is gone."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if os.read(read_fd, 1) == b"":
            loop.remove_reader(read_fd)
            ended()

    loop.add_reader(read_fd, on_readable)
