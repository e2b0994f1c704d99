"""How the body of an answer begins, and so what reads it. Pure.

The content type alone does not say: sound event streams come as `application/json` or `text/html`, and one JSON object
(an error, as a rule) comes as `text/event-stream`. The first character tells them apart. One byte-order mark before it
is passed over, as the standards say for either.
"""

from __future__ import annotations

from typing import Final

from rig.load.stream import Reader, StreamReader
from rig.load.whole import BodyReader

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHOLE: Final = (b"{", b"[", b"<")  # no line of an event stream begins so


class Opening:
    """Feed it the beginning of a body until it knows a reader."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self._held = b""

    def take(self, data: bytes) -> tuple[Reader, bytes] | None:
        """The reader of the body and what it is to read first; None as long as what came may be anything.

        A request that is not streamed is answered with a whole body, whatever it looks like.
        """
        start = self._held + data
        if len(start) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(start):
            self._held = start
            return None
        start = start.removeprefix(BYTE_ORDER_MARK)
        if not self._streamed:
            return BodyReader(), start
        start = start.lstrip()
        if not start:
            self._held = b"\n"  # of white space it matters only that there was some: no mark can follow it
            return None
        return (BodyReader() if start.startswith(_WHOLE) else StreamReader()), start
