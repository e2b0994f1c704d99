"""The batches of a run on disk, in the order of the journal: made here, or by two child processes.

A long journal has many files. Each child takes every second file and makes batches ahead of the demand; all judging
happens here, batch after batch, so that both ways give the same result.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO, Final, TypeAlias

from rig.analysis.intake.batches import Batch, Batcher
from rig.errors import JournalError
from rig.journal.read import JournalFile, ReadNotes, Run

LINES: Final = 80_000
"""Lines of a file in a batch; the last one of a file may have fewer."""
PROCESSES: Final = 2
_FILES: Final = 3
"""Files from which child processes are worth their start."""
_AHEAD: Final = 3
"""Batches that each child may have waiting."""
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}  # else numpy starts idle threads
_LENGTH: Final = struct.Struct("<Q")
Message: TypeAlias = Batch | ReadNotes | JournalError


@contextmanager
def reading(run: Run, *, keep: bool = False) -> Generator[Iterator[Batch]]:
    """`keep` keeps the records of requests beside their rows; then everything is read in this process. The run's notes
    are complete when all batches were taken. Raises JournalError when a file cannot be read."""
    files = run.files()
    if keep or len(files) < _FILES:
        yield here(run, files, keep=keep)
        return
    with beside(run, files) as found:
        yield found


def here(run: Run, files: Sequence[JournalFile], *, keep: bool = False) -> Iterator[Batch]:
    for file in files:
        yield from _batches(file, keep=keep)
        run.notes.take(file.notes)


@contextmanager
def beside(run: Run, files: Sequence[JournalFile]) -> Generator[Iterator[Batch]]:
    """The children end when they are done, or when the context is left."""
    with ExitStack() as stack:
        if gc.isenabled():  # batches hold many objects and no cycles
            stack.callback(gc.enable)
            gc.disable()
        works = [stack.enter_context(_started(files[first::PROCESSES])) for first in range(PROCESSES)]
        yield _received(run, files, works)


@contextmanager
def _started(files: Sequence[JournalFile]) -> Generator[IO[bytes]]:
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: no file in the working directory is taken for a module
    command = [sys.executable, "-P", "-m", "rig.analysis.intake.reading"]
    command += [f"{file.last:d}:{file.schema}:{file.path}" for file in files]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path} | _ONE_THREAD
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.terminate()


def _batches(file: JournalFile, *, keep: bool = False) -> Iterator[Batch]:
    batcher, lines = Batcher(keep=keep), 0
    for block in file.blocks():
        batcher.feed(block)
        lines += len(block)
        if lines >= LINES:
            yield batcher.cut()
            lines = 0
    yield batcher.cut()


def _received(run: Run, files: Sequence[JournalFile], works: Sequence[IO[bytes]]) -> Iterator[Batch]:
    """From each file its batches, then its notes."""
    for number, file in enumerate(files):
        while not isinstance(message := _next(works[number % PROCESSES], file), ReadNotes):
            if isinstance(message, JournalError):
                raise message
            yield message
        run.notes.take(message)


def _next(work: IO[bytes], file: JournalFile) -> Message:
    head = work.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    content = work.read(length)
    if not content or len(content) < length:
        raise JournalError(f"the process that read {file.path} has died")
    return pickle.loads(content)


def _work(files: Sequence[str]) -> None:
    """In a process of its own: batches of files to stdout. `files` are `LAST:SCHEMA:PATH`, see `JournalFile`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    gc.disable()  # likewise
    waiting: Queue[Message | None] = Queue(_AHEAD)
    sender = Thread(target=_send, args=(waiting,))
    sender.start()
    try:
        for given in files:
            last, schema, path = given.split(":", 2)
            file = JournalFile(Path(path), last=last == "1", schema=int(schema))
            for batch in _batches(file):
                waiting.put(batch)
            waiting.put(file.notes)
    except JournalError as error:
        waiting.put(error)
    finally:
        waiting.put(None)
        sender.join()


def _send(waiting: Queue[Message | None]) -> None:
    """Any failure ends the process: nothing else empties the queue."""
    try:
        with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as out:
            while (message := waiting.get()) is not None:
                content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
                out.write(_LENGTH.pack(len(content)))
                out.write(content)
    except OSError:
        os._exit(1)  # the parent is gone
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    _work(sys.argv[1:])
