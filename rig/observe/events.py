"""Reading the target's event log: exact order without times.

exo's `/events` is one array that begins at 0 each time, so it is read rarely (around faults, at the end) and bounded.
Only entries that matter and were not journalled before are written. A *session* is one life of a node's log: its name
comes from the first entry, so that nodes that follow the same master's log share it; a log that grew shorter, or tells
another story at the place that was read last, has begun anew.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from rig.errors import TargetError
from rig.journal.records import EventLogRead, EventSeen, Finding, InstanceServed
from rig.journal.write import Journal
from rig.observe.target import Reported, ServedBy, Target, TargetEvent
from rig.observe.views import SERVING_STATUSES

LIMIT_BYTES: Final = 128 * 1024 * 1024
TIMEOUT_S: Final = 20.0
MAX_HELD: Final = 50_000  # entries that matter, kept while it is open whether the log is the known one
SERVED_AT_ONCE: Final = 500
MAX_SERVED_KNOWN: Final = 10_000  # logs are read around each fault: no more than this passes in between

MAX_REPORTERS: Final = 64  # node ids, new at each start of a node, whose reports are counted in one reading

Matter = TargetEvent | ServedBy
Reports = dict[str, int]
Numbered = tuple[int, Matter, Reports]


@dataclass
class KnownLog:
    """What was read of a node's present log. `first` and `last` are digests of entry 0 and entry `count - 1`."""

    first: str = ""
    session: str = ""
    count: int = 0
    last: str = ""
    statuses: dict[str, str] = field(default_factory=dict[str, str])  # runner → status as last written


class LogReading:
    """One reading of a log from its beginning, against what is known of it. Pure: entries in, new ones out."""

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

    def take(self, index: int, entry: bytes, meaning: Matter | Reported | None) -> list[Numbered]:
        """The next entry, and what it means if it matters → entries new by now, each with the reports before it."""
        self.count, self._entry = index + 1, entry
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


class EventLogs:
    """The event logs of all nodes, each read up to some place."""

    def __init__(
        self, target: Target, journal: Journal, *, limit_bytes: int = LIMIT_BYTES, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._target = target
        self._journal = journal
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s
        self._logs: dict[str, KnownLog] = {}
        self._begun: dict[str, int] = {}  # digest of a first entry → logs that began with it, beyond the first
        self._served: OrderedDict[str, None] = OrderedDict()
        self._untold: dict[str, list[str]] = {}  # instance → response ids that one reading found so far

    async def read(self, node: str, url: str) -> int:
        """Journal what is new in this node's log; returns how many records. A log that cannot be read is a finding."""
        reading = LogReading(self._logs.get(node, KnownLog()))
        written = 0
        try:
            events = self._target.events(url, timeout_s=self._timeout_s, limit_bytes=self._limit_bytes)
            async with aclosing(events) as entries:
                async for index, entry in entries:
                    written += self._write(node, reading, reading.take(index, entry, self._target.event(entry)))
            written += self._write(node, reading, reading.ended())
            written += self._tell_served(node)
            self._tell_end(node, reading)
        except TargetError as error:
            data = {"node": node, "events": reading.count}
            finding = Finding(t=self._journal.now(), code="event-log-unread", text=error.message[:500], data=data)
            self._journal.write(finding)
        finally:
            written += self._tell_served(node)
        if reading.count and not reading.matching:
            log = self._log(node, reading)
            log.count, log.last = reading.count, reading.last
        return written

    def _tell_end(self, node: str, reading: LogReading) -> None:
        if reading.count:
            session = self._log(node, reading).session
            t = self._journal.now()
            self._journal.write(
                EventLogRead(t=t, node=node, session=session, count=reading.count, reports=reading.reports)
            )

    def _log(self, node: str, reading: LogReading) -> KnownLog:
        """What is known of the log that this reading is of: a fresh one when it has begun anew."""
        log = self._logs.get(node)
        if log is not None and not reading.anew:
            return log
        reading.anew = False
        session = reading.first
        if log is not None and log.first == reading.first:
            number = self._begun[reading.first] = self._begun.get(reading.first, 1) + 1
            session = f"{reading.first}.{number}"
        self._logs[node] = fresh = KnownLog(first=reading.first, session=session)
        return fresh

    def _write(self, node: str, reading: LogReading, new: list[Numbered]) -> int:
        written = 0
        for index, matter, reports in new:
            log = self._log(node, reading)
            if isinstance(matter, ServedBy):
                written += self._note_served(node, matter)
            elif not _is_flicker(log, matter):
                t = self._journal.now()
                record = EventSeen(
                    t=t,
                    node=node,
                    session=log.session,
                    index=index,
                    name=matter.name,
                    data=matter.data,
                    reports=reports,
                )
                self._journal.write(record)
                written += 1
        return written

    def _note_served(self, node: str, served: ServedBy) -> int:
        """Once per request, whichever node's log told it first; many to a record."""
        if served.response_id in self._served:
            return 0
        self._served[served.response_id] = None
        if len(self._served) > MAX_SERVED_KNOWN:
            self._served.popitem(last=False)
        told = self._untold.setdefault(served.instance, [])
        told.append(served.response_id)
        return self._tell_served(node) if len(told) >= SERVED_AT_ONCE else 0

    def _tell_served(self, node: str) -> int:
        untold, self._untold = self._untold, {}
        for instance, response_ids in untold.items():
            t = self._journal.now()
            self._journal.write(InstanceServed(t=t, node=node, instance=instance, response_ids=response_ids))
        return len(untold)


def digest(entry: bytes) -> str:
    return hashlib.sha1(entry, usedforsecurity=False).hexdigest()[:12]


def _is_flicker(log: KnownLog, event: TargetEvent) -> bool:
    """A runner's status again, or the change between ready and running that every request brings."""
    if event.name != "RunnerStatusUpdated":
        return False
    runner, status = str(event.data.get("runner")), str(event.data.get("status"))
    before = log.statuses.get(runner)
    log.statuses[runner] = status
    return before == status or (before in SERVING_STATUSES and status in SERVING_STATUSES)
