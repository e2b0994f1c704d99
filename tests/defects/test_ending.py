"""A signal to `make defects` alone ends the workers, what they started and what they wrote to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

PATIENCE_S = 60.0


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(0.05)


@contextmanager
def playing(scratch: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """The command with a scratch folder of its own, by which everything that it leaves can be told."""
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.defects", "--seed", "1", *arguments],
        env=os.environ | {"TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        for one in (*psutil.Process(process.pid).children(recursive=True), process) if process.poll() is None else ():
            one.kill()
        process.communicate()


def left(scratch: Path) -> list[str]:
    """Processes that were told of this scratch folder, wherever they hang in the tree by now."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("TMPDIR") == str(scratch) or str(scratch) in " ".join(process.cmdline())
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid}: {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_workers_end_with_the_command(tmp_path: Path, number: signal.Signals, status: int) -> None:
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    with playing(scratch, "slow-recovery", "stale-replay", "--keep", str(kept)) as process:
        until(lambda: len(list(kept.glob("*/journal.jsonl"))) == 2, "two runs under way")
        assert len(left(scratch)) >= 3, "the command and its workers"
        process.send_signal(number)  # not to the group: a terminal does that, `kill` does not
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == status
    assert f"ended by signal {number.value} after 0 of 2 runs" in said
    assert left(scratch) == []
    assert list(scratch.iterdir()) == []
    assert [path for path in kept.glob("*/journal.jsonl") if b'"run_end"' in path.read_bytes()] == [], "played on"


def test_a_real_rig_ends_with_its_cluster(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with playing(scratch, "--real", "wedge") as process:
        until(lambda: list(scratch.glob("rig-defects-*/rig-defects-*/run/journal*")), "a soak that has its cluster")
        nodes = [line for line in left(scratch) if "rig.lab.embedded" in line]
        assert len(nodes) >= 3, "a cluster of its own"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=2 * PATIENCE_S)
        assert process.returncode == 143
    assert "ended by signal 15 after 0 of 1 runs" in said
    assert left(scratch) == []
    assert list(scratch.iterdir()) == []
