"""Targets' own words stand in their own folders, in the lab (an exo cluster) and in the docs, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
OWN: Final = frozenset({"exo", "runner", "runners", "ring", "rings", "keeper", "keepers", "mlxjaccl", "52415"})
PLACES: Final = ("rig/targets/exo/", "rig/lab/")
REGISTRY: Final = "rig/targets/registry.py"
_PART: Final = re.compile(r"MlxJaccl|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

ALLOWED: Final[dict[str, int]] = {
    "rig/analysis/answers/instances.py": 1,
    "rig/config/defects.py": 13,
    "rig/config/inventory.py": 6,
    "rig/journal/earlier.py": 2,
    "rig/journal/records.py": 1,
    "rig/nodes/bootstrap.py": 1,
    "rig/nodes/doctor.py": 6,
    "rig/nodes/doctor_full.py": 1,
    "rig/nodes/judging.py": 14,
    "rig/report/html/assets/chart.js": 2,
    "rig/report/html/assets/recovery.js": 2,
    "rig/report/html/assets/requests.js": 3,
    "rig/report/lanes.py": 2,
}
"""Lines with such words that are still to go, by file. A file that has fewer is to be entered so: never more."""


def _lines_with_words(text: str) -> int:
    """Identifiers are split at underscores, capitals and digits."""
    return sum(any(part.lower() in OWN for part in _PART.findall(line)) for line in text.splitlines())


def test_words_are_told_apart() -> None:
    for line in ("exo", "EXO_HOME", "exo's", "is_runner(x)", "RunnerReady", "MlxJaccl", ":52415", "a RingWatch"):
        assert _lines_with_words(line) == 1, line
    assert _lines_with_words("string, during, exotic, 524150, keep") == 0


def test_no_word_of_a_target_stands_outside_of_it() -> None:
    found = dict[str, int]()
    for path in sorted((ROOT / "rig").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in {".py", ".js", ".css", ".html"} or name.startswith(PLACES) or name == REGISTRY:
            continue
        if count := _lines_with_words(path.read_text(encoding="utf-8")):
            found[name] = count
    assert found == ALLOWED
