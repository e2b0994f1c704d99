"""Writing the journal: one `os.write` a record on an append-only descriptor, then the listeners.

A process killed at any moment leaves whole lines and at most one torn one, the last of the last file. Files are
`journal.jsonl`, then `journal.1.jsonl`, `journal.2.jsonl`… as each reaches its size; none is ever renamed or rewritten.

A journal belongs to one thread (that of the event loop): nothing here locks.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec

from rig.clock import WatchedClock
from rig.errors import JournalError
from rig.journal.records import AnyRecord, Finding
from rig.visible import redacted_bytes

Listener: TypeAlias = Callable[[AnyRecord], None]

ROTATE_BYTES: Final = 64 * 1024 * 1024
MAX_FILES: Final = 256  # 16 GiB in all
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_UNDELIVERED: Final = 10_000


def journal_name(number: int) -> str:
    """The name of the file with this number, from 0 in the order of writing."""
    return "journal.jsonl" if number == 0 else f"journal.{number}.jsonl"


class Journal:
    """The journal of one run, open for writing. Refuses a folder that has one already.

    `failed` is set by a write that did not succeed (disk full, file gone bad): nothing is written from then on.
    `listener_error` is the first exception of a listener; that listener is called no more, and `close` raises.
    """

    def __init__(
        self, folder: Path, clock: WatchedClock, *, rotate_bytes: int = ROTATE_BYTES, max_files: int = MAX_FILES
    ) -> None:
        self._folder = folder
        self.now: Callable[[], float] = clock.now
        self.wall_drift: Callable[[], float] = clock.wall_drift
        self._rotate_bytes = rotate_bytes
        self._max_files = max_files
        self._encoder = msgspec.json.Encoder()
        self._listeners: list[Listener] = []
        self._undelivered: deque[AnyRecord] = deque()
        self._delivering = False
        self._number = 0
        self._size = 0
        self._descriptor: int | None = None
        self.failed = False
        self._failed_before = ""  # the reason, said again at every further write
        self.listener_error: Exception | None = None
        self._descriptor = self._open(0)

    def write(self, record: AnyRecord) -> None:
        """Append one record and pass it to the listeners. Raises JournalError once writing has failed."""
        if self.failed or self._descriptor is None:
            why = f"has failed: {self._failed_before}" if self.failed else f"in {self._folder} is closed"
            raise JournalError(f"the journal {why}")
        line = self._encode(record)
        if len(line) > MAX_LINE_BYTES:
            raise JournalError(f"a record of {len(line)} bytes is longer than a line may be ({MAX_LINE_BYTES})")
        if self._size > 0 and self._size + len(line) > self._rotate_bytes:
            self._rotate()
        self._append(self._descriptor, line)
        self._deliver(record)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each record after it was written. Returns a function that unsubscribes it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def close(self) -> None:
        """Flush to the disk and close; a second call does nothing. Raises JournalError when a listener has failed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            self._finish_file(descriptor)
        finally:
            self._listeners.clear()
        if self.listener_error is not None:
            raise JournalError(f"a listener of the journal failed: {self.listener_error!r}") from self.listener_error

    def _encode(self, record: AnyRecord) -> bytes:
        try:
            return redacted_bytes(self._encoder.encode(record)) + b"\n"
        except UnicodeEncodeError:  # a lone surrogate, from bytes that were no text: evidence is kept, legibly
            return redacted_bytes(self._encoder.encode(_legible(msgspec.to_builtins(record)))) + b"\n"

    def _append(self, descriptor: int, line: bytes) -> None:
        """Write the whole line, normally at once; a short write is continued, which fails if the disk is full."""
        rest = memoryview(line)
        while rest:
            try:
                written = os.write(descriptor, rest)
            except OSError as error:
                raise self._failure("cannot write", error) from error
            self._size += written
            rest = rest[written:]

    def _rotate(self) -> None:
        assert self._descriptor is not None
        if self._number + 1 >= self._max_files:
            self.failed = True
            self._failed_before = f"the journal in {self._folder} has reached its {self._max_files} files"
            raise JournalError(self._failed_before)
        descriptor, self._descriptor = self._descriptor, None
        self._finish_file(descriptor)
        self._descriptor = self._open(self._number + 1)

    def _open(self, number: int) -> int:
        path = self._folder / journal_name(number)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._failure(f"cannot make {path.name}", error) from error
        self._number, self._size = number, 0
        return descriptor

    def _finish_file(self, descriptor: int) -> None:
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise self._failure("cannot flush", error) from error
        finally:
            os.close(descriptor)

    def _failure(self, what: str, error: OSError) -> JournalError:
        self.failed = True
        self._failed_before = f"{what}: {error.strerror} (the journal in {self._folder})"
        return JournalError(self._failed_before)

    def _deliver(self, record: AnyRecord) -> None:
        """Pass records to the listeners in the order of writing, even when a listener writes a record itself."""
        if len(self._undelivered) >= MAX_UNDELIVERED:
            raise JournalError("listeners of the journal write faster than they listen")
        self._undelivered.append(record)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                self._tell(self._undelivered.popleft())
        finally:
            self._delivering = False

    def _tell(self, record: AnyRecord) -> None:
        """A listener that raises must not end the activity that wrote: it is dropped, and its error is kept."""
        for listener in tuple(self._listeners):
            try:
                listener(record)
            except Exception as error:
                self._listeners.remove(listener)
                self.listener_error = self.listener_error or error
                name = getattr(listener, "__qualname__", type(listener).__name__)
                text = f"{name} raised {error!r} and is told no more"
                if not self.failed:
                    self.write(Finding(t=self.now(), code="listener-failed", text=text))


def _legible(value: Any) -> Any:
    """Lone surrogates replaced in every string of a JSON value."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_legible(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_legible(key): _legible(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
