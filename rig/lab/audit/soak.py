"""The runs that are audited: `rig soak` as a user starts it, on the embedded cluster, its folder kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from rig.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN

GRACE_S: Final = 300.0  # to set up, to drain the requests that hang, to report


def soak(inventory: str, minutes: float, out: Path, *more: str, plan: str = "keeper") -> Path:
    """Run to its end and return its folder, whatever the verdict was. Raises RuntimeError when it could not run."""
    name = f"{Path(inventory).stem if inventory.endswith('.yaml') else inventory}-{Path(plan).stem}"
    command = [sys.executable, "-m", "rig", "soak", "--inventory", inventory, "--minutes", f"{minutes:g}"]
    command += ["--faults", plan]
    command += ["--keep-cluster", "--yes", "--json", "--name", name, "--out", str(out), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0 * minutes + GRACE_S, check=False)
    folder = out / name
    if done.returncode not in (EXIT_PASS, EXIT_FAIL, EXIT_UNKNOWN) or not folder.is_dir():
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return folder
