"""Elections in calm weather: none should be, let alone one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.symptoms.calm import Calm
from rig.journal.records import AnyRecord, MasterSeen

MANY: Final = 4
"""So many results of elections on one node in one calm time are without end."""

MAX_KEPT: Final = 100  # of each node in each calm time


@dataclass
class ElectionWatch:
    """A node's log says after each election who has won. `calm` takes in each record before this does."""

    calm: Calm
    judged: int = 0
    _counts: dict[tuple[float, str], list[float]] = field(default_factory=dict[tuple[float, str], list[float]])
    _seen: bool = False

    def feed(self, record: AnyRecord) -> None:
        if isinstance(record, MasterSeen):
            self._seen = True
            if record.source == "log" and self.calm.lasting(0.0, record.at_t) > 0.0:
                self._counts.setdefault((self.calm.since_t, record.node), Firsts(MAX_KEPT)).append(record.at_t)
        else:
            self.look(record.t)

    def look(self, *times: float) -> None:
        """Time has passed."""
        if self._seen:
            self.judged += self.calm.count(times)

    def endless(self) -> list[str]:
        return [
            f"{node}: {len(times)} elections from {times[0]:.1f} to {times[-1]:.1f} s, calm since {since_t:.1f} s"
            for (since_t, node), times in self._counts.items()
            if len(times) >= MANY
        ]
