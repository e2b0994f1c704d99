"""Which folder is meant by what a user calls a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rig.errors import UsageError
from rig.journal.run import RUN_FILE

RESULTS: Final = Path("results")


def find_run(name: str, results: Path = RESULTS) -> Path:
    """A path, a name under `results`, or `last` for the one begun last. Raises UsageError saying what is there."""
    if name == "last":
        runs = _runs(results)
        if not runs:
            raise UsageError(f"there is no run in {results}/", remedy="rig soak --minutes 4")
        return runs[-1]
    for folder in (Path(name), results / name):
        if (folder / RUN_FILE).is_file():
            return folder
    known = ", ".join(folder.name for folder in _runs(results)[-5:]) or "none"
    raise UsageError(f"there is no run called {name!r}", remedy=f"give a folder, or one of {results}/: {known}")


def _runs(results: Path) -> list[Path]:
    """In the order in which they were begun: `run.json` is written at the start and never again."""
    found = [path.parent for path in results.glob(f"*/{RUN_FILE}")] if results.is_dir() else []
    return sorted(found, key=lambda folder: ((folder / RUN_FILE).stat().st_mtime, folder.name))
