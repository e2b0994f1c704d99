"""`rig history`: the runs of a folder, and how they went night after night."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.text import Text

from rig.compare.history import read_history
from rig.compare.trend import as_json as history_json
from rig.compare.trend import table, trends
from rig.compare.trend_html import history_html
from rig.errors import EXIT_PASS, UsageError
from rig.report.console import print_table
from rig.report.plain import console_on
from rig.report.write import write_whole

HTML_FILE = "history.html"


def history(*, results: Path, last: int | None = None, as_json: bool = False, html: bool = False) -> int:
    """List them and plot the trend; with `html` write `history.html` beside the runs.

    Raises UsageError, JournalError.
    """
    if last is not None and last < 1:
        raise UsageError(f"--last must be at least 1, not {last}")
    if not results.is_dir():
        raise UsageError(f"{results} is not a folder of runs", remedy="rig soak --minutes 4")
    nights = read_history(results, last)
    if html:
        path = results / HTML_FILE
        write_whole(path, history_html(nights, str(results)).encode())
        print(path, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        sys.stdout.write(json.dumps(history_json(nights), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    elif not html:
        console = console_on()
        print_table(table(nights), console)
        for line in trends(nights):
            console.print(Text(line), soft_wrap=True)
    return EXIT_PASS
