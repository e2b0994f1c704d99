"""`rig compare`: runs beside a base. Exit code 0, or 1 with `--fail-on-regression` when something got worse."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.text import Text

from rig.compare.compare import compare_folders
from rig.compare.words import as_json as comparison_json
from rig.compare.words import conclusions, tables
from rig.errors import EXIT_FAIL, EXIT_PASS
from rig.report.console import print_table
from rig.report.find import find_run
from rig.report.markdown import escape, table_markdown
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
        listed = "\n".join(f"- {escape(line)}" for line in conclusions(found))
        parts = [f"## {escape(found.base.name)} and what came after", listed, *map(table_markdown, tables(found))]
        sys.stdout.write("\n\n".join(parts) + "\n")
    else:
        console = console_on()
        for table in tables(found):
            print_table(table, console)
            console.print()
        for line in conclusions(found):
            console.print(Text(line, style="bold red" if ": worse: " in line and found.regressed else ""))
    return EXIT_FAIL if fail_on_regression and found.regressed else EXIT_PASS
