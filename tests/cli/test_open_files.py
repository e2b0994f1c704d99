"""A load that needs more connections than the limit of open files allows: the target must not get the blame."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.soak.lane import PATIENCE_S, RIG, clean_environment

WORK = "name: w\nmodels: [{model: lab/tiny-a}]\n"


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("clients: 500\n", "500 connections at once need 628 open files, the limit is 300 (hard limit 300)"),
        (
            "arrivals: {kind: poisson, rate: 1, max_concurrency: 600}\n",
            "600 connections at once need 728 open files, the limit is 300 (hard limit 300)",
        ),
    ],
)
def test_a_soak_is_refused_before_anything_is_started(tmp_path: Path, workload: str, said: str) -> None:
    (tmp_path / "w.yaml").write_text(WORK + workload)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 300; exec "$@"', "sh", *RIG, "soak", "--yes", "--minutes", "0.1", "-w", "w.yaml"],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "fix: raise it with `ulimit -n`" in done.stderr
    assert "starting an embedded cluster" not in done.stderr
    assert list((tmp_path / "results").iterdir()) == []
