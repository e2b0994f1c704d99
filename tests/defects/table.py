"""The rows as they are printed, and as they go into docs/defects.md. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rig.lab.exo.defects import DEFECTS
from tests.defects.jobs import Row

BEGIN = "<!-- matrix: written by `make defects WRITE=1` -->"
END = "<!-- end of matrix -->"


def line(row: Row) -> str:
    """One row on the terminal, as soon as it is known."""
    mark = "ok    " if row.ok else "MISSED" if row.job.kind == "defect" else "RAISED"
    what = f"{row.job.kind} {row.job.name}, seed {row.job.seed}"
    said = ", ".join(row.found) or ("nothing raised" if row.ok else "")
    size = f"{row.virtual_s:.0f} s in {row.took_s:.0f} s, {row.faults} faults, {row.requests} requests"
    return f"{mark} {what}: {said} [{size}]" + ("" if row.ok or not row.why else f"\n       {row.why[:1500]}")


def matrix(rows: Sequence[Row]) -> list[str]:
    """Markdown: a line for each defect, in the order of the registry."""
    lines = ["| defect | what is wrong | found by | without the event log | also failed |", "|---|---|---|---|---|"]
    by_name = {row.job.name: row for row in rows if row.job.kind == "defect"}
    for name, defect in DEFECTS.items():
        row = by_name.get(name)
        if row is None:
            continue
        found = ", ".join(row.found) or f"**missed**: {row.why}"
        bare = ", ".join(sorted({status for _, status in row.bare})) or "—"
        what = f"{defect.what} ({defect.source})" if defect.source else defect.what
        lines.append(f"| `{name}` | {what} | {found} | {bare} | {', '.join(row.others) or '—'} |")
    return lines


def summary(rows: Sequence[Row]) -> list[str]:
    defects = [row for row in rows if row.job.kind == "defect"]
    lines = [f"{sum(row.ok for row in defects)} of {len(defects)} defects found"] if defects else []
    for kind, what in (
        ("sound", "sound runs"),
        ("flawed", "runs of exo 0.3.70 with a correct keeper"),
        ("upstream", "runs with exo's own keeper"),
    ):
        those = [row for row in rows if row.job.kind == kind]
        if those:
            raised = sum(not row.ok for row in those)
            told = sum(row.requests for row in those), sum(row.faults for row in those)
            lines.append(f"{raised} of {len(those)} {what} raised anything ({told[0]} requests, {told[1]} faults)")
    return lines


def written(document: str, rows: Sequence[Row], seed: int) -> str:
    """The document with its matrix replaced. Raises ValueError when it has no place for it."""
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for the matrix: {BEGIN} … {END}")
    body = [*matrix(rows), "", f"Seed {seed}: {'; '.join(summary(rows))}."]
    return "\n".join([head + begin, "", *body, "", end + tail])
