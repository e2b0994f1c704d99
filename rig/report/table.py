"""A table as plain text cells, for the console, Markdown and HTML alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rig.report.form import MOMENT, Key

_NUMBER: Final = re.compile(r"(?:[<>×] ?)?-?\d[\d.]*(?:[ %/(].*)?|[∞–].*")  # noqa: RUF001 (signs, not letters)


@dataclass(frozen=True)
class Column:
    """`meaning` is the tooltip of the heading, `word` its entry in the glossary: the heading where there is none.
    `moment`: the cells are times on the run's clock."""

    heading: str
    meaning: str = ""
    word: str = ""
    moment: bool = False


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def numeric(self, index: int) -> bool:
        """Whether the cells of a column are numbers, which stand at the right."""
        cells = [row[index] for row in self.rows]
        return index > 0 and any(cell[:1].isdigit() for cell in cells) and all(map(_NUMBER.fullmatch, cells))


def column(key: Key[Any], heading: str = "") -> Column:
    return Column(heading or key.heading, key.meaning, key.heading, moment=key.form.unit == MOMENT.unit)


def plain(*headings: str) -> tuple[Column, ...]:
    return tuple(map(Column, headings))


def cells(keys: Iterable[Key[Any]], source: object) -> tuple[str, ...]:
    return tuple(key.write(source) for key in keys)


def turned(table: Table) -> Table:
    """Rows for columns; the meanings of the columns are lost."""
    columns = plain(table.columns[0].heading, *(row[0] for row in table.rows))
    rows = tuple(
        (name.heading, *(row[index] for row in table.rows)) for index, name in enumerate(table.columns) if index
    )
    return Table(table.title, columns, rows, table.note)


def first_lines(lines: Sequence[str], limit: int) -> list[str]:
    """At most so many, the last of which says how many more there are."""
    return list(lines) if len(lines) <= limit else [*lines[:limit], f"and {len(lines) - limit} more"]
