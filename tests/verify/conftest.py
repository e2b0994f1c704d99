"""One embedded cluster for all tests of this folder, and `rig` as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

INVENTORY = """name: quick-embedded
embedded:
  nodes: 2
  pace: 20
  load_time: 4s
"""
LIMIT_S = 120.0


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def told(self) -> dict[str, Any]:
        return json.loads(self.out)


def rig_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rig", *arguments]


@dataclass(frozen=True)
class Rig:
    inventory: Path
    folder: Path

    def verify(self, *arguments: str) -> Ran:
        done = subprocess.run(
            [*self._command(*arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False, env=self._env()
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def interrupted(self, *arguments: str, when: Callable[[str], bool], number: signal.Signals) -> Ran:
        """`number` is sent once a line on stderr is `when`."""
        with subprocess.Popen(
            self._command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._env(),
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if when(line):
                    process.send_signal(number)
                    break
            out, err = process.communicate(timeout=LIMIT_S)
        return Ran(process.returncode, out, err)

    def _command(self, *arguments: str) -> list[str]:
        return rig_command("verify", *arguments, "-i", str(self.inventory), "--out", str(self.folder), "--yes")

    def _env(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name != "RIG_INVENTORY"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The inventory of a running cluster of two nodes at pace 20."""
    home = tmp_path_factory.mktemp("verify-cluster")
    wanted = home / "quick.yaml"
    wanted.write_text(INVENTORY)
    folder = home / "cluster"
    options = ("--inventory", str(wanted), "--folder", str(folder), "--for", "20m", "--json")
    started = subprocess.run(
        rig_command("cluster", "up", *options), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert started.returncode == 0, started.stderr
    try:
        yield folder / "inventory.yaml"
    finally:
        subprocess.run(
            rig_command("cluster", "down", "--folder", str(folder)), capture_output=True, timeout=60, check=False
        )


@pytest.fixture
def rig(cluster: Path, tmp_path: Path) -> Rig:
    return Rig(cluster, tmp_path / "results")


def scenario(folder: Path, name: str, steps: str, *, proves: str = "as-expected") -> str:
    """A file of its own; returns its path."""
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nabout: for a test\nproves: [{proves}]\nsteps:\n{steps}")
    return str(path)
