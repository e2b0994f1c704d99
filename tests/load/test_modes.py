"""`rig load` against a server with every fault it has: every fourth of 40 requests is faulty, none is miscounted."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rig.journal.records import AnyRecord, RequestEnded, RequestStarted
from tests.load.servers import start_mock


@dataclass(frozen=True)
class Mode:
    fault: str
    outcome: str  # of the faulty ones
    how: str | None
    evidence: str
    stream: bool = True
    progress: str = "1s"
    total: str = "2s"


MODES = [
    Mode("none", "completed", None, ""),
    Mode("hang", "lost", "hung", "not one token came"),
    Mode("close", "error", None, "connection closed before a response"),
    Mode("rst", "error", None, "ConnectionResetError"),
    Mode("midrst", "error", None, "ConnectionResetError"),
    Mode("midclose", "error", None, "connection closed inside the body"),
    Mode("nodone", "lost", "truncated", "clean end without finish reason"),
    Mode("nofin", "lost", "truncated", "clean end without finish reason"),
    Mode("stall", "lost", "hung", "no more tokens came"),
    Mode("errev", "error", None, "runner died"),
    Mode("errfirst", "error", None, "runner died"),
    Mode("404", "error", None, "HTTP status 404"),
    Mode("503", "error", None, "HTTP status 503"),
    Mode("garbage", "error", None, "cannot be parsed"),
    Mode("garbhead", "error", None, "not HTTP"),
    Mode("drip", "lost", "overdue", "total deadline", progress="3.5s", total="4s"),
    Mode("dribble", "completed", None, "", progress="3s", total="9s"),
    Mode("empty", "lost", "empty", "clean end without a token"),
    Mode("html200", "error", None, "proxy login"),
    Mode("none", "completed", None, "", stream=False),
    Mode("hang", "lost", "hung", "no answer by the total deadline", stream=False),
    Mode("close", "error", None, "connection closed before a response", stream=False),
    Mode("rst", "error", None, "ConnectionResetError", stream=False),
    Mode("404", "error", None, "HTTP status 404", stream=False),
    Mode("503", "error", None, "HTTP status 503", stream=False),
    Mode("garbhead", "error", None, "not HTTP", stream=False),
    Mode("html200", "error", None, "proxy login", stream=False),
]


async def _rig_load(mode: Mode, binary: Path, out: Path, turn: asyncio.Semaphore) -> tuple[int, dict[str, Any]]:
    async with turn:
        server, url = start_mock(
            binary, "--tokens", "8", "--ttft", "5", "--itl", "2", "--usage", "--fault", mode.fault, "--every", "4"
        )
        try:
            rig = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "rig", "load", "--url", url, "--model", "mock", "--json"),
                *("--clients", "12", "--requests", "40", "--stream" if mode.stream else "--no-stream"),
                *("--progress-deadline", mode.progress, "--total-deadline", mode.total, "--out", str(out)),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            stdout, stderr = await asyncio.wait_for(rig.communicate(), 60)
        finally:
            server.terminate()
            server.wait()
    assert rig.returncode in (0, 1), stderr.decode()
    return rig.returncode, json.loads(stdout)


def _check(mode: Mode, code: int, result: dict[str, Any], out: Path) -> None:
    requests, faulty = result["requests"], 0 if mode.outcome == "completed" else 10
    assert requests["started"] == 40
    assert requests["completed"] == 40 - faulty
    assert requests[mode.outcome] == (faulty or 40)
    assert requests["unfinished"] == requests["void"] == 0
    assert requests["started"] == sum(requests[name] for name in ("completed", "error", "lost", "void", "unfinished"))
    assert {how: count for how, count in result["lost_how"].items() if count} == (
        {mode.how: 10} if mode.how is not None else {}
    )
    assert code == (1 if faulty else 0)
    decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)
    records = [decoder.decode(line) for line in (out / "journal.jsonl").read_bytes().splitlines()]
    starts = [record for record in records if isinstance(record, RequestStarted)]
    ends = [record for record in records if isinstance(record, RequestEnded)]
    assert len({start.id for start in starts}) == 40
    assert sorted(end.id for end in ends) == sorted(start.id for start in starts)
    failed = [end for end in ends if end.outcome != "completed"]
    assert all(mode.evidence in end.evidence and len(end.evidence.encode()) <= 600 for end in failed)
    assert not any(end.damaged or end.unclean_end for end in ends)


@pytest.mark.timeout(120)
async def test_every_fault_of_the_mock_server(sse_mock: Path, tmp_path: Path) -> None:
    turn = asyncio.Semaphore(4)
    outs = [tmp_path / f"{number}-{mode.fault}" for number, mode in enumerate(MODES)]
    results = await asyncio.gather(
        *(_rig_load(mode, sse_mock, out, turn) for mode, out in zip(MODES, outs, strict=True))
    )
    for mode, out, (code, result) in zip(MODES, outs, results, strict=True):
        try:
            _check(mode, code, result, out)
        except AssertionError as error:
            error.add_note(f"{mode}\n{json.dumps(result)[:3000]}")
            raise
