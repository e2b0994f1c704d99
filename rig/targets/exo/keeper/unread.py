"""Event logs that could not be read when they should have been. What they would have told is unknown. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.recovery.reigns import Reign, Reigns
from rig.journal.records import EVENT_LOG_UNREAD, AnyRecord, EventLogRead, Finding

MAX_FAILED: Final = 1000


@dataclass(frozen=True, slots=True)
class _Failed:
    node: str
    t: float
    reign: Reign | None
    why: str


@dataclass
class Unread:
    """A reducer over records, in their order, after `reigns` has taken them in.

    A later reading to the end of the same reign's log makes good for one that failed. A node that did not reign follows
    some master's log: any later reading of that node will do.
    """

    reigns: Reigns
    _failed: list[_Failed] = field(default_factory=lambda: Firsts[_Failed](MAX_FAILED))
    _read_t: dict[tuple[str, float], float] = field(default_factory=dict[tuple[str, float], float])

    def feed(self, record: AnyRecord) -> None:
        match record:
            case Finding(code=code) if code == EVENT_LOG_UNREAD:
                node = str(record.data.get("node"))
                self._failed.append(_Failed(node, record.t, self.reigns.of(node, record.t), record.text))
            case EventLogRead():
                for reign in (None, self.reigns.of(record.node, record.t)):
                    self._read_t[_key(record.node, reign)] = record.t
            case _:
                pass

    def lines(self) -> list[str]:
        """One for each that nothing made good for."""
        return [
            f"{failed.node} at {failed.t:.1f} s: {failed.why}"
            for failed in self._failed
            if self._read_t.get(_key(failed.node, failed.reign), -math.inf) <= failed.t
        ]


def _key(node: str, reign: Reign | None) -> tuple[str, float]:
    """Reigns of one node begin at different times."""
    return node, -math.inf if reign is None else reign.from_t
