"""Reading one HTTP/1.1 response, incrementally: bytes in any chunking in, status, headers and body pieces out. Pure.

Of RFC 9112 what a client needs that sends one request on a connection and reads one answer: interim (1xx) responses
are passed over, bodies are chunked, of a given length, or end with the connection; trailers are passed over. What
this tells that the outcome rules need: whether a body ended as its framing says, or broke.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_CHUNK_LINE_BYTES: Final = 4096
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_BLANK_LINES: Final = (b"\n\r\n", b"\n\n")  # a recipient may take a line feed alone (RFC 9112 2.2)
_SIZES_KEPT: Final = 4096
_SIZE_BYTES_KEPT: Final = 8
_BODILESS: Final = (204, 304)


class _NotHttpError(ValueError):
    """The bytes are no HTTP/1.x response."""


class _At(Enum):
    HEAD = "head"
    SIZE = "size"  # a chunk's size line
    CHUNK = "chunk"  # inside a chunk's data
    CHUNK_END = "chunk end"  # the line end after a chunk's data
    TRAILER = "trailer"
    LENGTH = "length"  # a body of a given length
    CLOSE = "close"  # a body that the connection's end ends
    DONE = "done"


class ResponseParser:
    """`feed` bytes, get body pieces; `status` is None until the head is whole, `failure` says what was no HTTP."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.reason = b""
        self.failure: str | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.chunked = False  # as the head says, once it is whole
        self._at = _At.HEAD
        self._buffer = b""  # what could not be read without more
        self._left = 0  # bytes of the chunk or body still to come

    @property
    def complete(self) -> bool:
        return self._at is _At.DONE

    def feed(self, data: bytes) -> list[bytes]:
        """Raises nothing: what was read before `failure` still counts."""
        pieces: list[bytes] = []
        if self.failure is None:
            try:
                self._feed(data, pieces)
            except _NotHttpError as error:
                self.failure = str(error)
        return pieces

    def _feed(self, data: bytes, pieces: list[bytes]) -> None:
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        position = 0
        if self._at is _At.SIZE:  # the usual thing first
            position = max(0, self._size(data, 0, pieces))
        while position < len(data) and self._at is not _At.DONE:
            following = self._step(data, position, pieces)
            if following < 0:
                self._buffer = data[position:]
                return
            position = following

    def one_chunk_each(self, arrivals: Sequence[bytes]) -> list[bytes] | None:
        """The pieces of several arrivals in one go, where each is one whole chunk; else None, and nothing is read."""
        if self._at is not _At.SIZE or self._buffer or self.failure is not None:
            return None
        parts = b"".join(arrivals).split(b"\r\n")
        lines, chunks = parts[0:-1:2], parts[1:-1:2]
        lengths = [*map(len, chunks)]
        if len(lines) != len(arrivals) or len(chunks) != len(arrivals) or parts[-1]:
            return None
        if 0 in lengths or lengths != [*map(_sizes.get, lines)]:
            return None
        whole = [len(line) + length + 4 for line, length in zip(lines, lengths, strict=True)]
        return chunks if whole == [*map(len, arrivals)] else None

    def at_end(self) -> bool:
        """The connection has ended: whether that was a proper end of the response."""
        return self._at in (_At.DONE, _At.CLOSE)

    def _step(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        """Read one element at `position`; the position after it, or -1 when more bytes are needed."""
        match self._at:
            case _At.SIZE:
                return self._size(data, position, pieces)
            case _At.CHUNK | _At.LENGTH:
                return self._counted(data, position, pieces)
            case _At.CHUNK_END:
                return self._chunk_end(data, position)
            case _At.CLOSE:
                pieces.append(data[position:])
                return len(data)
            case _At.HEAD:
                return self._head(data, position)
            case _At.TRAILER:
                return self._trailer(data, position)
            case _At.DONE:
                raise AssertionError("nothing is read after the end")

    def _size(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        """A size line and its chunk; as many of them in one go as are here, whole."""
        begin, together = position, True
        while True:
            end = data.find(b"\n", position)
            if end < 0:
                if len(data) - position > MAX_CHUNK_LINE_BYTES:
                    raise _NotHttpError(
                        f"a chunk size line longer than {MAX_CHUNK_LINE_BYTES} bytes, the rig's own limit"
                    )
                return position if position > begin else -1
            line = data[position:end]
            size = _sizes.get(line)
            if size is None:
                size = _chunk_size(line)
            start = end + 1
            if size == 0:
                self._at = _At.TRAILER
                return start
            stop = start + size
            if data[stop : stop + 2] != b"\r\n":
                self._left, self._at = size, _At.CHUNK
                return start
            pieces.append(data[start:stop])
            position = stop + 2
            if together and position < len(data):
                position, together = self._whole_chunks(data, position, pieces), False
            if position == len(data):
                return position

    def _whole_chunks(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        """As many whole chunks as can be told from their line ends alone; the position after them.

        Between line ends, sizes and chunks alternate where no chunk holds a line end of its own. Where one does, a
        length does not fit its size, and nothing is taken: the chunks are then read one by one.
        """
        parts = data[position:].split(b"\r\n")
        lines = parts[0:-1:2]
        if len(parts) % 2 == 0:  # the last line end is that of a size line: its chunk is not whole
            lines.pop()
        sizes = [*map(_sizes.get, lines)]
        if sizes and sizes[-1] == 0:  # the last chunk
            sizes.pop()
            lines.pop()
        chunks = parts[1 : 2 * len(sizes) : 2]
        lengths = [*map(len, chunks)]
        if not sizes or 0 in sizes or lengths != sizes:
            return position
        pieces += chunks
        return position + sum(lengths) + sum(map(len, lines)) + 4 * len(sizes)

    def _counted(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        piece = data[position : position + self._left]
        pieces.append(piece)
        self._left -= len(piece)
        if self._left == 0:
            self._at = _At.CHUNK_END if self._at is _At.CHUNK else _At.DONE
        return position + len(piece)

    def _chunk_end(self, data: bytes, position: int) -> int:
        if data[position : position + 1] == b"\n":
            self._at = _At.SIZE
            return position + 1
        if len(data) - position < 2:
            if data[position : position + 1] != b"\r":
                raise _NotHttpError("a chunk that is longer than its size")
            return -1
        if data[position : position + 2] != b"\r\n":
            raise _NotHttpError("a chunk that is longer than its size")
        self._at = _At.SIZE
        return position + 2

    def _trailer(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position)
        if end < 0:
            if len(data) - position > MAX_HEAD_BYTES:
                raise _NotHttpError(f"trailers longer than {MAX_HEAD_BYTES} bytes, the rig's own limit")
            return -1
        if not data[position:end].strip(b"\r"):
            self._at = _At.DONE
        return end + 1

    def _head(self, data: bytes, position: int) -> int:
        start = data[position : position + 5]
        if not b"HTTP/".startswith(start[:5]) and start != b"HTTP/":
            raise _NotHttpError(f"no status line: {data[position : position + 60]!r}")
        blanks = [at + len(blank) for blank in _BLANK_LINES if (at := data.find(blank, position)) >= 0]
        if not blanks:
            if len(data) - position > MAX_HEAD_BYTES:
                raise _NotHttpError(f"a head longer than {MAX_HEAD_BYTES} bytes, the rig's own limit")
            return -1
        end = min(blanks)
        status_line, *lines = data[position:end].replace(b"\r\n", b"\n").removesuffix(b"\n\n").split(b"\n")
        status, reason = _status(status_line)
        if 100 <= status < 200:
            return end
        self.headers = [_header(line) for line in lines]
        self.status, self.reason = status, reason
        self._frame(status)
        return end

    def _frame(self, status: int) -> None:
        """How the body is framed, by RFC 9112 6.3."""
        values = {name.lower(): value.strip().lower() for name, value in self.headers}
        length = values.get(b"content-length")
        if status in _BODILESS:
            self._at = _At.DONE
        elif values.get(b"transfer-encoding", b"").endswith(b"chunked"):
            self._at, self.chunked = _At.SIZE, True
        elif length is None:
            self._at = _At.CLOSE
        elif not length.isdigit():
            raise _NotHttpError(f"a content length of {length[:40]!r}")
        else:
            self._left = int(length)
            self._at = _At.LENGTH if self._left else _At.DONE


_sizes: dict[bytes, int] = {}  # size lines read before, with their carriage return and without: most are alike


def _chunk_size(line: bytes) -> int:
    """Of a size line. Raises _NotHttpError."""
    size = _parsed_size(line)
    if len(line) <= _SIZE_BYTES_KEPT and len(_sizes) < _SIZES_KEPT:
        _sizes[line] = _sizes[line.removesuffix(b"\r")] = size
    return size


def _parsed_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(b" \t\r")
    if not digits or not _HEX.issuperset(digits):  # int() alone takes signs and underscores
        raise _NotHttpError(f"a chunk of size {digits[:40]!r}")
    return int(digits, 16)


def _status(line: bytes) -> tuple[int, bytes]:
    version, _, rest = line.partition(b" ")
    code, _, reason = rest.partition(b" ")
    if not version.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit():
        raise _NotHttpError(f"no status line: {line[:60]!r}")
    return int(code), reason


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not name or name != name.strip():
        raise _NotHttpError(f"no header line: {line[:60]!r}")
    return name, value.strip()
