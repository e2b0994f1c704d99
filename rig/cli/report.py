"""`rig report`: the tables of a run. Its exit code is that of the verdict, so that a pipeline can stand on it."""

from __future__ import annotations

import sys

from rig.errors import JournalError
from rig.report.console import print_report
from rig.report.find import find_run
from rig.report.json import report_bytes
from rig.report.markdown import markdown as as_markdown
from rig.report.write import read_report, write_report


def report(*, run: str, as_json: bool = False, markdown: bool = False) -> int:
    """Print one form of the report, and bring the files in the run's folder up to date. Raises RigError.

    A folder that cannot be written to is only remarked upon, on stderr.
    """
    folder = find_run(run)
    found = read_report(folder)
    if as_json:
        sys.stdout.buffer.write(report_bytes(found.analysis, found.verdict))
        sys.stdout.buffer.flush()
    elif markdown:
        sys.stdout.write(as_markdown(found.analysis, found.verdict))
    else:
        print_report(found.analysis, found.verdict)
    try:
        write_report(folder, found)
    except JournalError as error:
        print(f"rig: {error}", file=sys.stderr)
    return found.verdict.exit_code
