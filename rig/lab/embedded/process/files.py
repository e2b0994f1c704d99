"""The files under EXO_HOME: the locked pid file, the rotated log, the event logs (which only a master holds open)."""

from __future__ import annotations

import fcntl
import os
import time
from datetime import datetime
from io import BufferedRandom
from pathlib import Path

import msgspec

KEPT = 5
MAX_LOG_BYTES = 64 * 1024 * 1024


class AlreadyRunning(Exception):
    """Another main process holds the pid file."""


class PidFile:
    """Locked for as long as the process lives; the kernel drops the lock however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._fd)
            raise AlreadyRunning(path) from error

    def write(self) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)


def rotate(path: Path, stem: str, suffix: str) -> None:
    """`PATH` becomes `STEM.DATE_TIME_MICROS.SUFFIX`; the oldest beyond `KEPT` are removed."""
    if path.exists() and path.stat().st_size:
        stamp = datetime.fromtimestamp(path.stat().st_mtime).astimezone().strftime("%Y-%m-%d_%H-%M-%S_%f")
        path.rename(path.with_name(f"{stem}.{stamp}.{suffix}"))
    old = sorted(each for each in path.parent.glob(f"{stem}.*.{suffix}") if each != path)
    for each in old[:-KEPT]:
        each.unlink(missing_ok=True)


class ExoLog:
    """`exo_log/exo.log`: one `write` a line."""

    def __init__(self, home: Path) -> None:
        folder = home / "exo_log"
        (folder / "runner_log").mkdir(parents=True, exist_ok=True)
        path = folder / "exo.log"
        rotate(path, "exo", "log")
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._left_bytes = MAX_LOG_BYTES

    def write(self, text: str) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        line = f"{stamp}.{int(now % 1 * 1000):03d} | INFO     | {text}\n".encode()
        self._left_bytes -= len(line)
        if self._left_bytes > 0:
            os.write(self._fd, line)


class EventLog:
    """`event_log/{api,master}/events.bin`: records of msgpack, each behind its length in four bytes, big-endian. Of the
    master's only that it is open matters to anybody outside: it stays empty.
    """

    def __init__(self, home: Path, kind: str) -> None:
        self._folder = home / "event_log" / kind
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file: BufferedRandom | None = None

    def open(self) -> None:
        """A new file, unless one is open; one that was left behind becomes an archive."""
        if self._file is None:
            path = self._folder / "events.bin"
            rotate(path, "events", "bin.zst")
            self._file = path.open("w+b")

    def append(self, event: object) -> None:
        """Buffered, as exo's is."""
        assert self._file is not None
        record = msgspec.msgpack.encode(event)
        self._file.write(len(record).to_bytes(4, "big") + record)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
