"""What changed in one node's view, facet by facet. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rig.journal.records import Facet


@dataclass(frozen=True)
class Change:
    facet: Facet
    since_t: float | None
    value: Any


class FacetTracker:
    """The last value of each facet of one node, and when the poll that last showed it was sent."""

    def __init__(self) -> None:
        self._seen: dict[Facet, tuple[float, Any]] = {}

    def take(self, facet: Facet, value: Any, asked_t: float) -> Change | None:
        """What an answered poll, sent at `asked_t`, showed: a change, or `None` when it showed the same as before.

        An answer tells of some moment after it was asked for: the change lies after the *asking* of the previous one.
        """
        previous = self._seen.get(facet)
        self._seen[facet] = (asked_t, value)
        if previous is None:
            return Change(facet, None, value)
        since_t, old = previous
        return None if old == value else Change(facet, since_t, value)

    def value(self, facet: Facet) -> Any:
        """The last value, `None` when there was none yet."""
        seen = self._seen.get(facet)
        return None if seen is None else seen[1]
