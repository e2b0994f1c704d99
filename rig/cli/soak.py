"""`rig soak`: the files, the folder, the run, the report, the exit code."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

from rig.cli.plan import too_short
from rig.config.fields import duration_text
from rig.errors import EXIT_UNKNOWN, JournalError, RigError
from rig.faults.plan.read import load_all
from rig.journal.run import RUN_FILE, new_run_folder

EMBEDDED: Final = "embedded"


def soak(
    *,
    length_s: float,
    inventory: str | None,
    workload: str | None,
    faults: str | None,
    seed: int | None,
    out: Path,
    name: str | None,
    yes: bool,
    keep_cluster: bool,
    as_json: bool,
) -> int:
    """Run, report, and return the exit code: the verdict's, or 130 and 143 when interrupted."""
    chosen = inventory or EMBEDDED
    on_nodes, load, plan = load_all(chosen, workload, faults)
    if faults is None and (on_nodes.embedded is not None or on_nodes.emulated is not None):
        on_nodes, load, plan = load_all(chosen, workload, "quick")
    folder = new_run_folder(out, name)
    from rig.cli.conduct import Wanted, conduct  # only now: what is wrong with the files is said at once

    wanted = Wanted(length_s=length_s, inventory=chosen, seed=seed, folder=folder, yes=yes, keep_cluster=keep_cluster)
    until = f"{duration_text(length_s)}, then the drain; Ctrl-C heals, reports and ends it"
    print(f"soak with fault plan {plan.name}, results in {folder}: {until}", file=sys.stderr)
    if short := too_short(length_s, on_nodes, load, plan, seed):
        print(f"rig: {short}", file=sys.stderr)
    interrupted, sound = None, True
    try:
        interrupted = conduct(wanted, on_nodes, load, plan)
    except RigError as error:
        if not (folder / RUN_FILE).exists():
            raise
        sound = _complain(error)  # what ran can still be told
    finally:
        if not (folder / RUN_FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)  # made by this command, and nothing ran
    if not folder.exists():
        return interrupted or EXIT_UNKNOWN
    reported = _report(folder, as_json=as_json)
    if interrupted is not None:
        return interrupted
    return reported if sound else reported or EXIT_UNKNOWN


def _report(folder: Path, *, as_json: bool) -> int:
    """Print it, write it, and return the verdict's exit code; unknown instead of a pass that could not be written."""
    from rig.report.console import print_report
    from rig.report.json import report_json
    from rig.report.write import read_report, write_report
    from rig.run.forensics import drop_unneeded, worth_keeping

    report = read_report(folder)
    try:
        write_report(folder, report)
        written = True
    except JournalError as error:
        written = _complain(error)
    drop_unneeded(folder, worth_keeping(report.analysis, report.verdict))
    if as_json:
        print(json.dumps(report_json(report.analysis, report.verdict)))
    else:
        print_report(report.analysis, report.verdict)
        print(f"kept in {folder}: rig report {folder}, rig show {folder} --fault N")
    return report.verdict.exit_code if written else report.verdict.exit_code or EXIT_UNKNOWN


def _complain(error: RigError) -> bool:
    print(f"rig: {error}", file=sys.stderr)
    return False
