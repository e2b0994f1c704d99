"""`rig report`: the tables of a run. Its exit code is that of the verdict, so that a pipeline can stand on it."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

from rig.errors import JournalError
from rig.journal.read import read_run
from rig.load.collector import settle_collector
from rig.report.console import print_report
from rig.report.find import find_run
from rig.report.json import report_bytes
from rig.report.markdown import markdown as as_markdown
from rig.report.parquet import write_parquet
from rig.report.write import HTML_FILE, Report, read_report, write_report


def report(
    *,
    run: str,
    as_json: bool = False,
    markdown: bool = False,
    html: bool = False,
    open_it: bool = False,
    parquet: bool = False,
) -> int:
    """Print one form of the report, and bring the files in the run's folder up to date. Raises RigError.

    `html` prints where the page is, `open_it` shows it in a browser, `parquet` writes column files as well. A folder
    that cannot be written to is only remarked upon, on stderr, unless one of these asked for a file.
    """
    folder = find_run(run)
    settle_collector()  # millions of records, and none of them in a cycle
    if parquet:
        for path in write_parquet(read_run(folder)):
            print(path, file=sys.stderr if as_json or markdown else sys.stdout)
    found = read_report(folder)
    if as_json:
        sys.stdout.buffer.write(report_bytes(found.analysis, found.verdict))
        sys.stdout.buffer.flush()
    elif markdown:
        sys.stdout.write(as_markdown(found.analysis, found.verdict))
    elif not (html or open_it or parquet):
        print_report(found.analysis, found.verdict)
    try:
        write_report(folder, found)
    except JournalError as error:
        if html or open_it:
            raise
        print(f"rig: {error}", file=sys.stderr)
    if html or open_it:
        _show_page(folder, found, open_it=open_it)
    return found.verdict.exit_code


def _show_page(folder: Path, found: Report, *, open_it: bool) -> None:
    path = (folder / HTML_FILE).resolve()
    print(f"{path}  ({found.verdict.word})")
    if open_it and not webbrowser.open(path.as_uri()):
        print("rig: no browser could be started; open the file by hand", file=sys.stderr)
