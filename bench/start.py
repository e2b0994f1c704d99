"""How soon the rig is there: `rig --help`, and the first request of a soak on a cluster that is ready.

    python -m bench.start [--times 10] [--json FILE]

The soak is a process of its own, on an embedded cluster that was up before: counted from the start of the process,
imports and looking at the nodes included, and from when it had looked at the nodes and begun its run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.table import conclude
from rig.cli.cluster import down, up
from rig.journal.read import read_run
from rig.journal.records import RequestStarted

HELP_S: Final = 0.25
FIRST_S: Final = 2.0


def helped(times: int) -> dict[str, Any]:
    """Wall clock and CPU of `rig --help`, each the median."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(times):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "rig", "--help"], check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - begun)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return _row("rig --help", sorted(walls)[times // 2], sorted(cpus)[times // 2], HELP_S)


def first_requests(folder: Path) -> list[dict[str, Any]]:
    cluster = folder / "c"
    up(inventory="embedded", for_="10m", folder=cluster, inert=None, foreground=False, as_json=True)
    command = [sys.executable, "-m", "rig", "soak", "--minutes", "0.2", "--yes", "-i", str(cluster / "inventory.yaml")]
    try:
        begun = time.time()
        subprocess.run(
            [*command, "--out", str(folder), "--name", "first"],
            check=False,
            timeout=240,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        down(folder=cluster)
    run = read_run(folder / "first")
    first_t = next(record.t for record in run.records() if isinstance(record, RequestStarted))
    whole_s = run.info.wall_start + first_t - begun
    return [
        _row("first request of a soak, from when its run began", first_t, None, FIRST_S),
        _row("first request of a soak, from the start of its process", whole_s, None, None),
    ]


def _row(what: str, wall_s: float, cpu_s: float | None, target_s: float | None) -> dict[str, Any]:
    return {
        "what": what,
        "wall_s": round(wall_s, 3),
        "cpu_s": None if cpu_s is None else round(cpu_s, 3),
        "target_s": target_s,
        "met": None if target_s is None else wall_s <= target_s,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = [helped(given.times)]
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as name:
        rows += first_requests(Path(name))
    return conclude("Start", rows, given.json)


if __name__ == "__main__":
    sys.exit(main())
