"""Tables and lists as HTML. Everything that comes from outside is escaped here, and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rig.report.tables import Table
from rig.visible import visible


def escape(text: str) -> str:
    """Text of others: no markup, every character shown."""
    return html.escape(visible(text))


def table(content: Table, *, headings: bool = True) -> str:
    """With its title as heading and its note below; a first column that names its row is a row header."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in content.columns)
    rows = "".join(f"<tr>{_row(row)}</tr>" for row in content.rows)
    title = f"<h3>{escape(content.title)}</h3>" if headings else ""
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    return (
        f'{title}<div class="wide"><table aria-label="{escape(content.title)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _row(cells: Sequence[str]) -> str:
    return "".join(
        f'<th scope="row">{_marked(cell)}</th>' if index == 0 else f"<td>{_marked(cell)}</td>"
        for index, cell in enumerate(cells)
    )


_MARKED = ("pass", "fail", "unknown", "not-exercised")


def _marked(cell: str) -> str:
    return f'<span class="mark {cell}">{cell}</span>' if cell in _MARKED else escape(cell)


def lines(title: str, content: Sequence[str]) -> str:
    """A heading and a list; nothing at all without content."""
    if not content:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in content)
    return f"<h3>{escape(title)}</h3><ul>{items}</ul>"


def banner(text: str | None, kind: str) -> str:
    return "" if text is None else f'<p class="banner {kind}" role="note">{escape(text)}</p>'
