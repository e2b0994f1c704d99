"""What the rig looked at and did not understand. What needs it is unknown, whatever it found in the rest. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.journal.records import AnyRecord, Finding, Looked

EVENTS: Final = "events"
"""Stands for the entries of the target's event log."""


@dataclass
class Blind:
    """A reducer over records, in their order."""

    misread: Counter[str] = field(default_factory=Counter[str])  # answers and entries that were counted, by facet
    _first: dict[str, str] = field(default_factory=dict[str, str])  # by facet: the first finding of it

    def feed(self, record: AnyRecord) -> None:
        match record:
            case Looked():
                self.misread.update(record.misread)
            case Finding(code="answer-not-understood" | "event-not-understood"):
                facets = cast("list[Any]", record.data.get("facets") or [])
                said = f"{record.data.get('node')} at {record.t:.1f} s: {record.text}"
                for facet in facets:
                    self._first.setdefault(str(facet), said)
            case _:
                pass

    def lines(self, needed: frozenset[str] | None) -> list[str]:
        """What of this (None: of everything) was not understood: a line each, empty when all of it was."""
        misread = self._first.keys() | self.misread.keys()
        return [self._line(facet) for facet in sorted(misread if needed is None else needed & misread)]

    def _line(self, facet: str) -> str:
        counted = f" {self.misread[facet]} times" if self.misread[facet] else ""
        return f"{facet} not understood{counted}; first {self._first.get(facet, 'at a time not known')}"
