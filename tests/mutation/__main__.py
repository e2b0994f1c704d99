"""How many small wrong changes to the analysis do its tests find? `python -m tests.mutation [--count N] [--module M]`.

A sample of all mutants of `rig.analysis`, drawn by a seed, or all of a module, each against `tests/analysis` in a
process of its own. Prints those that survived: each is a test that is missing, or a change that makes no difference
(argued in docs/defects.md). Ends with status 1 when more survive than `--most`.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.mutation.mutants import Mutant, count_of, mutant_of
from tests.mutation.one import play

ROOT: Final = Path("rig/analysis")
TESTS: Final = "tests/analysis"
ONE_LIMIT_S: Final = 200.0
LOADED: Final = ["tests.mutation.one", "rig.journal.read", "rig.load.sketch", "rig.config.inventory", "pytest_asyncio"]
"""What every process needs beside the analysis: loaded once, before the processes part."""

PARTING: Final = multiprocessing.get_context("forkserver")
PARTING.set_forkserver_preload(LOADED)

End: TypeAlias = Literal["killed", "survived", "timed out", "not tried"]


@dataclass(frozen=True)
class Place:
    """`number` counts the mutants of one module."""

    path: Path
    number: int

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts)


@dataclass(frozen=True)
class Fate:
    place: Place
    mutant: Mutant
    end: End


def all_places(only: str | None) -> list[Place]:
    paths = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    places = (Place(path, number) for path in paths for number in range(count_of(path.read_text())))
    return [place for place in places if only is None or only in place.module]


def try_one(place: Place, until: float) -> Fate:
    mutant = mutant_of(place.path.read_text(), place.number)
    if time.monotonic() > until:
        return Fate(place, mutant, "not tried")
    process = PARTING.Process(target=play, args=(place.module, mutant.source, str(place.path), TESTS))
    process.start()
    process.join(ONE_LIMIT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        return Fate(place, mutant, "timed out")
    if process.exitcode not in (0, 1):
        raise SystemExit(f"{place}: the process ended with {process.exitcode}")
    return Fate(place, mutant, "killed" if process.exitcode else "survived")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="0 takes all")
    parser.add_argument("--module", help="only modules whose name holds this")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--most", type=int, default=0, help="survivors that are allowed")
    chosen = parser.parse_args()
    whole = subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", TESTS], capture_output=True, check=False)
    if whole.returncode != 0:
        print(f"{TESTS} fails without any mutant:\n{whole.stdout.decode(errors='replace')[-1500:]}")
        return 1
    pool = all_places(chosen.module)
    picked = random.Random(chosen.seed).sample(pool, min(chosen.count or len(pool), len(pool)))
    print(f"{len(picked)} of {len(pool)} mutants, seed {chosen.seed}", flush=True)
    attempt = functools.partial(try_one, until=time.monotonic() + chosen.minutes * 60)
    counts: dict[End, int] = {"killed": 0, "survived": 0, "timed out": 0, "not tried": 0}
    with ThreadPoolExecutor(chosen.jobs) as workers:
        for fate in workers.map(attempt, picked):
            counts[fate.end] += 1
            if fate.end == "survived":
                where = f"{fate.place.module}:{fate.mutant.line} {fate.mutant.function} #{fate.mutant.number}"
                print(f"survived  {where}: {fate.mutant.what}", flush=True)
    tried = counts["killed"] + counts["survived"] + counts["timed out"]
    print(", ".join(f"{count} {end}" for end, count in counts.items()))
    print(f"found {100 * (tried - counts['survived']) / max(tried, 1):.1f} %")
    return 1 if counts["survived"] > chosen.most or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
