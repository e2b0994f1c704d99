"""The event log that exo keeps in a file, read on its node: pieces of the file in, entries as JSON out.

exo appends each event that its API applies to `$EXO_HOME/event_log/api/events.bin`: four bytes, the length of the
record (unsigned, big-endian), then that many bytes of msgpack, which hold what `GET /events` shows as JSON, in the same
order. So the n-th record has the index n. The master's own log beside it, in `event_log/master`, has the same format.

- It is written through a buffer of some kilobytes, so that its end may be missing or torn; when `/events` is asked for,
  exo writes the buffer out before it answers.
- At each start, and whenever its API begins anew under another master, exo begins a new file; the old one becomes an
  archive, `events.DATE.bin.zst`, of which five are kept. The rig reads the open file alone.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

import msgspec

from rig.errors import NodeError
from rig.nodes.node import NodeConnection
from rig.targets.target import Piece

PIECE_BYTES: Final = 1024 * 1024
PIECE_TIMEOUT_S: Final = 15.0
MAX_RECORD_BYTES: Final = 8 * 1024 * 1024
HEADER_BYTES: Final = 4


async def read_piece(conn: NodeConnection, offset: int) -> Piece | None:
    """What is in the file from byte `offset` on, at most a megabyte; None where there is no such file. NodeError."""
    values = {"offset": str(offset), "most": str(PIECE_BYTES)}
    said = await conn.script("events.sh", values, timeout_s=PIECE_TIMEOUT_S)
    try:
        return parse_piece(said)
    except ValueError as error:
        raise NodeError(conn.name, f"events.sh: {error}") from error


def parse_piece(text: str) -> Piece | None:
    """What `events.sh` says; None for nothing. Raises ValueError."""
    if not text:
        return None
    said, mark, data = text.partition("\ndata\n")
    facts = {key: value for key, _, value in (line.partition("=") for line in said.splitlines())}
    if not mark or not facts.keys() >= {"path", "inode", "size", "head"}:
        raise ValueError(f"it said {text[:200]!r}")
    try:
        return Piece(
            facts["path"], facts["inode"], int(facts["size"]), base64.b64decode(facts["head"]), base64.b64decode(data)
        )
    except binascii.Error as error:
        raise ValueError(f"{error}: {text[:200]!r}") from error


class Records:
    """Feed it the bytes of a file from its beginning. Pure; holds less than one record."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The entries that are complete by now, as JSON. Raises ValueError for what is no event log."""
        buffer, at = self._rest + data, 0
        while len(buffer) - at >= HEADER_BYTES:
            length = int.from_bytes(buffer[at : at + HEADER_BYTES], "big")
            if not 0 < length <= MAX_RECORD_BYTES:
                raise ValueError(f"a record of {length} bytes")
            end = at + HEADER_BYTES + length
            if end > len(buffer):
                break
            try:
                yield msgspec.json.encode(msgspec.msgpack.decode(buffer[at + HEADER_BYTES : end]))
            except (msgspec.DecodeError, TypeError) as error:
                raise ValueError(f"a record that is no msgpack: {error}") from error
            at = end
        self._rest = buffer[at:]
