"""How long the reports of a run take, and how much memory: for made-up journals of three hours and of seven days.

    python -m bench.report_size [--days 7] [--flat 200000] [--json FILE]

Three hours are 16,000 requests and 68 faults. `--days N` adds a run of N days, two million requests in seven, faults
at the same rate, a probe every 125 ms while one goes on, and what observation writes: event indices, who served what,
the rig's own health. Each report is made by a process of its own, so that start and imports count; memory is of all
its processes together; CPU seconds stand beside wall seconds, for a machine that does other work. `--flat N` also
feeds N requests to the analysis without a file, and prints how the memory grew on the way. Exit code 1 when a target
was missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil

from bench.table import conclude
from rig.analysis.analyse import analyse
from rig.analysis.intake.reading import PROCESSES
from rig.journal.records import AnyRecord, RequestEnded, RequestStarted
from rig.load.collector import settle_collector
from rig.report.json import report_bytes
from rig.report.write import read_report, write_report
from tests.analysis.generate import Shape, info_of, records_of, write_journal, write_long_journal

LONG_REQUESTS: Final = 2_000_000  # in seven days
SHORT: Final = Shape(
    duration_s=10_800.0, faults=68, requests=16_000, views=16_200, baseline_s=300.0, probe_s=0.125, served=True
)
HTML: Final = "tables and HTML"
TABLES: Final = "tables alone"
LIMITS: Final = {(3.0, TABLES): 2.0, (3.0, HTML): 5.0, (168.0, HTML): 15.0}
LIMIT_MB: Final = 1000.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=0)
    parser.add_argument("--flat", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(Path(given.child[0]), given.child[1])
        return 0
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        short = write_journal(Path(folder) / "short", info_of(SHORT), records_of(SHORT))
        rows += [_measure(short, 3.0, what) for what in (TABLES, HTML)]
        if given.days:
            rows.append(_measure(_long(Path(folder) / "long", given.days), given.days * 24.0, HTML))
    missed = conclude("Reports", rows, given.json)
    if given.flat:
        _flat(given.flat)
    return missed


def _long(folder: Path, days: int) -> Path:
    """Repetitions of three hours with more requests."""
    shape = replace(SHORT, requests=LONG_REQUESTS // 56)
    cycles = days * 8
    return write_long_journal(folder, info_of(replace(shape, duration_s=days * 86_400.0)), shape, cycles)


def _child(run: Path, what: str) -> None:
    """One report, as a process that only makes it. Says how many records it read."""
    settle_collector()  # as `rig report` does
    report = read_report(run)
    if what == HTML:
        write_report(run, report)
    else:
        report_bytes(report.analysis, report.verdict)
    usage, beside = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = usage.ru_maxrss + PROCESSES * beside.ru_maxrss  # the largest of those beside, as if all were
    print(
        json.dumps(
            {
                "records": report.analysis.notes.lines,
                "requests": report.analysis.requests.total.started,
                "peak_mb": round(peak / (1e3 if sys.platform == "linux" else 1e6)),
            }
        )
    )


def _measure(run: Path, hours: float, what: str) -> dict[str, Any]:
    size_mb = sum(path.stat().st_size for path in run.glob("journal*.jsonl")) / 1e6
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.report_size", "--child", str(run), what], stdout=subprocess.PIPE, check=True
    )
    wall_s, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told, limit_s = json.loads(done.stdout), LIMITS.get((hours, what))
    return {
        "hours": int(hours),
        "what": what,
        "requests": told["requests"],
        "records": told["records"],
        "journal_mb": round(size_mb),
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "us_a_record": round(cpu_s / told["records"] * 1e6, 1),
        "peak_mb": told["peak_mb"],
        "target_s": limit_s,
        "met": None if limit_s is None else wall_s <= limit_s and told["peak_mb"] <= LIMIT_MB,
    }


class _timed:  # noqa: N801 (reads as a statement)
    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall_s, cpu_s = time.perf_counter() - self._wall, time.process_time() - self._cpu
        print(f"{self._what}: {wall_s:.2f} s, CPU {cpu_s:.2f} s")


def _flat(count: int) -> None:
    shape = Shape(faults=0)
    with _timed(f"analyse {count} requests"):
        analyse(info_of(shape), _calm(count))


def _calm(count: int) -> Iterator[AnyRecord]:
    """Twenty requests a second that all complete, printing the memory ten times."""
    process, step = psutil.Process(), max(count // 10, 1)
    for number in range(count):
        sent_t, name = number / 20, f"r{number}"
        yield RequestStarted(
            t=sent_t,
            id=name,
            source="load",
            client="c0",
            model="lab/tiny-a",
            entry="node-1",
            planned_t=sent_t,
            streamed=True,
            prompt_tokens=8,
            max_tokens=8,
        )
        yield RequestEnded(t=sent_t + 0.01, id=name, outcome="completed", started_t=sent_t, ended_t=sent_t + 0.01)
        if (number + 1) % step == 0:
            print(f"  {number + 1} requests: {process.memory_info().rss / 1e6:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
