"""How many small wrong changes to the analysis do its tests find? `python -m tests.mutation [--count N] [--module M]`.

A sample of all mutants of the analysis and of the checks of targets, drawn by a seed, or all of a module, each against
the tests that reach it. Prints those that survived: each is a test that is missing, or a change that makes no
difference (argued in docs/defects.md). Ends with status 1 when more survive than `--most`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.mutants import count_of
from tests.mutation.trial import Place, Trial

ROOTS: Final = ("rig/analysis", "rig/targets/exo/keeper", "rig/targets/exo/checks")
TESTS: Final = ("tests/analysis",)
OPTIONS: Final = ("-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:timeout", "-s")


def all_places(only: str | None) -> list[Place]:
    paths = [path for root in ROOTS for path in sorted(Path(root).rglob("*.py"))]
    assert all(any(root in str(path) for path in paths) for root in ROOTS), "a folder of ROOTS has moved"
    places = (Place(path, number) for path in paths for number in range(count_of(path.read_text())))
    return [place for place in places if only is None or only in ".".join(place.path.with_suffix("").parts)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="0 takes all")
    parser.add_argument("--module", help="only modules whose name holds this")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--slowest", type=float, default=60.0, help="leave out tests that take longer (seconds)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--most", type=int, default=0, help="survivors that are allowed")
    chosen = parser.parse_args()
    pool = all_places(chosen.module)
    picked = random.Random(chosen.seed).sample(pool, min(chosen.count or len(pool), len(pool)))
    print(f"{len(picked)} of {len(pool)} mutants, seed {chosen.seed}", flush=True)
    trial = Trial(picked, jobs=chosen.jobs, slowest_s=chosen.slowest, until=time.monotonic() + chosen.minutes * 60)
    if pytest.main([*OPTIONS, *TESTS], plugins=[trial]) != 0:
        return 1
    counts = Counter(trial.ends.values())
    tried = counts.total() - counts["not tried"]
    print(", ".join(f"{counts[end]} {end}" for end in ("killed", "survived", "timed out", "not tried")))
    print(f"found {100 * (tried - counts['survived']) / max(tried, 1):.1f} %")
    return 1 if counts["survived"] > chosen.most or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
