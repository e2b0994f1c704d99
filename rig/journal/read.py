"""Reading a run back, a block of lines at a time: memory stays flat however long the run was.

Reading is lenient but hides nothing: after a pass, `notes` has what was dropped, ignored or broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from rig.errors import JournalError
from rig.journal import earlier
from rig.journal.records import AnyRecord
from rig.journal.run import SCHEMA, RunInfo, read_info
from rig.journal.write import MAX_FILES, MAX_LINE_BYTES, journal_name

MAX_BROKEN_KEPT: Final = 100
BLOCK_BYTES: Final = 64 * 1024
_KNOWN: Final = frozenset(str(struct.__struct_config__.tag) for struct in get_args(AnyRecord))


@dataclass(frozen=True)
class BrokenLine:
    """A line that is no record although more lines follow: damaged on disk or by an editor, never by a crash."""

    file: str
    line: int  # from 1
    reason: str


@dataclass
class ReadNotes:
    """Irregularities of a pass over the records. `broken` keeps the first 100 lines; `broken_count` counts all."""

    lines: int = 0
    torn: bool = False  # the last line of the last file was incomplete, and dropped
    unknown: dict[str, int] = field(default_factory=dict[str, int])  # kinds that this rig does not know: how many
    broken: list[BrokenLine] = field(default_factory=list[BrokenLine])
    broken_count: int = 0

    def take(self, other: ReadNotes) -> None:
        """Add the notes of files that follow."""
        self.lines += other.lines
        self.torn |= other.torn
        for kind, count in other.unknown.items():
            self.unknown[kind] = self.unknown.get(kind, 0) + count
        self.broken += other.broken[: MAX_BROKEN_KEPT - len(self.broken)]
        self.broken_count += other.broken_count

    def add_broken(self, file: str, number: int, reason: str) -> None:
        self.broken_count += 1
        if len(self.broken) < MAX_BROKEN_KEPT:
            self.broken.append(BrokenLine(file, number, reason))


class Run:
    """A run on disk. `records()` may be called again; `notes` are of the latest pass."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        self.folder = folder
        self.info = info
        self.notes = ReadNotes()

    def records(self) -> Iterator[AnyRecord]:
        """Every record in the order of writing. Raises JournalError when a file cannot be read."""
        for file in self.files():
            for block in file.blocks():
                yield from block
            self.notes.take(file.notes)

    def files(self) -> list[JournalFile]:
        """In the order of writing, up to the first missing number; a run that died before its first record has none.

        The notes begin anew; whoever reads a file adds what it noted.
        """
        self.notes = ReadNotes()
        paths: list[Path] = []
        for number in range(MAX_FILES):
            path = self.folder / journal_name(number)
            if not path.exists():
                break
            paths.append(path)
        present = sum(1 for _ in self.folder.glob("journal*.jsonl"))
        if present > len(paths):
            missing = f"missing, although {present - len(paths)} later files are there"
            self.notes.add_broken(journal_name(len(paths)), 0, missing)
        return [JournalFile(path, last=path is paths[-1], schema=self.info.schema) for path in paths]


class JournalFile:
    """One file of a journal; `notes` are of its latest pass. Of the `last` one the last line may be torn. `schema` is
    the version of the journal: records of an earlier one are handed out as this rig would have written them."""

    def __init__(self, path: Path, *, last: bool, schema: int = SCHEMA) -> None:
        self.path = path
        self.last = last
        self.schema = schema
        self.notes = ReadNotes()
        self._decoder = msgspec.json.Decoder(AnyRecord) if schema >= SCHEMA else earlier.DECODER

    def blocks(self) -> Iterator[list[AnyRecord]]:
        """Its records in lists. Lines are read one by one only where a block is not sound. Raises JournalError."""
        self.notes = notes = ReadNotes()
        first = 0
        for block in _blocks(self.path):
            count = block.count(b"\n")
            found = self._whole(block, count)
            if found is None:
                found = list(self._singly(first, block))
            else:
                notes.lines += count
            yield found if self.schema >= SCHEMA else earlier.renewed(found)
            first += count

    def _whole(self, block: bytes, count: int) -> list[AnyRecord] | None:
        """The records of a block, decoded at once; None unless each of its lines is a record."""
        if block[-1:] != b"\n":
            return None
        try:
            found = self._decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if len(found) == count else None

    def _singly(self, first: int, block: bytes) -> Iterator[AnyRecord]:
        """`first` lines of the file came before."""
        for number, line in enumerate(BytesIO(block), first + 1):
            self.notes.lines += 1
            if line[-1:] != b"\n" and self.last:
                self.notes.torn = True
                continue
            try:
                record = self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:  # a ValidationError is a DecodeError
                self._unreadable(number, line, error)
            else:
                yield record

    def _unreadable(self, number: int, line: bytes, error: Exception) -> None:
        """Note a line of a kind that this rig does not know, or that is no record."""
        kind = _kind(line) if isinstance(error, msgspec.ValidationError) else None
        if kind is not None and kind not in _KNOWN:
            self.notes.unknown[kind] = self.notes.unknown.get(kind, 0) + 1
        else:
            self.notes.add_broken(self.path.name, number, str(error))


def read_run(folder: Path) -> Run:
    """The run in this folder, its records read when asked for. Raises JournalError without a sound `run.json`."""
    return Run(folder, read_info(folder))


def _blocks(path: Path) -> Iterator[bytes]:
    """Blocks of whole lines; the last line may be torn. A line that is longer than any the rig writes comes in pieces.

    Reading ends at a torn line, even if more was written meanwhile: the rest of that line is no line.
    """
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                rest = b"" if block[-1:] == b"\n" else file.readline(MAX_LINE_BYTES)
                whole = block + rest
                yield whole
                if whole[-1:] != b"\n" and len(rest) < MAX_LINE_BYTES:
                    return
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error


def _kind(line: bytes) -> str | None:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):  # no JSON behind a beginning that is no record either
        return None
    kind: Any = value.get("kind") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # any JSON
    return kind if isinstance(kind, str) else None
