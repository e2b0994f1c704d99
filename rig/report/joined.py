"""Every request and probe of a journal put together: its start, its end, and how the analysis counted it.

From the same pass as the tables, so that a plot or a column file never says anything else than they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rig.analysis.requests.settled import Judged, Settled
from rig.journal.records import RequestEnded, RequestStarted

Fate: TypeAlias = Literal["completed", "error", "lost", "void", "unfinished"]


def fate_of(judged: Judged) -> Fate:
    return "void" if judged.void else judged.outcome


@dataclass(frozen=True, slots=True)
class Joined:
    """`end` and `judged` are None where the journal has no end of it. `windows` are the faults in whose window it was
    (see `rig.analysis.requests.during`)."""

    start: RequestStarted
    end: RequestEnded | None = None
    judged: Judged | None = None
    windows: tuple[int, ...] = ()

    @property
    def fate(self) -> Fate:
        return "unfinished" if self.judged is None else fate_of(self.judged)


Sink: TypeAlias = Callable[[Joined], None]


class Join:
    """A listener of the analysis that tells sinks of one request at a time."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def settled(self, batch: Settled) -> None:
        if not self._sinks:
            return
        windows: defaultdict[int, list[int]] = defaultdict(list)
        for fault, places in batch.windows:
            for at in places.tolist():
                windows[at].append(fault)
        for at in range(len(batch.attempts)):
            start, end = batch.attempts.pair(at)
            self._tell(Joined(start, end, batch.judged(at), tuple(windows.get(at, ()))))

    def unfinished(self, start: RequestStarted) -> None:
        self._tell(Joined(start))

    def _tell(self, joined: Joined) -> None:
        for sink in self._sinks:
            sink(joined)
