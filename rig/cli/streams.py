"""Standard output and error as a command may find them: closed, a pipe whose reader goes, a full disk, a lost terminal.

A run must not end, and above all must not leave a fault in force, because nobody listens any more. So writing to them
never raises; the first error of standard output is remembered, and decides the exit code at the very end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

PIPE_WIDTH: Final = 200
_NOBODY_READS: Final = frozenset({errno.EPIPE, errno.EIO})  # `| head` went, the terminal was closed


class _Lasting(io.FileIO):
    """A descriptor that takes every write; after the first failure what is written goes nowhere."""

    error: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int | None:
        view = memoryview(data)
        if self.error is not None:
            return view.nbytes
        try:
            return super().write(view)
        except OSError as error:
            self.error = error
            return view.nbytes


class Streams:
    """Made once, at the start of the command: puts lasting streams in the place of `sys.stdout` and `sys.stderr`."""

    def __init__(self) -> None:
        _occupy_closed()
        self._raw, sys.stdout = _lasting(1, line_buffering=os.isatty(1))
        _, sys.stderr = _lasting(2, line_buffering=True)

    def finish(self) -> OSError | None:
        """Flush; returns why standard output did not get everything, None also when only its reader went."""
        with contextlib.suppress(ValueError):  # closed by the command itself
            sys.stdout.flush()
        error = self._raw.error
        return None if error is None or error.errno in _NOBODY_READS else error


def _occupy_closed() -> None:
    """A file that is opened later must never be number 1 or 2: a stray message would end up in it."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _lasting(number: int, *, line_buffering: bool) -> tuple[_Lasting, io.TextIOWrapper]:
    """What cannot be said in the terminal's encoding is escaped rather than raised over."""
    raw = _Lasting(number, "w", closefd=False)
    stream = sys.__stdout__ or sys.__stderr__
    encoding = "utf-8" if stream is None else stream.encoding
    text = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering
    )
    return raw, text


def console_on(*, stderr: bool = False) -> Console:
    """Wide where there is no terminal whose width could be asked for, so that tables need not be folded."""
    from rich.console import Console

    found = Console(stderr=stderr, highlight=False)
    if found.is_terminal or "COLUMNS" in os.environ:
        return found
    return Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)
