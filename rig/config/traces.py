"""Recorded traffic: when requests came and how long they were, one JSON object a line.

The format is that of the Mooncake traces (`timestamp` in milliseconds, `input_length`, `output_length`; other keys,
such as `hash_ids`, are passed over). For lengths alone the timestamps may be missing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from rig.config.stock import stock_folder
from rig.errors import ConfigError

MAX_ROWS: Final = 1_000_000
_LINE_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TraceRow:
    """`at_s` counts from the first row, in seconds; lengths in tokens."""

    at_s: float
    prompt_tokens: int
    output_tokens: int


class _Line(msgspec.Struct):
    input_length: int
    output_length: int
    timestamp: float | None = None


def read_trace(name: str, *, timed: bool = True) -> list[TraceRow]:
    """The rows of a file in the order of time. Raises ConfigError naming the line that is none.

    A path that is not there as given is looked for in `./workloads` and among the stock workloads.
    """
    path = _found(name)
    rows: list[TraceRow] = []
    decoder = msgspec.json.Decoder(_Line)
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(_LINE_MAX), b""), start=1):
                if line.strip():
                    rows.append(_row(decoder, line, timed, path, number))
                if len(rows) > MAX_ROWS:
                    raise ConfigError(f"more than {MAX_ROWS} rows", file=str(path), line=number)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=name) from error
    if not rows:
        raise ConfigError("expected rows with input_length and output_length, found none", file=name)
    rows.sort(key=lambda row: row.at_s)
    first_s = rows[0].at_s
    return [TraceRow(row.at_s - first_s, row.prompt_tokens, row.output_tokens) for row in rows]


def period_s(rows: list[TraceRow]) -> float:
    """After how long a replay begins again: the time of the last row and one mean gap, at least a millisecond."""
    gaps = [later.at_s - earlier.at_s for earlier, later in pairwise(rows)]
    return max(rows[-1].at_s + (sum(gaps) / len(gaps) if gaps else 1.0), 0.001)


def _row(decoder: msgspec.json.Decoder[_Line], line: bytes, timed: bool, path: Path, number: int) -> TraceRow:  # noqa: FBT001 (one call)
    try:
        found = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"no row of a trace: {error}", file=str(path), line=number) from error
    if timed and found.timestamp is None:
        raise ConfigError("missing: timestamp, in milliseconds", file=str(path), line=number)
    if not (1 <= found.input_length <= 1_000_000 and 1 <= found.output_length <= 1_000_000):
        raise ConfigError("expected lengths of 1 to 1000000 tokens", file=str(path), line=number)
    at_s = 0.0 if found.timestamp is None else found.timestamp / 1000
    return TraceRow(at_s, found.input_length, found.output_length)


def _found(name: str) -> Path:
    given = Path(os.path.expanduser(name))
    for path in (given, Path("workloads") / given, stock_folder("workloads") / given):
        if path.is_file():
            return path
    raise ConfigError("no such file", file=name)
