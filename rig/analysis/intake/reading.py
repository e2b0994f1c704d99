"""The batches of a run on disk, in the order of the journal: made here, or by two processes beside this one.

A long journal is in many files. Each process takes every second of them and makes its batches ahead of what is asked
for; what is judged is judged here, one batch after the other, so that both ways say the same.
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
"""So many lines of a file make a batch, or what is left of it."""
PROCESSES: Final = 2
_FILES: Final = 3
"""From so many on it is worth while to start them."""
_AHEAD: Final = 3
"""Batches that wait, in each process."""
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}  # else numpy starts some that do nothing
_LENGTH: Final = struct.Struct("<Q")
Told: TypeAlias = Batch | ReadNotes | JournalError


@contextmanager
def reading(run: Run, *, keep: bool = False) -> Generator[Iterator[Batch]]:
    """`keep` the records of requests beside their rows, which takes their being read here. The run's notes are whole
    when all batches were taken. Raises JournalError when a file cannot be read."""
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
    """The processes end when they are done, or when nobody listens any more."""
    with ExitStack() as stack:
        if gc.isenabled():  # what a batch holds does not refer to itself, and there is much of it
            stack.callback(gc.enable)
            gc.disable()
        works = [stack.enter_context(_started(files[first::PROCESSES])) for first in range(PROCESSES)]
        yield _told(run, files, works)


@contextmanager
def _started(files: Sequence[JournalFile]) -> Generator[IO[bytes]]:
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: nothing that lies where the rig was called is taken for a module of its own
    command = [
        sys.executable,
        "-P",
        "-m",
        "rig.analysis.intake.reading",
        *(f"{file.last:d}{file.path}" for file in files),
    ]
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


def _told(run: Run, files: Sequence[JournalFile], works: Sequence[IO[bytes]]) -> Iterator[Batch]:
    """Each file's batches, then its notes."""
    for number, file in enumerate(files):
        while not isinstance(told := _next(works[number % PROCESSES], file), ReadNotes):
            if isinstance(told, JournalError):
                raise told
            yield told
        run.notes.take(told)


def _next(work: IO[bytes], file: JournalFile) -> Told:
    head = work.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    content = work.read(length)
    if not content or len(content) < length:
        raise JournalError(f"the process that read {file.path} has died")
    return pickle.loads(content)


def _work(files: Sequence[str]) -> None:
    """In a process of its own: files, each after whether it is the last of its journal, to stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    gc.disable()  # likewise
    waiting: Queue[Told | None] = Queue(_AHEAD)
    sender = Thread(target=_send, args=(waiting,))
    sender.start()
    try:
        for given in files:
            file = JournalFile(Path(given[1:]), last=given[0] == "1")
            for batch in _batches(file):
                waiting.put(batch)
            waiting.put(file.notes)
    except JournalError as error:
        waiting.put(error)
    finally:
        waiting.put(None)
        sender.join()


def _send(waiting: Queue[Told | None]) -> None:
    """Whatever fails here ends the process: nobody else would take what waits."""
    try:
        with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as out:
            while (told := waiting.get()) is not None:
                content = pickle.dumps(told, pickle.HIGHEST_PROTOCOL)
                out.write(_LENGTH.pack(len(content)))
                out.write(content)
    except OSError:
        os._exit(1)  # the work is for nobody
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    _work(sys.argv[1:])
