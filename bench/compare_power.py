"""How often `rig compare` cries wolf, and how often it finds what is there: over pairs of made-up runs.

    python -m bench.compare_power [PAIRS] [SLOWER]

Half of the pairs are of equal runs: at most 5 % may be called worse. In the other half the second run takes SLOWER
(1.5) times as long to serve after each fault: at least 80 % must be found. Times to serve are spread evenly from one
second to a quarter of the time between two faults, which is a wider spread than any run on a cluster showed. Exit code
1 when a share is missed.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from rig.compare.compare import Comparison, compare
from rig.compare.samples import Samples, samples_of
from rig.report.frames import open_records
from tests.analysis.generate import Shape, info_of, records_of

SHAPE = Shape(duration_s=10_800.0, faults=68, requests=3000, views=300, baseline_s=300.0)


def made_up(shape: Shape) -> Samples:
    return samples_of(open_records(info_of(shape), records_of(shape)))


def pair(number: int, slower: float, shape: Shape = SHAPE) -> Comparison:
    """The same shape from two seeds that no other pair has."""
    base = replace(shape, seed=2 * number + 1)
    head = replace(shape, seed=2 * number + 2, slower=slower)
    return compare(made_up(base), [made_up(head)])


def flagged(pairs: int, slower: float, shape: Shape = SHAPE, first: int = 0) -> list[tuple[int, list[str]]]:
    """The pairs that were called worse, and in what."""
    found: list[tuple[int, list[str]]] = []
    for number in range(first, first + pairs):
        comparison = pair(number, slower, shape)
        if comparison.regressed:
            found.append((number, comparison.against[0].worse))
    return found


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    slower = float(sys.argv[2]) if len(sys.argv) > 2 else 1.5
    equal = flagged(pairs, 1.0)
    print(f"equal runs: {len(equal)} of {pairs} pairs called worse {[worse for _, worse in equal]}")
    unlike = flagged(pairs, slower, first=pairs)
    headline = sum("time to serve" in worse for _, worse in unlike)
    print(f"x {slower:g} as long to serve: {len(unlike)} of {pairs} pairs found, {headline} by the headline")
    return int(len(equal) > 0.05 * pairs or len(unlike) < 0.8 * pairs)


if __name__ == "__main__":
    sys.exit(main())
