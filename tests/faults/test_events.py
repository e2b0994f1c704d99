"""`events.sh`: pieces of the event log that exo has open, wherever that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rig.targets.exo.event_file import Piece, parse_piece
from tests.faults.node import Node, until

BYTES = bytes(range(256)) * 20


def piece(node: Node, **values: str) -> Piece | None:
    script = node.script("events.sh", **values)
    script.end()
    assert (script.status, script.stderr) == (0, "")
    return parse_piece(script.said)


@pytest.fixture
def log(node: Node) -> Path:
    path = node.home / "event_log" / "api" / "events.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(BYTES)
    return path


def test_a_piece_from_any_byte_on(node: Node, log: Path) -> None:
    whole = piece(node)
    assert whole == Piece(str(log), str(log.stat().st_ino), len(BYTES), BYTES[:128], BYTES)
    part = piece(node, offset="300", most="1000")
    assert part is not None
    assert part.data == BYTES[300:1300]
    for offset in (len(BYTES), len(BYTES) + 9):
        end = piece(node, offset=str(offset))
        assert end is not None
        assert (end.size, end.data) == (len(BYTES), b"")


def test_without_a_file_it_says_nothing(node: Node) -> None:
    assert piece(node) is None


def test_the_file_is_where_main_has_it_open(node: Node, log: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "data" / "event_log" / "api" / "events.bin"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(b"elsewhere")
    code = (
        "import os, sys, time\n"
        "file = open(sys.argv[3])\n"
        "open(sys.argv[2] + '/exo.pid', 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, "exo_like.py", str(node.home), str(elsewhere)])
    try:
        until(lambda: node.main_pid() == process.pid, "main is up")
        found = piece(node, match="exo_like.py")
    finally:
        process.kill()
        process.wait()
    assert found is not None
    assert (found.path, found.data) == (str(elsewhere), b"elsewhere")
    assert not psutil.pid_exists(process.pid)
    assert os.path.exists(log)


@pytest.mark.parametrize("values", [{"offset": "-1"}, {"offset": "x"}, {"most": "1e6"}])
def test_what_is_no_number_is_refused(node: Node, values: dict[str, str]) -> None:
    script = node.script("events.sh", **values)
    script.end()
    assert script.status == 2
