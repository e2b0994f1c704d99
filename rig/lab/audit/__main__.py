"""`python -m rig.lab.audit`: soak the embedded cluster, both behaviours and with every kind of fault, and compare what
the rig tells with what was.

`python -m rig.lab.audit compare RUN_FOLDER…` compares runs that were kept (`rig soak --keep-cluster`). Exit status 0
only when nothing differs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from rig.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, RigError
from rig.lab.audit.compare import compare_run
from rig.lab.audit.show import show
from rig.lab.audit.soak import soak

SOAKS: Final = (("embedded", "keeper"), ("embedded-exo-0.3.70", "keeper"), ("embedded", "all"))
"""Inventory and plan."""
WIDTH: Final = 160


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=True, width=None if terminal else WIDTH)
    try:
        if options.command == "compare":
            return _compare([Path(run) for run in options.runs], console)
        return _audit(options.minutes, keep=options.keep, console=console)
    except (RigError, OSError, ValueError, RuntimeError) as error:
        console.print(f"cannot be audited: {error}", markup=False)
        return EXIT_UNKNOWN


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rig.lab.audit", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="length of each soak (default 2)")
    parser.add_argument("--keep", action="store_true", help="keep the runs' folders")
    commands = parser.add_subparsers(dest="command")
    compare = commands.add_parser("compare", help="compare runs that were kept")
    compare.add_argument("runs", nargs="+", metavar="RUN_FOLDER")
    return parser.parse_args(arguments)


def _audit(minutes: float, *, keep: bool, console: Console) -> int:
    out = Path(tempfile.mkdtemp(prefix="rig-audit-"))
    try:
        runs: list[Path] = []
        for inventory, plan in SOAKS:
            console.print(f"soaking {inventory} with plan {plan} for {minutes:g} minutes")
            runs.append(soak(inventory, minutes, out, plan=plan))
        status = _compare(runs, console)
    finally:
        if keep:
            console.print(f"kept in {out}")
        else:
            shutil.rmtree(out, ignore_errors=True)
    return status


def _compare(runs: list[Path], console: Console) -> int:
    differ = 0
    for run in runs:
        findings = compare_run(run)
        show(run.name, findings, console)
        differ += len(findings.differences)
    return EXIT_PASS if differ == 0 else EXIT_FAIL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
