"""A JSON array of objects in pieces: bytes in, complete elements out. Pure; memory is bounded by the longest element.

A JSON object is never the beginning of another, so what stands before some `}, {` is an element exactly when it parses.
The parsing is msgspec's, which is many times faster than looking at each byte here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

MAX_ELEMENT_BYTES: Final = 8 * 1024 * 1024

_BOUNDARY: Final = re.compile(rb"\}\s*(?=,\s*\{|\]\s*$)")
_SPACE: Final = b" \t\r\n"


class ArraySplitter:
    """Feed it the bytes of one array as they come. Raises ValueError for what is no array of objects."""

    def __init__(self, *, max_element_bytes: int = MAX_ELEMENT_BYTES) -> None:
        self._buffer = b""
        self._opened = False
        self._searched = 0  # boundaries before this offset of the buffer were tried
        self._decoder = msgspec.json.Decoder(msgspec.Raw)
        self._max = max_element_bytes

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The elements that are complete with this piece."""
        self._buffer += data
        if not self._opened and not self._open():
            return
        start = 0
        for boundary in _BOUNDARY.finditer(self._buffer, self._searched):
            end = boundary.start() + 1
            element = self._buffer[start:end].lstrip(_SPACE + b",")
            if self._complete(element):
                yield element
                start = boundary.end()
        # a boundary may straddle this piece and the next: look again from a little before its end
        self._buffer = self._buffer[start:]
        self._searched = max(0, len(self._buffer) - 64)
        if len(self._buffer) > self._max:
            raise ValueError(f"an element of the array is longer than {self._max} bytes")

    @property
    def finished(self) -> bool:
        """Whether the array has been closed."""
        return self._opened and self._buffer.strip(_SPACE) == b"]"

    def _open(self) -> bool:
        body = self._buffer.lstrip(_SPACE)
        if not body:
            return False
        if body[:1] != b"[":
            raise ValueError(f"no JSON array: it begins with {body[:20]!r}")
        self._opened = True
        self._buffer = body[1:]
        return True

    def _complete(self, element: bytes) -> bool:
        try:
            self._decoder.decode(element)
        except msgspec.DecodeError:
            return False
        return True
