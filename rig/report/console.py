"""A report for a terminal, or for a pipe: colours and box lines only where they can be shown.

Its last lines say why the run ended as it did, since they are what a reader sees first.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from rig.report.table import Table, first_lines, turned
from rig.report.why import counted, headlines, reasons, summary
from rig.report.words import pace_line, stamp, unfinished_line
from rig.visible import one_line

_STYLES: Final = {"pass": "green", "fail": "bold red", "unknown": "yellow", "not-exercised": "dim"}
MAX_LINES: Final = 20
MAX_TURNED: Final = 6


def print_report(analysis: Analysis, verdict: Verdict, console: Console | None = None) -> None:
    """Print all tables, then evidence and findings, then what they come to. Without a console: to stdout."""
    out = console_on() if console is None else console
    for table in tables.all_tables(analysis, verdict):
        print_table(table, out)
        out.print()
    unexercised = [check.name for check in verdict.checks if check.status == "not-exercised"]
    if unexercised:
        out.print(Text(f"Not exercised: {', '.join(unexercised)}", style="dim"))
        out.print()
    for title, lines in (("Evidence", tables.evidence(verdict)), ("Findings", tables.findings(analysis))):
        if lines:
            out.print(Text(title, style="bold"))
            for line in first_lines(lines, MAX_LINES):
                out.print(Text(f"  {one_line(line)}"))
            out.print()
    _conclude(analysis, verdict, out)


def _conclude(analysis: Analysis, verdict: Verdict, out: Console) -> None:
    for line, style in ((stamp(analysis), "bold magenta"), (unfinished_line(analysis), "bold red")):
        if line:
            out.print(Text(line, style=style))
    if pace := pace_line(analysis):
        out.print(Text(pace, style="dim"))
    style = _STYLES[verdict.word]
    out.print(Text(f"{analysis.info.run}: {verdict.word} (exit code {verdict.exit_code})", style=style))
    _one_line_each([str(reason) for reason in reasons(analysis, verdict)], out, style)
    (row,) = summary(analysis).rows
    figures = [f"{name.heading} {value}" for name, value in zip(summary(analysis).columns, row, strict=True)]
    _one_line_each([", ".join(figures[1:]), *headlines(analysis), counted(verdict)], out, "")


def _one_line_each(lines: Sequence[str], out: Console, style: str) -> None:
    for line in lines:
        out.print(Text(f"  {one_line(line)}", style=style), no_wrap=True, overflow="ellipsis")


def print_table(table: Table, out: Console) -> None:
    """As it is; turned on its side where that does not fit and the other does better."""
    upright = _rich_table(table, out)
    fits = Measurement.get(out, out.options.update(max_width=10_000), upright).maximum <= out.width
    out.print(upright if fits or len(table.rows) > MAX_TURNED else _rich_table(turned(table), out))
    if table.note:
        out.print(Text(table.note, style="dim"))


def _rich_table(table: Table, out: Console) -> RichTable:
    style = box.SIMPLE_HEAD if out.is_terminal and not out.legacy_windows else box.ASCII2
    rich_table = RichTable(title=table.title, title_justify="left", box=style, title_style="bold", pad_edge=False)
    for index, column in enumerate(table.columns):
        justify = "right" if table.numeric(index) else "left"
        rich_table.add_column(column.heading, justify=justify, overflow="fold")
    for row in table.rows:
        rich_table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return rich_table
