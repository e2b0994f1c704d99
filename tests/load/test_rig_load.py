"""`rig load` as a command: its exit codes, its output, its usage errors, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.cli.load import load
from rig.errors import UsageError
from tests.load.servers import free_port, start_mock


def rig_load(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", "load", "--model", "mock", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )


@pytest.fixture
def mock(sse_mock: Path) -> Iterator[str]:
    process, url = start_mock(sse_mock, "--tokens", "8", "--ttft", "20", "--itl", "2", "--usage")
    yield url
    process.terminate()
    process.wait()


def test_tables_and_exit_code(mock: str, tmp_path: Path) -> None:
    done = rig_load("--url", mock, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line.strip("│ \n").split("│")[0].strip(): line for line in done.stdout.splitlines() if "│" in line}
    assert rows["started"].split("│")[2].strip() == "40"
    assert rows["completed"].split("│")[2].strip() == "40"
    assert {"TTFT", "ITL (per request)", "E2EL", "hung", "overdue", "truncated", "empty"} <= rows.keys()
    assert "tokens/s" in done.stdout
    assert list(tmp_path.iterdir()) == [], "without --out nothing is left behind"


def test_json(mock: str, tmp_path: Path) -> None:
    done = rig_load("--url", mock, "--json", "--requests", "50", "--clients", "3", "--out", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["requests"] == {
        "started": 50,
        "completed": 50,
        "error": 0,
        "lost": 0,
        "void": 0,
        "unfinished": 0,
        "exposed": 0,
        "own_node": 0,
    }
    assert result["lost_how"] == {"hung": 0, "overdue": 0, "truncated": 0, "empty": 0}
    assert result["tokens"] == 400
    assert result["damaged"] == result["unclean_end"] == 0
    times = result["times"]
    assert times["ttft"]["count"] == 50
    assert 0.020 <= times["ttft"]["p50_s"] < 0.05
    assert 0.0019 <= times["itl"]["p50_s"] < 0.006
    assert (tmp_path / "kept" / "journal.jsonl").read_bytes().count(b"request_") == 100


def test_open_loop(mock: str, tmp_path: Path) -> None:
    done = rig_load("--url", mock, "--json", "--rate", "200", "--requests", "100", cwd=tmp_path)
    result: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, result["requests"]["completed"]) == (0, 100)
    assert 0.2 < result["duration_s"] < 2.0


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    done = rig_load("--url", f"http://127.0.0.1:{free_port()}", "--requests", "12", cwd=tmp_path)
    assert done.returncode == 1
    assert "ConnectError" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_the_tables_of_what_ran(sse_mock: Path, tmp_path: Path, number: signal.Signals) -> None:
    server, url = start_mock(sse_mock, "--tokens", "8", "--fault", "stall", "--every", "4")
    journal = tmp_path / "kept" / "journal.jsonl"
    try:
        rig = subprocess.Popen(
            [sys.executable, "-m", "rig", "load", "--url", url, "--model", "mock", "--json", "--out", "kept"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 20
        while not journal.exists() or journal.read_bytes().count(b"request_start") < 40:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        rig.send_signal(number)
        stdout, stderr = rig.communicate(timeout=20)
    finally:
        server.terminate()
        server.wait()
    assert rig.returncode == 128 + number
    requests = json.loads(stdout)["requests"]
    assert (requests["started"], requests["completed"], requests["unfinished"]) == (40, 30, 10)
    assert b"Traceback" not in stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "nonsense"}, "'nonsense' is not an http URL"),
        ({"requests": 0}, "--requests must be at least 1"),
        ({"clients": 0}, "clients: .*not 0"),
        ({"clients": 5000}, "clients: .*not 5000"),
        ({"max_tokens": 0}, "--max-tokens must be 1 to"),
        ({"rate": -1.0}, "rate: .*not -1"),
        ({"progress_deadline": "5"}, "--progress-deadline: expected a duration"),
        ({"total_deadline": "0s"}, "--total-deadline must be longer than nothing"),
    ],
)
def test_usage_errors(arguments: dict[str, Any], message: str) -> None:
    command: Callable[..., int] = load
    with pytest.raises(UsageError, match=message):
        command(**{"url": "http://h", "model": "mock", **arguments})


def test_a_usage_error_as_a_user_sees_it(tmp_path: Path) -> None:
    done = rig_load("--url", "nonsense", cwd=tmp_path)
    assert done.returncode == 2
    assert "'nonsense' is not an http URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_has_a_journal_is_refused(mock: str, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    done = rig_load("--url", mock, "--out", ".", cwd=tmp_path)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_answers_are_compared(mock: str, tmp_path: Path) -> None:
    asked = ("--url", mock, "--canaries", "1.0", "--requests", "20", "--max-tokens", "8")
    done = rig_load(*asked, "--json", cwd=tmp_path)
    answers = json.loads(done.stdout)["answers"]
    assert (answers["asked"], answers["combinations"], answers["stable"], answers["crossed"]) == (20, 4, 4, [])
    assert answers["by_canary"]["numbers of mock, streamed"] == {
        "different": 1,
        "alone": 1,
        "alone_alike": 1,
        "loaded": 4,
        "as_alone": 4,
    }
    assert "numbers of mock, streamed" in rig_load(*asked, cwd=tmp_path).stdout


def test_without_canaries_nothing_is_said_of_answers(mock: str, tmp_path: Path) -> None:
    done = rig_load("--url", mock, "--json", "--requests", "5", cwd=tmp_path)
    assert json.loads(done.stdout)["answers"] is None
