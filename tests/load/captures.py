"""The captured answers of a real exo cluster: their bytes with arrival times, and what a client must make of each."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

FOLDER = Path(__file__).parents[1] / "captures"
PROGRESS_S = 60.0  # the deadlines the table of outcomes is for
TOTAL_PLAIN_S = 60.0
TOTAL_STREAM_S = 300.0

_PAUSE_S = 1.0

Ending = Literal["hold", "close"]

# capture: (outcome, how, a word of the evidence)
EXPECTED: dict[str, tuple[str, str | None, str]] = {
    "err_no_instance_plain": ("error", None, "HTTP status 404"),
    "err_no_instance_stream": ("error", None, "HTTP status 404"),
    "err_unknown_model_stream": ("error", None, "HTTP status 404"),
    "runner_killed_stream": ("error", None, "Runner shutdown before completing command"),
    "runner_killed_rank1_stream": ("error", None, "Runner shutdown before completing command"),
    "runner_killed_plain": ("lost", "empty", "without a token"),
    "instance_deleted_stream": ("lost", "truncated", "without finish reason"),
    "instance_deleted_plain": ("lost", "truncated", "without finish reason"),
    "node_kill_remote_stream": ("lost", "truncated", "without finish reason"),
    "node_kill_remote_plain": ("lost", "truncated", "without finish reason"),
    "node_kill_late": ("lost", "empty", "without a token"),
    "node_kill_local_stream": ("error", None, "connection closed inside the body"),
    "master_kill_B_stream": ("lost", "hung", "no more tokens"),
    "master_kill_late": ("lost", "hung", "not one token"),
    "master_kill_B_plain": ("lost", "hung", "no answer by the total deadline"),
    "freeze_host_5s_remote_stream": ("completed", None, ""),
    "freeze_host_20s_remote_stream": ("completed", None, ""),
    "freeze_host_20s_remote_plain": ("completed", None, ""),
    "stream_over_join": ("completed", None, ""),
    # not lost: the tokens went on after 46 s; the capture was cut off there, which the replay does by closing
    "freeze_host_45s_remote_stream": ("error", None, "connection closed inside the body"),
}


@dataclass(frozen=True)
class Capture:
    name: str
    pieces: list[tuple[float, bytes]]  # seconds since the request was sent, bytes
    ending: Ending  # what follows the last piece

    @property
    def streamed(self) -> bool:
        return not self.name.endswith("_plain")

    def rechunked(self, seed: int | None) -> list[tuple[float, bytes]]:
        """The same bytes cut elsewhere: at random, or (no seed) one byte at a time.

        A piece arrives with its last byte, so none spans a pause: that would hold tokens back.
        """
        whole = b"".join(data for _, data in self.pieces)
        times = [t for t, data in self.pieces for _ in data]
        rng = Random(seed)
        pieces: list[tuple[float, bytes]] = []
        at = 0
        while at < len(whole):
            size = 1 if seed is None else rng.choice((1, 2, 3, 7, 40, 200, 1000))
            end = min(at + size, len(whole))
            while times[end - 1] - times[at] > _PAUSE_S:
                end -= 1
            pieces.append((times[end - 1], whole[at:end]))
            at = end
        return pieces

    def head(self) -> bytes:
        whole = b"".join(data for _, data in self.pieces)
        return whole[: whole.index(b"\r\n\r\n") + 4]

    def events(self) -> list[bytes]:
        """The events of a stream, each with its blank line, read by means of this test alone."""
        whole = b"".join(data for _, data in self.pieces)
        body = b"".join(_chunks(whole[len(self.head()) :]))
        return [event + b"\n\n" for event in body.split(b"\n\n") if event]


def _chunks(framed: bytes) -> list[bytes]:
    found: list[bytes] = []
    while framed:
        size, _, framed = framed.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            break
        found.append(framed[:length])
        framed = framed[length + 2 :]
    return found


def framed(body: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%s\r\n" % (len(body), body)


def load_capture(name: str) -> Capture:
    summary_text, _, raw = (FOLDER / f"{name}.txt").read_text().partition("--- raw (time: bytes) ---\n")
    summary: dict[str, Any] = json.loads(summary_text)
    pieces: list[tuple[float, bytes]] = []
    left_out_at = 0
    for line in raw.splitlines():
        if match := re.match(r"^(\d+\.\d+): (b['\"].*)$", line):
            pieces.append((float(match[1]), cast("bytes", ast.literal_eval(match[2]))))
        else:
            assert "chunks left out" in line, line
            left_out_at = len(pieces)
    assert pieces
    silent_s = sum(summary["gaps"])
    if left_out_at and pieces[left_out_at][0] - pieces[left_out_at - 1][0] > PROGRESS_S > silent_s:
        # The left-out chunks hold tokens up to the silence that the summary tells of: one of them is put back there.
        pieces.insert(left_out_at, (pieces[left_out_at][0] - silent_s, pieces[left_out_at - 1][1]))
    holds = summary["end"] is None or "timed out" in summary["end"]
    # one of those without an end had its tokens back when the capture stopped
    return Capture(name, pieces, "hold" if holds and name != "freeze_host_45s_remote_stream" else "close")


def captures() -> list[Capture]:
    return [load_capture(name) for name in EXPECTED]
