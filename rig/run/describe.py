"""What `run.json` says: everything a reader needs to judge or repeat the run, known before its first record."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

import rig
from rig.clock import RunClock
from rig.injection.schedule import expected_count
from rig.journal.run import PlannedFault, RunInfo
from rig.run.settings import SoakSettings
from rig.run.stand import Stand

_LIBRARIES: Final = ("asyncssh", "httpx", "msgspec", "pandas", "psutil", "pydantic", "rich", "uvloop")
_SPARE_FAULTS: Final = 20  # beyond the expected ones: a quick target is struck more often


def describe(settings: SoakSettings, stand: Stand, clock: RunClock) -> RunInfo:
    """What `run.json` says about a soak."""
    plan, pace = settings.plan, settings.pace.factor
    expected = expected_count(settings.schedule(), plan, duration_s=settings.length_s, pace=pace)
    info = describe_run(settings.folder.name, stand, clock)
    return replace(
        info,
        seed=settings.seed,
        duration_s=settings.length_s,
        workload=settings.workload.model_dump(mode="json"),
        plan=plan.model_dump(mode="json"),
        schedule=[
            PlannedFault(
                fault=planned.index, kind=planned.kind.name, aim=planned.aim, hold_s=planned.hold_s, gap_s=planned.gap_s
            )
            for planned in islice(settings.schedule(), expected + _SPARE_FAULTS)
        ],
        expected_faults=expected,
    )


def describe_run(name: str, stand: Stand, clock: RunClock) -> RunInfo:
    """The part that all runs have in common: where the run takes place, and with which software."""
    emulated, versions = stand.inventory.emulated, software()
    return RunInfo(
        run=name,
        wall_start=clock.wall_start,
        wall_start_iso=datetime.fromtimestamp(clock.wall_start, UTC).isoformat(timespec="seconds"),
        rig_version=rig.__version__,
        rig_revision=own_revision(),
        python=versions["python"],
        seed=0,
        duration_s=0.0,
        pace=stand.pace.factor,
        embedded=emulated is not None,
        behaviour=None if emulated is None else emulated.behaviour,
        inventory=stand.inventory.model_dump(mode="json"),
        workload={},
        plan={},
        schedule=[],
        expected_faults=0,
        target_revisions=dict.fromkeys(stand.inventory.nodes),
        pids_allowed=stand.pids,
        versions=versions,
    )


def own_revision() -> str | None:
    """The commit this runs from, with `+` when files differ from it; None for an installed wheel."""
    folder = Path(rig.__file__).parent.parent
    if not (folder / ".git").exists():
        return None
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None


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
