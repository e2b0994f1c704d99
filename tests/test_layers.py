"""A test of the layer `pure` that starts a process or reaches for the network fails, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HARM = {
    "process": ("import subprocess\n", "subprocess.run(['true'])", "subprocess.Popen"),
    "network": ("import socket\n", "socket.socket().bind(('127.0.0.1', 0))", "socket.bind"),
    "nothing": ("", "pass", ""),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_a_pure_test_may_not_do_fails_it(harm: str) -> None:
    imports, does, said = HARM[harm]
    folder = ROOT / "tests" / "analysis"
    file = folder / f"test_made_{harm}.py"
    file.write_text(f"{imports}def test_made() -> None:\n    {does}\n")
    try:
        command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    finally:
        file.unlink()
    assert done.returncode == (1 if said else 0), done.stdout
    assert said in done.stdout
