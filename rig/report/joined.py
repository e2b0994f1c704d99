"""Every request and probe of a journal put together: its start, its end, and how the analysis counted it.

From the same pass as the tables, so that a plot or a column file never says anything else than they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rig.analysis.requests import Judged
from rig.journal.records import AnyRecord, RequestEnded, RequestStarted

Fate: TypeAlias = Literal["completed", "error", "lost", "void", "unfinished"]


@dataclass(frozen=True, slots=True)
class Joined:
    """`end` and `judged` are None where the journal has no end of it."""

    start: RequestStarted
    end: RequestEnded | None = None
    judged: Judged | None = None

    @property
    def fate(self) -> Fate:
        if self.end is None or self.judged is None:
            return "unfinished"
        return "void" if self.judged.void else self.end.outcome


Sink: TypeAlias = Callable[[Joined], None]


class Join:
    """Feed it every record in order and every judgement; sinks are told of each request once it is whole.

    Holds what is in flight and what the analysis has not settled yet, nothing else.
    """

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks
        self._started: dict[str, RequestStarted] = {}
        self._ended: dict[str, tuple[RequestStarted, RequestEnded]] = {}

    def feed(self, record: AnyRecord) -> None:
        if isinstance(record, RequestStarted):
            self._started[record.id] = record
        elif isinstance(record, RequestEnded):
            start = self._started.pop(record.id, None)
            if start is not None:
                self._ended[record.id] = (start, record)

    def judged(self, judged: Judged) -> None:
        pair = self._ended.pop(judged.attempt.id, None)
        if pair is not None:
            self._tell(Joined(*pair, judged))

    def finish(self) -> None:
        """What is still in flight at the end of the journal is unfinished."""
        for start in self._started.values():
            self._tell(Joined(start))
        self._started.clear()

    def _tell(self, joined: Joined) -> None:
        for sink in self._sinks:
            sink(joined)
