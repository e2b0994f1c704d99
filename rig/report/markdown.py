"""A report that can be pasted into a pull request: the result at a glance, all tables folded below it."""

from __future__ import annotations

import re
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report import tables
from rig.report.table import Table
from rig.report.why import counted, headlines, reasons, summary
from rig.report.words import pace_line, stamp, unfinished_line
from rig.visible import visible


def markdown(analysis: Analysis, verdict: Verdict) -> str:
    """At most 20 lines, and the rest folded. As many checks are named as there is room for."""
    info = analysis.info
    warnings = [f"**{escape(line)}**" for line in (stamp(analysis), unfinished_line(analysis)) if line]
    warnings += [escape(line) for line in (pace_line(analysis),) if line]
    why = [f"- {code(reason.check)}: {escape(reason.found)}" for reason in reasons(analysis, verdict)]
    shown = [
        f"## {escape(info.run)}: {verdict.word}",
        *([f"> {' '.join(warnings)}"] if warnings else []),
        table_markdown(summary(analysis), titled=False),
        "\n".join(f"- {escape(line)}" for line in headlines(analysis)),
    ]
    room = MAX_SHOWN - len("\n\n".join(shown).splitlines()) - 2  # a blank line, and the one that opens the rest
    if why:
        shown[-1] += "\n" + "\n".join(_bounded(why, room))
    rest = [f"Seed {info.seed}, rig {info.rig_version}{_revision(info.rig_revision)}, {info.wall_start_iso}."]
    rest += [table_markdown(table) for table in tables.all_tables(analysis, verdict)]
    if unexercised := tables.checks(verdict, exercised=False):
        rest.append(folded(unexercised.title, table_markdown(unexercised, titled=False)))
    rest += [
        f"### {title}\n" + "\n".join(f"- {escape(line)}" for line in lines)
        for title, lines in (("Evidence", tables.evidence(verdict)), ("Findings", tables.findings(analysis)))
        if lines
    ]
    return "\n\n".join([*shown, folded(counted(verdict), "\n\n".join(rest))]) + "\n"


def _bounded(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"- and {len(lines) - room + 1} more checks"]


def folded(title: str, content: str) -> str:
    """The blank lines let GitHub read the content as Markdown."""
    return f"<details><summary>{escape(title)}</summary>\n\n{content}\n\n</details>"


def table_markdown(table: Table, *, titled: bool = True) -> str:
    lines = [f"### {table.title}", ""] if titled else []
    lines += [
        f"| {' | '.join(escape(column.heading) for column in table.columns)} |",
        f"|{''.join('---:|' if table.numeric(index) else '---|' for index in range(len(table.columns)))}",
        *(f"| {' | '.join(map(escape, row))} |" for row in table.rows),
    ]
    if table.note:
        lines += ["", escape(table.note)]
    return "\n".join(lines)


def code(name: str) -> str:
    """Of the rig's own: the name of a check."""
    return f"`{name}`"


def escape(text: str) -> str:
    """Text of others must not break a table, become markup, call people or link anywhere."""
    flat = _MARKS.sub(r"\\\g<0>", visible(" ".join(text.split())))
    return _LIVELY.sub("\\g<0>\u2060", flat)


MAX_SHOWN: Final = 20
_MARKS: Final = re.compile(r"[\\|`*_<>\[\]~&#]|^(?:[-+=]|\d+(?=[.)] ))(?=\D)")
_LIVELY: Final = re.compile(r"(?<!\w)@(?=\w)|(?<=\\#)(?=\d)|:(?=//)|\bwww(?=\.)")
"""What GitHub makes a mention, a reference or a link of, and no backslash keeps it from: a word joiner does."""


def _revision(revision: str | None) -> str:
    return f" ({revision[:12]})" if revision else ""
