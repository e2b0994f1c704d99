"""The cluster's own account of what really happened, written by its processes and independent of the rig's journal.

One JSONL file a writing process under the cluster's `ledger/` folder. `t` is CLOCK_MONOTONIC in seconds, which all
processes of one machine share; the first line of a file maps it to Unix time. A process that is SIGKILLed leaves a
request without its end: that is the truth (its connection broke), and `ProcessExited` of its pid says when.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

RequestEnd: TypeAlias = Literal[
    "finished",  # a finish reason was sent, and the end that follows it
    "error",  # an error event (streamed), a broken body (not streamed), or an HTTP status of 400 and above
    "cut",  # a clean end without finish reason or error
    "aborted",  # the connection was broken from this side
    "left",  # the client closed the connection first
]


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    t: float


class Opened(Entry, frozen=True, kw_only=True, tag="opened"):
    """First line of a file. Unix time = `t` + `wall_offset_s`."""

    node: str
    process: str
    pid: int
    wall_offset_s: float


class RequestOpened(Entry, frozen=True, kw_only=True, tag="request"):
    """A chat completion reached its entry node. `response` is known from here on unless it was refused."""

    node: str
    response: str
    model: str
    streamed: bool
    request: str = ""  # what the client called it, in `x-request-id`


class RequestClosed(Entry, frozen=True, kw_only=True, tag="request_end"):
    node: str
    response: str
    end: RequestEnd
    status: int
    finish_reason: str | None = None
    tokens: int = 0  # content-bearing chunks handed to the connection (for a body that is not streamed: in the body)
    last_token_t: float | None = None
    message: str = ""
    request: str = ""


class ProcessStarted(Entry, frozen=True, kw_only=True, tag="process"):
    """`role`: main, runner, tracker, session. `start` is the process's creation in Unix seconds, as psutil tells it."""

    node: str
    role: str
    pid: int
    start: float
    detail: str = ""


class ProcessExited(Entry, frozen=True, kw_only=True, tag="process_end"):
    """`status` as waitpid tells it: an exit status, or a negative signal number."""

    node: str
    role: str
    pid: int
    status: int


class ProcessSignalled(Entry, frozen=True, kw_only=True, tag="signal"):
    """The cluster itself is about to signal one of its processes: a main its runner, a machine its main."""

    node: str
    role: str
    pid: int
    signal: int


class Serving(Entry, frozen=True, kw_only=True, tag="serving"):
    """The main process `pid` accepts connections at its API from now on."""

    node: str
    pid: int


class Stopping(Entry, frozen=True, kw_only=True, tag="stopping"):
    """A main has begun to shut down, or a machine to end every process of its node: `process` is the writer's."""

    node: str
    process: str
    pid: int


class FilterChanged(Entry, frozen=True, kw_only=True, tag="filter"):
    """The node's packet filter as it is from now on; `packets` of what was removed by the change."""

    node: str
    command: str
    rules: list[str]
    packets: int = 0


class InstanceChanged(Entry, frozen=True, kw_only=True, tag="instance"):
    """An event of the cluster's log about instances, deployments or the master, as this node applied it."""

    node: str
    name: str
    index: int
    data: dict[str, object]


AnyEntry: TypeAlias = (
    Opened
    | RequestOpened
    | RequestClosed
    | ProcessStarted
    | ProcessExited
    | ProcessSignalled
    | Serving
    | Stopping
    | FilterChanged
    | InstanceChanged
)

MAX_FILE_BYTES = 1 << 30


class Ledger:
    """One process's file. A line is one `write` to an `O_APPEND` descriptor, so that a SIGKILL tears at most the
    last.
    """

    def __init__(self, folder: Path | str, *, node: str, process: str) -> None:
        path = Path(folder) / f"{node}-{process}-{os.getpid()}.jsonl"
        self.node = node
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._encoder = msgspec.json.Encoder()
        self._left_bytes = MAX_FILE_BYTES
        offset_s = time.time() - time.monotonic()
        self.write(Opened(t=self.now(), node=node, process=process, pid=os.getpid(), wall_offset_s=offset_s))

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def write(self, entry: AnyEntry) -> None:
        """Never raises for a full disk: the ledger must not change what it describes; a short file fails the audit."""
        line = self._encoder.encode(entry) + b"\n"
        self._left_bytes -= len(line)
        if self._left_bytes >= 0:
            try:
                os.write(self._fd, line)
            except OSError:
                self._left_bytes = 0

    def close(self) -> None:
        os.close(self._fd)


def read_lines(path: Path, decoder: msgspec.json.Decoder[AnyEntry]) -> Iterator[AnyEntry]:
    """The entries of one file in order; a torn last line is dropped, a broken line elsewhere raises ValueError."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise ValueError(f"{path}:{number}: {error}") from error


def read_ledger(folder: Path | str) -> list[AnyEntry]:
    """All entries of a cluster's folder, in order of time."""
    decoder: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)
    entries = [
        entry for path in sorted((Path(folder) / "ledger").glob("*.jsonl")) for entry in read_lines(path, decoder)
    ]
    return sorted(entries, key=lambda entry: entry.t)
