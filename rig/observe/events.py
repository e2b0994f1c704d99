"""Reading the target's event log: exact order without times.

Over the API a log is told from its beginning each time, at a cost, so it is read so rarely (around faults, at the end)
and bounded; its file is read on from where it was read to.
Only entries that matter and were not journalled before are written. A *session* is one life of a node's log: its name
comes from the first entry, so that nodes that follow the same master's log share it; a log that grew shorter, or tells
another story at the place that was read last, has begun anew.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Literal

from rig.errors import CommandTimeout, NodeError, SshError, TargetError
from rig.journal.records import EVENT_LOG_UNREAD, EventLogRead, EventSeen, Finding, InstanceServed
from rig.journal.write import Journal
from rig.nodes.node import NodeConnection, Nodes
from rig.observe.log_reading import KnownLog, LogReading, Numbered
from rig.targets.target import EventRecords, KeepsEventLog, Piece, ServedBy

LIMIT_BYTES: Final = 128 * 1024 * 1024
TIMEOUT_S: Final = 20.0
FLUSH_TIMEOUT_S: Final = 5.0
SERVED_AT_ONCE: Final = 500
ENTRIES_AT_ONCE: Final = 200
MAX_SERVED_KNOWN: Final = 10_000  # logs are read around each fault: no more than this passes in between


class EventLogs:
    """The event logs of all nodes, each read up to some place.

    Out of the log's file where the node can be asked: from where it was read to, which costs it nothing.
    Else over its API, from the beginning.
    """

    def __init__(
        self,
        log: KeepsEventLog,
        journal: Journal,
        *,
        connections: Nodes,
        limit_bytes: int = LIMIT_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._log_of = log
        self._journal = journal
        self._connections = connections
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s
        self._logs: dict[str, KnownLog] = {}
        self._files: dict[str, OpenFile] = {}
        self._begun: dict[str, int] = {}  # digest of a first entry → logs that began with it, beyond the first
        self._served: OrderedDict[str, None] = OrderedDict()
        self._untold: dict[str, list[str]] = {}  # instance → response ids that one reading found so far

    async def read(self, node: str, url: str, *, most_events: int | None = None, known_events: int = 0) -> int:
        """Journal what is new in this node's log; returns how many records. What was not read is a finding.

        Over the API a log with more than `most_events` is not read: `known_events` is how many there are at least.
        """
        begun_t = self._journal.now()
        if (conn := self._connections.get(node)) is not None:
            try:
                if (written := await self._read_file(node, url, conn, begun_t)) is not None:
                    return written
            except NodeError as error:
                self._files.pop(node, None)
                if not isinstance(error, SshError | CommandTimeout):
                    self._tell_unread(node, f"its file: {error.message}")
        if most_events is not None and known_events > most_events:
            self._tell_unread(node, f"about {known_events} events, too dear to ask for while the run goes on")
            return 0
        return await self._read_api(node, url, begun_t)

    async def _read_api(self, node: str, url: str, begun_t: float) -> int:
        self._files.pop(node, None)
        reading = LogReading(self._logs.get(node, KnownLog()))
        written = 0
        try:
            events = self._log_of.events(url, timeout_s=self._timeout_s, limit_bytes=self._limit_bytes)
            async with aclosing(events) as entries:
                async for index, entry in entries:
                    written += self._write(node, reading, reading.take(index, entry, self._log_of.event(entry)))
            written += self._write(node, reading, reading.ended())
            written += self._tell_served(node)
            self._tell_end(node, reading, "api", begun_t)
        except TargetError as error:
            self._tell_unread(node, error.message, reading.count)
        finally:
            written += self._tell_served(node)
            self._keep(node, reading)
        return written

    async def _read_file(self, node: str, url: str, conn: NodeConnection, begun_t: float) -> int | None:
        """None where the target keeps no such file that can be read. Raises NodeError."""
        unread = await self._flush(url)
        file, written, behind = None, 0, 0
        try:
            async with aclosing(self._pieces(node, conn)) as pieces:
                async for file, piece in pieces:
                    for entry in file.take(piece):
                        new = file.reading.take(file.reading.count, entry, self._log_of.event(entry))
                        written += self._write(node, file.reading, new)
                        if file.reading.count % ENTRIES_AT_ONCE == 0:
                            await asyncio.sleep(0)  # a megabyte of them must not hold up the event loop
                    behind = file.behind(piece)
        except ValueError as error:
            self._files.pop(node, None)
            self._tell_misread(node, f"its file: {error}", 1)
            return None
        finally:
            written += self._tell_served(node)
            if file is not None:
                self._keep(node, file.reading)
        if file is None:
            return None
        if behind:
            unread = f"{behind} bytes of its file are left for later"
        if not unread:
            written += self._write(node, file.reading, file.reading.ended())
            written += self._tell_served(node)
            self._keep(node, file.reading)
        if not file.reading.matching:
            self._tell_end(node, file.reading, "file", begun_t)
        if unread:
            self._tell_unread(node, unread, file.reading.count)
        return written

    async def _flush(self, url: str) -> str:
        """Why the file may lack the latest entries; empty where it does not."""
        try:
            await self._log_of.flush_events(url, timeout_s=FLUSH_TIMEOUT_S)
        except TargetError as error:
            return f"the latest entries may not be in its file yet: {error.message}"
        return ""

    async def _pieces(self, node: str, conn: NodeConnection) -> AsyncGenerator[tuple[OpenFile, Piece]]:
        """From where the file was read to, up to its end or the limit of one reading; nothing where there is none."""
        file, size = self._files.get(node), 0
        while (piece := await self._log_of.read_piece(conn, 0 if file is None else file.offset)) is not None:
            if file is None:
                file = self._begin_file(node, piece)
            elif not file.goes_on(piece):
                file = self._begin_file(node, piece)
                continue
            yield file, piece
            size += len(piece.data)
            if not piece.data or not file.behind(piece) or size >= self._limit_bytes:
                return

    def _begin_file(self, node: str, piece: Piece) -> OpenFile:
        self._files[node] = file = OpenFile(piece, LogReading(self._logs.get(node, KnownLog())), self._log_of.records())
        return file

    def _keep(self, node: str, reading: LogReading) -> None:
        if reading.count and not reading.matching:
            log = self._log(node, reading)
            log.count, log.last = reading.count, reading.last

    def _tell_unread(self, node: str, why: str, events: int = 0) -> None:
        """What the log would have told from here on is not known, unless a later reading comes to its end."""
        data = {"node": node, "events": events}
        self._journal.write(Finding(t=self._journal.now(), code=EVENT_LOG_UNREAD, text=why[:500], data=data))

    def _tell_misread(self, node: str, why: str, count: int) -> None:
        data = {"node": node, "count": count, "facets": ["events"]}
        self._journal.write(Finding(t=self._journal.now(), code="event-not-understood", text=why[:500], data=data))

    def _tell_end(self, node: str, reading: LogReading, source: Literal["file", "api"], begun_t: float) -> None:
        if reading.misread:
            self._tell_misread(node, f"{reading.misread} entries, {reading.first_misread}", reading.misread)
            reading.misread = 0
        if reading.count:
            session = self._log(node, reading).session
            t = self._journal.now()
            record = EventLogRead(
                t=t,
                node=node,
                session=session,
                count=reading.count,
                reports=dict(reading.reports),
                source=source,
                took_s=round(t - begun_t, 3),
            )
            self._journal.write(record)

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
            elif not self._log_of.repeats(matter, log.said):
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


class OpenFile:
    """The file of a log, read up to `offset`, and the reading that goes on with it."""

    def __init__(self, piece: Piece, reading: LogReading, records: EventRecords) -> None:
        self.reading = reading
        self.offset = 0
        self._inode, self._head = piece.inode, piece.head
        self._records = records

    def goes_on(self, piece: Piece) -> bool:
        """Whether the piece is of the same file, which only grows."""
        same = piece.inode == self._inode and piece.head.startswith(self._head) and piece.size >= self.offset
        self._head = piece.head if same else self._head
        return same

    def behind(self, piece: Piece) -> int:
        """How many bytes there were at least, after this piece was taken. The file may have grown while it was read."""
        return max(piece.size - self.offset, 0)

    def take(self, piece: Piece) -> Iterator[bytes]:
        """The entries that are complete with this piece. Raises ValueError for what is no event log."""
        self.offset += len(piece.data)
        yield from self._records.feed(piece.data)
