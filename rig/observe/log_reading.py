"""One reading of a target's event log, against what is known of the log. Pure: entries in, new ones out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

import msgspec

from rig.targets.target import NotUnderstood, Reported, ServedBy, TargetEvent

MAX_HELD: Final = 50_000  # entries that matter, kept while it is open whether the log is the known one
MAX_REPORTERS: Final = 64  # node ids, new at each start of a node, whose reports are counted in one reading

Matter = TargetEvent | ServedBy
Meaning = Matter | Reported | NotUnderstood
Reports = dict[str, int]
Numbered = tuple[int, Matter, Reports]


@dataclass
class KnownLog:
    """What was read of a node's present log. `first` and `last` are digests of entry 0 and entry `count - 1`."""

    first: str = ""
    session: str = ""
    count: int = 0
    last: str = ""
    said: dict[str, str] = field(default_factory=dict[str, str])  # what the target remembers of it, against repeats


class LogReading:
    """`count` entries were taken by now; `reports` are those in them, by node."""

    def __init__(self, known: KnownLog) -> None:
        self._known = known
        self._held: list[Numbered] = []
        self._entry = b""
        self.reports: Reports = {}
        self._gone: set[str] = set()  # nodes that were timed out
        self.count = 0
        self.first = ""
        self.matching = known.count > 0  # still in what was read before, as far as can be told
        self.anew = known.count == 0  # the log is not the known one
        self.misread = 0  # entries that were not understood
        self.first_misread = ""

    def take(self, index: int, entry: bytes, meaning: Meaning | None) -> list[Numbered]:
        """The next entry, and what it means if it matters → entries new by now, each with the reports before it."""
        self.count, self._entry = index + 1, entry
        if isinstance(meaning, NotUnderstood):
            self.misread += 1
            self.first_misread = self.first_misread or f"entry {index}: {meaning.why}"
            meaning = None
        matter = self._without_reports(meaning)
        if index == 0:
            self.first = digest(entry)
            if self.matching and self.first != self._known.first:
                self.matching, self.anew = False, True
        new: list[Numbered] = [] if matter is None else [(index, matter, dict(self.reports))]
        if not self.matching:
            return new
        if len(self._held) < MAX_HELD:
            self._held += new
        if index == self._known.count - 1:
            return self._decide(anew=digest(entry) != self._known.last)
        return []

    def _without_reports(self, meaning: Matter | Reported | None) -> Matter | None:
        """The first report of a node, also after it was timed out, matters: the node is there."""
        if isinstance(meaning, TargetEvent) and meaning.name == "NodeTimedOut":
            self._gone.add(str(meaning.data.get("node")))
        if not isinstance(meaning, Reported):
            return meaning
        node = meaning.node
        if node not in self.reports and len(self.reports) >= MAX_REPORTERS:
            return None
        arrived = node not in self.reports or node in self._gone
        self.reports[node] = self.reports.get(node, 0) + 1
        self._gone.discard(node)
        return TargetEvent("NodeReported", {"node": node}) if arrived else None

    def ended(self) -> list[Numbered]:
        """The log ended here. One that is shorter than it was has begun anew."""
        return self._decide(anew=True) if self.matching else []

    @property
    def last(self) -> str:
        return digest(self._entry) if self.count else ""

    def _decide(self, *, anew: bool) -> list[Numbered]:
        held, self._held = self._held, []
        self.matching, self.anew = False, anew
        return held if anew else []


def digest(entry: bytes) -> str:
    """The same for the same entry, however its JSON is written."""
    try:
        text = msgspec.json.encode(msgspec.json.decode(entry), order="sorted")
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = entry
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:12]
