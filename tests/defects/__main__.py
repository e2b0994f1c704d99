"""Do the checks find every defect, and nothing else? `python -m tests.defects [NAME…]`, or `make defects`.

Each defect that the embedded cluster can be given is played under virtual time, with parameters drawn anew: a soak
whose faults bring it out, or a scripted scenario. A check that is meant for it must fail, and without the event log
must not pass. Sound runs must raise nothing, runs of exo 0.3.70 with a correct keeper no check of the keeper, and runs
with exo's own keeper nothing but what that breaks, and only where it does.

Prints a line a run and the table. Ends with status 1 when a defect was missed, when a sound run raised anything, or
when there was not time for all. A signal ends it with all that it started, and without a table.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Final

from rig.config.defects import DEFECTS
from tests.defects.ending import Ending, end_workers, in_worker
from tests.defects.jobs import Job, Row, run
from tests.defects.table import line, matrix, summary, written

DOCUMENT: Final = Path("docs/defects.md")
_LOOK_S: Final = 0.2  # for a signal


def jobs_of(
    names: Sequence[str],
    *,
    sound: int,
    flawed: int,
    seed: int,
    folder: Path | None,
    real: bool = False,
    upstream: int = 0,
) -> list[Job]:
    """Defects first, each with a seed of its own; then so many sound and flawed soaks, always simulated."""
    rng = random.Random(seed)
    chosen = [name for name in DEFECTS if not names or name in names]
    found = [Job("defect", name, rng.getrandbits(24), folder, real) for name in chosen]
    found += [Job("sound", "soak", rng.getrandbits(24), folder) for _ in range(sound)]
    found += [Job("flawed", "soak", rng.getrandbits(24), folder) for _ in range(flawed)]
    found += [Job("upstream", "soak", rng.getrandbits(24), folder) for _ in range(upstream)]
    return found


def rows_of(jobs: Sequence[Job], workers: int, until: float, ending: Ending) -> Iterator[Row]:
    """As they come; what could not be begun by then is a row that says so. Nothing comes after a signal."""
    waiting = list(reversed(jobs))
    with (
        tempfile.TemporaryDirectory(prefix="rig-defects-") as scratch,
        ProcessPoolExecutor(workers, initializer=in_worker, initargs=(scratch,)) as pool,
    ):
        running: set[Future[Row]] = set()
        while (waiting or running) and ending.number is None:
            while waiting and len(running) < workers:
                job = waiting.pop()
                if time.monotonic() > until:
                    yield Row(job, ok=False, why="there was no time for it")
                    continue
                running.add(pool.submit(run, job))
            done, running = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()
        if ending.number is not None:
            end_workers()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.defects", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects; without any: all, and the sound runs")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="the same")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--sound", type=int, help="how many sound runs (default: 20 with all defects, else none)")
    parser.add_argument("--flawed", type=int, help="how many of exo 0.3.70 with a correct keeper (the same)")
    parser.add_argument("--upstream", type=int, help="how many with exo's own keeper (the same)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--keep", type=Path, help="a folder to keep the runs in")
    parser.add_argument("--real", action="store_true", help="real processes: rig soak and rig verify, one at a time")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT}")
    chosen = parser.parse_args(arguments)
    names = [*chosen.names, *chosen.only]
    unknown = [name for name in names if name not in DEFECTS]
    if unknown:
        parser.error(f"no such defect: {', '.join(unknown)} (there are: {', '.join(DEFECTS)})")
    asked = (chosen.sound, chosen.flawed, chosen.upstream)
    sound, flawed, upstream = (given if given is not None else (0 if names else 20) for given in asked)
    print(f"seed {chosen.seed}", flush=True)
    if chosen.real:
        sound = flawed = upstream = 0
    jobs = jobs_of(
        names,
        sound=sound,
        flawed=flawed,
        upstream=upstream,
        seed=chosen.seed,
        folder=chosen.keep,
        real=chosen.real,
    )
    rows: list[Row] = []
    with Ending() as ending:
        for row in rows_of(jobs, 1 if chosen.real else chosen.jobs, time.monotonic() + chosen.minutes * 60, ending):
            rows.append(row)
            print(line(row), flush=True)
    if ending.number is not None:
        print(f"ended by signal {ending.number} after {len(rows)} of {len(jobs)} runs", flush=True)
        return ending.status
    print("\n".join(["", *matrix(rows), "", *summary(rows)]))
    if chosen.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(), rows, chosen.seed))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
