"""Server-sent events, incrementally: bytes in any chunking in, events out. Pure.

After the HTML standard (9.2.6): lines end in LF, CRLF or CR, `data` lines of one event are joined by LF, an event is
dispatched by a blank line. Departures, because this reader judges servers: comments are given out as well (a server may
tell of its prefill in them); a line that is none of the standard's fields is given out as garbage instead of being
ignored (an HTML page is not an empty stream), but `error: …` is an error (llama.cpp writes so); and what has no
blank line after it when the stream ends is given out by `end` instead of being dropped.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["data", "error", "comment", "garbage"]
"""`error` is the data of an event whose name is `error`."""
Event: TypeAlias = tuple[Kind, bytes]

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b"error:")
_IGNORED_FIELDS: Final = (b"id", b"retry")


class SseSplitter:
    """`feed` bytes, get whole events. What is longer than `max_bytes` is given out as garbage, cut short."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._carry = bytearray()  # an unfinished line
        self._data: list[bytes] = []  # data lines of an unfinished event
        self._data_bytes = 0
        self._name = b""
        self._held_return = False  # the last byte was CR: a following LF belongs to it

    @property
    def idle(self) -> bool:
        """Nothing is pending: what comes next begins an event."""
        return not (self._carry or self._data or self._name or self._held_return)

    def feed(self, chunk: bytes) -> list[Event]:
        if b"\r" in chunk or self._held_return:
            chunk = self._plain_newlines(chunk)
        if not self._carry and not self._data and not self._name and chunk.endswith(b"\n\n"):
            return self._whole_events(chunk)
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            self._carry += chunk
            return self._overflow() if len(self._carry) > self._max_bytes else []
        lines = bytes(self._carry + chunk[: end - 1]).split(b"\n") if self._carry else chunk[: end - 1].split(b"\n")
        self._carry = bytearray(chunk[end:])
        events: list[Event] = []
        for line in lines:
            self._line(line, events)
        return events

    def end(self) -> list[Event]:
        """The stream has ended: what it had begun. A line that was cut off before it said anything is nothing."""
        events: list[Event] = []
        line = bytes(self._carry)
        if line and not any(field.startswith(line) for field in _FIELDS):
            self._line(line, events)
        self._line(b"", events)
        self._carry = bytearray()
        return events

    def _plain_newlines(self, chunk: bytes) -> bytes:
        """CRLF and CR become LF; a CR at the end of a chunk ends its line at once, and a LF after it is dropped."""
        if self._held_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            if not chunk:
                self._held_return = False
                return chunk
        if chunk:
            self._held_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _whole_events(self, chunk: bytes) -> list[Event]:
        """The usual case, quickly: nothing is pending, and the chunk ends where an event ends."""
        events: list[Event] = []
        for block in chunk.split(b"\n\n"):
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(("data", block[6:]))
            elif block:
                for line in block.split(b"\n"):
                    self._line(line, events)
                self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(("error" if self._name == b"error" else "data", b"\n".join(self._data)))
            self._data, self._data_bytes, self._name = [], 0, b""
            return
        field, colon, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if colon and not field:
            events.append(("comment", value))
        elif field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._max_bytes:
                events.extend(self._overflow())
        elif field == b"event":
            self._name = value
        elif colon and field == b"error":
            events.append(("error", value))
        elif field not in _IGNORED_FIELDS:
            events.append(("garbage", line))

    def _overflow(self) -> list[Event]:
        start = bytes(self._carry or b"\n".join(self._data[:1]))[:200]
        self._carry, self._data, self._data_bytes, self._name = bytearray(), [], 0, b""
        return [("garbage", b"longer than %d bytes, the rig's own limit for an event: %s" % (self._max_bytes, start))]
