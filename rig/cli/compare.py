"""`rig compare`: runs beside a base. Exit code 0, or 1 with `--fail-on-regression` when something got worse."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.text import Text

from rig.compare.compare import compare_folders
from rig.compare.words import as_json as comparison_json
from rig.compare.words import conclusions, stamps, tables, title
from rig.compare.words import markdown as as_markdown
from rig.errors import EXIT_FAIL, EXIT_PASS
from rig.report.console import print_table
from rig.report.find import find_run
from rig.report.plain import console_on


def compare(
    *,
    runs: Sequence[str],
    fail_on_regression: bool = False,
    force: bool = False,
    as_json: bool = False,
    markdown: bool = False,
) -> int:
    """Print it in one form. Raises UsageError when the runs cannot be compared and that is not forced, JournalError."""
    found = compare_folders([find_run(name) for name in runs], force=force)
    if as_json:
        sys.stdout.write(json.dumps(comparison_json(found), indent=2, allow_nan=False, ensure_ascii=False) + "\n")
    elif markdown:
        sys.stdout.write(as_markdown(found))
    else:
        console = console_on()
        for table in tables(found):
            print_table(table, console)
            console.print()
        for line in [*stamps(found), *conclusions(found), title(found)]:
            console.print(Text(line, style="bold red" if "WORSE" in line else ""))
    return EXIT_FAIL if fail_on_regression and found.regressed else EXIT_PASS
