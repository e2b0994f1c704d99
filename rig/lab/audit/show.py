"""The comparison as a table: how many of what were compared, matched, explained by what, and every difference."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from rig.lab.audit.findings import Findings

MAX_SHOWN = 50


def show(title: str, findings: Findings, console: Console) -> None:
    console.print(_things(title, findings))
    if findings.spreads:
        console.print(_spreads(findings))
    for difference in findings.differences[:MAX_SHOWN]:
        console.print(f"DIFFERENCE {difference.about}", style="bold red", markup=False)
        console.print(f"  the rig:     {difference.rig}", markup=False)
        console.print(f"  the cluster: {difference.cluster}", markup=False)
    more = len(findings.differences) - MAX_SHOWN
    if more > 0:
        console.print(f"and {more} more")
    found = len(findings.differences)
    verdict = "no difference" if found == 0 else f"{found} difference{'s' if found > 1 else ''}"
    console.print(f"{title}: {verdict}\n", style="bold green" if found == 0 else "bold red", markup=False)


def _things(title: str, findings: Findings) -> Table:
    rows = Table(title=title, title_justify="left")
    rows.add_column("what")
    for name in ("compared", "matched", "explained", "differ"):
        rows.add_column(name, justify="right")
    rows.add_column("explained by")
    for row in sorted(findings.rows, key=lambda row: row.title.partition(":")[0]):
        explained, differing = row.explained.total(), row.differing
        words = ", ".join(f"{count} {evidence}" for evidence, count in row.explained.most_common())
        rows.add_row(
            row.title,
            str(row.compared),
            str(row.compared - explained - differing),
            str(explained),
            str(differing),
            words,
            style="red" if differing else None,
        )
    return rows


def _spreads(findings: Findings) -> Table:
    table = Table(title="|journal - cluster|, milliseconds", title_justify="left")
    table.add_column("what")
    for name in ("count", "p50", "p99", "max"):
        table.add_column(name, justify="right")
    for spread in sorted(findings.spreads.values(), key=lambda spread: spread.title):
        numbers = (f"{1000 * spread.quantile(share):.1f}" for share in (0.5, 0.99, 1.0))
        table.add_row(spread.title, str(len(spread.values)), *numbers)
    return table
