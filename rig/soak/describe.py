"""What `run.json` says: everything a reader needs to judge or repeat the run, known before its first record."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Final

import rig
from rig.clock import RunClock
from rig.injection.schedule import Planned, draw, expected_count
from rig.journal.run import PlannedFault, RunInfo
from rig.soak.settings import SoakSettings

_LIBRARIES: Final = ("asyncssh", "httpx", "msgspec", "pandas", "psutil", "pydantic", "rich", "uvloop")
_SPARE_FAULTS: Final = 20  # beyond the expected ones: a quick target is struck more often


def describe(settings: SoakSettings, clock: RunClock, revisions: dict[str, str | None]) -> RunInfo:
    """`revisions` are the target's, per node; None where it could not be found out."""
    plan, pace = settings.plan, settings.pace.factor

    def sequence() -> Iterator[Planned]:
        return draw(plan, settings.inventory, settings.models, settings.seed)

    expected = expected_count(sequence(), plan, duration_s=settings.length_s, pace=pace)
    return RunInfo(
        run=settings.folder.name,
        wall_start=clock.wall_start,
        wall_start_iso=datetime.fromtimestamp(clock.wall_start, UTC).isoformat(timespec="seconds"),
        rig_version=rig.__version__,
        rig_revision=own_revision(),
        python=platform.python_version(),
        seed=settings.seed,
        duration_s=settings.length_s,
        pace=pace,
        embedded=settings.inventory.emulated is not None,
        behaviour=settings.behaviour,
        inventory=settings.described(settings.inventory),
        workload=settings.described(settings.workload),
        plan=settings.described(plan),
        schedule=[
            PlannedFault(
                fault=planned.index, kind=planned.kind.name, aim=planned.aim, hold_s=planned.hold_s, gap_s=planned.gap_s
            )
            for planned in islice(sequence(), expected + _SPARE_FAULTS)
        ],
        expected_faults=expected,
        target_revisions=revisions,
        pids_allowed=settings.pids_allowed,
        versions=software(),
    )


def own_revision() -> str | None:
    """The commit this runs from, with `+` when files differ from it; None for an installed wheel."""
    folder = Path(rig.__file__).parent.parent
    if not (folder / ".git").exists():
        return None
    try:
        told = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None


def software() -> dict[str, str]:
    """Versions of what the rig stands on, and of the system."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return _versions() | {"system": system, "python": platform.python_version()}


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
