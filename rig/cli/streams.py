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

from rig.visible import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from rig.report.plain import PlainConsole

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


class _Visible(io.TextIOWrapper):
    """What is printed here cannot control a terminal, whoever it is from."""

    @property
    def styled(self) -> _Styled:
        return _Styled(self)

    def write(self, s: str, /) -> int:
        super().write(visible(s))
        return len(s)

    def write_styled(self, s: str) -> int:
        """By a console that has made visible what is not its own."""
        return super().write(s)


class _Styled(io.TextIOBase):
    """The same stream for such a console."""

    def __init__(self, stream: _Visible) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._stream.encoding

    def write(self, s: str, /) -> int:
        return self._stream.write_styled(s)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


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


def _lasting(number: int, *, line_buffering: bool) -> tuple[_Lasting, _Visible]:
    """What cannot be said in the terminal's encoding is escaped rather than raised over."""
    raw = _Lasting(number, "w", closefd=False)
    stream = sys.__stdout__ or sys.__stderr__
    encoding = "utf-8" if stream is None else stream.encoding
    text = _Visible(io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering)
    return raw, text


def console_on(*, stderr: bool = False) -> PlainConsole:
    """As `rig.report.plain` makes it, which is imported only now."""
    from rig.report import plain

    return plain.console_on(stderr=stderr)
