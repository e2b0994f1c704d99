"""The batches of a run on disk, as they come: made here, or by two processes beside this one where the run is long."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from rig.analysis.batches import Batch, Batcher
from rig.journal.read import Run


@contextmanager
def reading(run: Run, *, keep: bool = False) -> Generator[Iterator[Batch]]:
    """In the order of the journal. `keep` the records of requests beside their rows."""
    yield here(run, keep=keep)


def here(run: Run, *, keep: bool = False) -> Iterator[Batch]:
    batcher, lines = Batcher(keep=keep), 0
    for block in run.blocks():
        batcher.feed(block)
        lines += len(block)
        if lines >= 80_000:
            yield batcher.cut()
            lines = 0
    yield batcher.cut()
