"""How many small wrong changes to the analysis do its tests find? `python -m tests.mutation [--count N] [--module M]`.

A sample of all mutants of `rig.analysis`, drawn by a seed, each against `tests/analysis` in a process of its own.
Prints those that survived: each is a test that is missing, or a change that makes no difference (argued in
docs/defects.md). Ends with status 1 when more survive than `--most`.
"""

from __future__ import annotations

import argparse
import functools
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.mutation.mutants import Mutant, mutants_of

ROOT: Final = Path("rig/analysis")
TESTS: Final = "tests/analysis"
ONE_LIMIT_S: Final = 400.0
SLOW: Final = "every_prefix or memory_of or live_decision"
"""Tests that take seconds and look at what others look at as well; they come last."""


@dataclass(frozen=True)
class Fate:
    module: str
    mutant: Mutant
    end: Literal["killed", "survived", "timed out", "not tried"]


def all_mutants(only: str | None) -> list[tuple[str, Mutant]]:
    paths = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    named = [(".".join(path.with_suffix("").parts), path) for path in paths]
    return [(m, mutant) for m, path in named if only is None or only in m for mutant in mutants_of(path.read_text())]


def try_one(item: tuple[str, Mutant], until: float) -> Fate:
    module, mutant = item
    if time.monotonic() > until:
        return Fate(module, mutant, "not tried")
    for selection in (f"not ({SLOW})", SLOW):
        command = [sys.executable, "-m", "tests.mutation.one", module, str(mutant.number), TESTS, "-k", selection]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=ONE_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return Fate(module, mutant, "timed out")
        if ended.returncode != 0:
            return Fate(module, mutant, "killed")
    return Fate(module, mutant, "survived")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
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
    pool = all_mutants(chosen.module)
    picked = random.Random(chosen.seed).sample(pool, min(chosen.count, len(pool)))
    print(f"{len(picked)} of {len(pool)} mutants, seed {chosen.seed}", flush=True)
    attempt = functools.partial(try_one, until=time.monotonic() + chosen.minutes * 60)
    counts = {"killed": 0, "survived": 0, "timed out": 0, "not tried": 0}
    with ThreadPoolExecutor(chosen.jobs) as workers:
        for fate in workers.map(attempt, picked):
            counts[fate.end] += 1
            if fate.end == "survived":
                where = f"{fate.module}:{fate.mutant.line} {fate.mutant.function} #{fate.mutant.number}"
                print(f"survived  {where}: {fate.mutant.what}", flush=True)
    tried = counts["killed"] + counts["survived"] + counts["timed out"]
    print(", ".join(f"{count} {end}" for end, count in counts.items()))
    print(f"found {100 * (tried - counts['survived']) / max(tried, 1):.1f} %")
    return 1 if counts["survived"] > chosen.most or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
