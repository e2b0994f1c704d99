"""Recorded traffic: when requests came and how long they were, one JSON object a line.

The format is that of the Mooncake traces (Qin et al., FAST 2025): `timestamp` in milliseconds, in the order of time;
`input_length` and `output_length` in tokens; `hash_ids`, one for each block of 512 tokens of the prompt, the same id
for the same text after the same text. Other keys are passed over. For lengths alone only the lengths are needed.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, overload

import msgspec

from rig.config.stock import stock_folder
from rig.errors import ConfigError

MAX_ROWS: Final = 1_000_000
BLOCK_TOKENS: Final = 512
"""Of the prompt, that one of the `hash_ids` stands for."""
_LINE_MAX: Final = 1 << 20
_LONGEST_S: Final = 30 * 86400.0
_EXAMPLE: Final = '{"timestamp": 27482, "input_length": 6955, "output_length": 52}'


@dataclass(frozen=True, slots=True)
class TraceRow:
    """`at_s` counts from the first row, in seconds; lengths in tokens; `blocks` are the `hash_ids`, empty without."""

    at_s: float
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


class Trace(Sequence[TraceRow]):
    """Rows in little memory: 24 bytes each and 8 for each block, so that a million of them are no burden on a run."""

    def __init__(self, rows: Iterable[TraceRow]) -> None:
        self._at_s, self._lengths = array("d"), array("l")
        self._blocks, self._ends = array("q"), array("q")
        for row in rows:
            self._at_s.append(row.at_s)
            self._lengths.extend((row.prompt_tokens, row.output_tokens))
            self._blocks.extend(row.blocks)
            self._ends.append(len(self._blocks))

    def __len__(self) -> int:
        return len(self._at_s)

    @overload
    def __getitem__(self, index: int) -> TraceRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceRow]: ...
    def __getitem__(self, index: int | slice) -> TraceRow | list[TraceRow]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        first = self._ends[at - 1] if at else 0
        blocks = tuple(self._blocks[first : self._ends[at]])
        return TraceRow(self._at_s[at], self._lengths[2 * at], self._lengths[2 * at + 1], blocks)


class _Line(msgspec.Struct):
    input_length: int
    output_length: int
    timestamp: float | None = None
    hash_ids: list[Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]] | None = None


def read_trace(name: str, *, timed: bool = True) -> Trace:
    """The rows of a file. Raises ConfigError naming the line that is none, and what was expected there.

    A path that is not there as given is looked for in `./workloads` and among the stock workloads.
    """
    path = _found(name)
    try:
        with path.open("rb") as stream:
            trace = Trace(_rows(stream.readline, path, timed=timed))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=name) from error
    if not trace:
        raise ConfigError(f"expected rows such as {_EXAMPLE}, found none", file=name)
    return trace


def period_s(trace: Sequence[TraceRow]) -> float:
    """After how long a replay begins again: the time of the last row and one mean gap, at least a millisecond."""
    last_s, gaps = trace[-1].at_s, len(trace) - 1
    return max(last_s + (last_s / gaps if gaps else 1.0), 0.001)


def _rows(read_line: Callable[[int], bytes], path: Path, *, timed: bool) -> Iterator[TraceRow]:
    decoder = msgspec.json.Decoder(_Line)
    first_ms = last_ms = None
    count = 0
    for number, line in enumerate(iter(lambda: read_line(_LINE_MAX), b""), start=1):
        if not line.strip():
            continue
        count += 1
        try:
            found = _line(decoder, line, timed=timed)
            if timed and found.timestamp is not None:
                first_ms = found.timestamp if first_ms is None else first_ms
                _in_order(found.timestamp, first_ms, last_ms)
                last_ms = found.timestamp
            if count > MAX_ROWS:
                raise _RowError(f"expected at most {MAX_ROWS} rows: cut the file, as with `head -n {MAX_ROWS}`")
        except _RowError as error:
            raise ConfigError(str(error), file=str(path), line=number) from error
        at_s = 0.0 if last_ms is None or first_ms is None else (last_ms - first_ms) / 1000
        yield TraceRow(at_s, found.input_length, found.output_length, tuple(found.hash_ids or ()))


class _RowError(ValueError):
    """What is wrong with a row, and what was expected."""


def _line(decoder: msgspec.json.Decoder[_Line], line: bytes, *, timed: bool) -> _Line:
    if len(line) >= _LINE_MAX:
        raise _RowError(f"expected a row of less than {_LINE_MAX} bytes: one JSON object a line")
    try:
        found = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _RowError(f"no row of a trace: {error}; expected one such as {_EXAMPLE}") from error
    if timed and found.timestamp is None:
        raise _RowError("timestamp: missing: expected milliseconds")
    for name, tokens in (("input_length", found.input_length), ("output_length", found.output_length)):
        if not 1 <= tokens <= 1_000_000:
            raise _RowError(f"{name}: expected 1 to 1000000 tokens, not {tokens}")
    blocks = -(-found.input_length // BLOCK_TOKENS)
    if found.hash_ids is not None and len(found.hash_ids) > blocks:
        raise _RowError(
            f"hash_ids: expected at most {blocks}, one for {BLOCK_TOKENS} tokens of {found.input_length}, "
            f"not {len(found.hash_ids)}; leave them out where a block has another size"
        )
    return found


def _in_order(at_ms: float, first_ms: float, before_ms: float | None) -> None:
    if at_ms < 0:
        raise _RowError(f"timestamp: expected 0 or more milliseconds, not {at_ms:.15g}")
    if before_ms is not None and at_ms < before_ms:
        raise _RowError(
            f"timestamp: {at_ms:.15g} is before that of the row above ({before_ms:.15g}): expected rows in the order "
            f"of time; sort the file by its timestamps"
        )
    if at_ms - first_ms > _LONGEST_S * 1000:
        raise _RowError(
            f"timestamp: {at_ms:.15g} is more than 30 days after the first: expected milliseconds (another unit?)"
        )


def _found(name: str) -> Path:
    given = Path(os.path.expanduser(name))
    for path in (given, Path("workloads") / given, stock_folder("workloads") / given):
        if path.is_file():
            return path
    raise ConfigError("no such file", file=name)
