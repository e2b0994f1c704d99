"""A report that can be pasted into a pull request."""

from __future__ import annotations

import re
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report import tables
from rig.report.tables import Table
from rig.report.words import pace_line, stamp, unfinished_line
from rig.visible import visible


def markdown(analysis: Analysis, verdict: Verdict) -> str:
    info = analysis.info
    parts = [f"## {escape(info.run)}: {verdict.word}"]
    parts += [f"> **{line}**" for line in (stamp(analysis), unfinished_line(analysis)) if line]
    parts += [f"> {line}" for line in (pace_line(analysis),) if line]
    parts.append(f"Seed {info.seed}, rig {info.rig_version}{_revision(info.rig_revision)}, {info.wall_start_iso}.")
    parts += [table_markdown(table) for table in tables.all_tables(analysis, verdict)]
    evidence, findings = tables.evidence(verdict), tables.findings(analysis)
    if evidence:
        parts.append("### Evidence\n" + "\n".join(f"- {escape(line)}" for line in evidence))
    if findings:
        parts.append("### Findings\n" + "\n".join(f"- {escape(line)}" for line in findings))
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    lines = [
        f"### {table.title}",
        "",
        f"| {' | '.join(map(escape, table.columns))} |",
        f"|{'---|' * len(table.columns)}",
        *(f"| {' | '.join(map(escape, row))} |" for row in table.rows),
    ]
    if table.note:
        lines += ["", escape(table.note)]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Text of others must not break a table, become markup, call people or link anywhere."""
    flat = _MARKS.sub(r"\\\g<0>", visible(" ".join(text.split())))
    return _LIVELY.sub("\\g<0>\u2060", flat)


_MARKS: Final = re.compile(r"[\\|`*_<>\[\]~&#]|^(?:[-+=]|\d+(?=[.)] ))(?=\D)")
_LIVELY: Final = re.compile(r"(?<!\w)@(?=\w)|(?<=\\#)(?=\d)|:(?=//)|\bwww(?=\.)")
"""What GitHub makes a mention, a reference or a link of, and no backslash keeps it from: a word joiner does."""


def _revision(revision: str | None) -> str:
    return f" ({revision[:12]})" if revision else ""
