"""How long a report takes, and how much memory, for made-up journals of a real run's size.

    python -m bench.report_size [--hours 3] [--faults 68] [--requests 16000] [--views 50000] [--flat 200000]

`--flat N` also feeds N requests to the analysis without a file, and prints how the memory grew on the way: it must not
grow with their number. CPU seconds beside wall seconds: on a shared machine only the former mean something. Exit code 1
when reading, analysing and writing took more than five CPU seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from rig.analysis.analyse import analyse
from rig.journal.read import read_run
from rig.journal.records import AnyRecord, RequestEnded, RequestStarted
from rig.report.write import read_report, write_report
from tests.analysis.generate import Shape, info_of, records_of, write_journal

LIMIT_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--faults", type=int, default=68)
    parser.add_argument("--requests", type=int, default=16_000)
    parser.add_argument("--views", type=int, default=50_000)
    parser.add_argument("--flat", type=int, default=0)
    given = parser.parse_args()
    shape = Shape(
        duration_s=given.hours * 3600,
        faults=given.faults,
        requests=given.requests,
        views=given.views,
        baseline_s=300,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = write_journal(Path(folder) / "run", info_of(shape), records_of(shape))
        size_mb = (run / "journal.jsonl").stat().st_size / 1e6
        with _timed(f"read {size_mb:.1f} MB"):
            records = sum(1 for _ in read_run(run).records())
        begun_s = time.process_time()
        with _timed(f"read and analyse {records} records"):
            report = read_report(run)
        with _timed("write all reports, HTML included"):
            write_report(run, report)
        took_s = time.process_time() - begun_s
    if given.flat:
        _flat(given.flat)
    return int(took_s > LIMIT_S)


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
