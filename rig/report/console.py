"""A report for a terminal, or for a pipe: colours and box lines only where they can be shown."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report import tables
from rig.report.plain import console_on
from rig.report.tables import Table
from rig.report.words import NOTHING, pace_line, stamp, unfinished_line
from rig.visible import one_line

_STYLES: Final = {"pass": "green", "fail": "bold red", "unknown": "yellow", "not-exercised": "dim"}
MAX_LINES: Final = 20
MAX_TURNED: Final = 6


def print_report(analysis: Analysis, verdict: Verdict, console: Console | None = None) -> None:
    """Print all tables, then evidence, findings and the verdict. Without a console: to stdout."""
    out = console_on() if console is None else console
    for line, style in ((stamp(analysis), "bold magenta"), (unfinished_line(analysis), "bold red")):
        if line:
            out.print(Text(line, style=style))
    pace = pace_line(analysis)
    if pace:
        out.print(Text(pace, style="dim"))
    for table in tables.all_tables(analysis, verdict):
        out.print()
        print_table(table, out)
    for title, lines in (("Evidence", tables.evidence(verdict)), ("Findings", tables.findings(analysis))):
        if lines:
            out.print()
            out.print(Text(title, style="bold"))
            for line in lines[:MAX_LINES]:
                out.print(Text(f"  {one_line(line)}"))
            if len(lines) > MAX_LINES:
                out.print(Text(f"  and {len(lines) - MAX_LINES} more"))
    out.print()
    out.print(Text(f"{analysis.info.run}: {verdict.word} (exit code {verdict.exit_code})", style=_STYLES[verdict.word]))


def print_table(table: Table, out: Console) -> None:
    """As it is; turned on its side where that does not fit and the other does better."""
    upright = _rich_table(table, out)
    fits = Measurement.get(out, out.options.update(max_width=10_000), upright).maximum <= out.width
    out.print(upright if fits or len(table.rows) > MAX_TURNED else _rich_table(_turned(table), out))
    if table.note:
        out.print(Text(table.note, style="dim"))


def _rich_table(table: Table, out: Console) -> RichTable:
    style = box.SIMPLE_HEAD if out.is_terminal and not out.legacy_windows else box.ASCII2
    rich_table = RichTable(title=table.title, title_justify="left", box=style, title_style="bold", pad_edge=False)
    for index, column in enumerate(table.columns):
        number = index > 0 and all(row[index][:1].isdigit() or row[index] == NOTHING for row in table.rows)
        rich_table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        rich_table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return rich_table


def _turned(table: Table) -> Table:
    columns = (table.columns[0], *(row[0] for row in table.rows))
    rows = tuple((name, *(row[index] for row in table.rows)) for index, name in enumerate(table.columns) if index)
    return Table(table.title, columns, rows, table.note)
