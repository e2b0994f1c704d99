"""Tables and lists as HTML. Everything that comes from outside is escaped here, and nowhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rig.report.table import Column, Table
from rig.visible import visible


def escape(text: str) -> str:
    """Text of others: no markup, every character shown."""
    return html.escape(visible(text))


def term(text: str, meaning: str, word: str = "") -> str:
    """A word with its meaning as tooltip, and a link to its entry in the glossary."""
    if not meaning:
        return escape(text)
    return f'<a class="term" href="#{anchor(word or text)}" title="{escape(meaning)}">{escape(text)}</a>'


def anchor(word: str) -> str:
    """The place of a word in the glossary."""
    return "word-" + re.sub(r"[^a-z0-9-]+", "_", word.lower())


def table(content: Table, words: Mapping[str, str], moments: Moments | None = None, *, heading: bool = True) -> str:
    """With its title as heading and its note below; a first column that names its row is a row header.

    `words` are the meanings that the glossary has: cells that are one of them link there. With `moments`, times and
    faults in cells link to the time axis.
    """
    kinds = ["n" if content.numeric(index) else "text" for index in range(len(content.columns))]
    head = "".join(
        f'<th scope="col" class="{kind}">{term(column.heading, column.meaning, column.word)}</th>'
        for column, kind in zip(content.columns, kinds, strict=True)
    )
    rows = "".join(f"<tr>{''.join(_cells(row, content.columns, kinds, words, moments))}</tr>" for row in content.rows)
    title = f"<h3>{escape(content.title)}</h3>" if heading else ""
    note = f'<p class="note">{escape(content.note)}</p>' if content.note else ""
    return (
        f'{title}<div class="wide" tabindex="0" role="region" aria-label="{escape(content.title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _cells(
    row: Sequence[str],
    columns: Sequence[Column],
    kinds: Sequence[str],
    words: Mapping[str, str],
    moments: Moments | None,
) -> Iterator[str]:
    for index, (cell, column, kind) in enumerate(zip(row, columns, kinds, strict=True)):
        written = moments.beside(cell) if moments and column.moment else _cell(cell, words, moments)
        yield f'<th scope="row">{written}</th>' if index == 0 else f'<td class="{kind}">{written}</td>'


_MARKED: Final = ("pass", "fail", "unknown", "not-exercised")


def _cell(cell: str, words: Mapping[str, str], moments: Moments | None) -> str:
    if cell in _MARKED:
        return f'<span class="mark {cell}">{cell}</span>'
    if cell in words:
        return term(cell, words[cell])
    return escape(cell) if moments is None else moments.linked(cell)


def lines(title: str, content: Sequence[str], moments: Moments) -> str:
    """A heading and a list; nothing at all without content."""
    if not content:
        return ""
    items = "".join(f"<li>{moments.linked(line)}</li>" for line in content)
    return f"<h3>{escape(title)}</h3><ul>{items}</ul>"


def folded(title: str, content: str, name: str = "") -> str:
    """Content behind a line that opens it."""
    place = f' id="{name}"' if name else ""
    return f"<details{place}><summary>{escape(title)}</summary>{content}</details>"


def banner(text: str | None, kind: str) -> str:
    return "" if text is None else f'<p class="banner {kind}" role="note">{escape(text)}</p>'


class Moments:
    """Links from text to the time axis: `at 45.1 s` to that time, `fault 3` to the time of that fault."""

    def __init__(self, faults: Mapping[int, tuple[float, float]], clock: Callable[[float], str], end_t: float) -> None:
        """`faults` are strike and heal by number; `clock` is the wall clock of a moment."""
        self._faults, self._clock, self._end_t = faults, clock, end_t

    def linked(self, text: str) -> str:
        return _PLACE.sub(self._link, escape(text))

    def beside(self, text: str) -> str:
        """A moment as `moment` writes it, with the wall clock beside it."""
        if not text[:1].isdigit():
            return escape(text)
        at_t = float(text.split(maxsplit=1)[0])
        return f"{self._to(escape(text), at_t, at_t)} <small>{self._clock(at_t)}</small>"

    def _link(self, found: re.Match[str]) -> str:
        if found["fault"] is not None:
            span = self._faults.get(int(found["fault"]))
            return found[0] if span is None else self._to(found[0], *span)
        at_t = float(found["at"])
        return self._to(found[0], at_t, at_t)

    def _to(self, text: str, from_t: float, to_t: float) -> str:
        low, high = max(from_t - MARGIN_S, 0.0), min(to_t + MARGIN_S, self._end_t + MARGIN_S)
        return f'<a href="#t={low:.1f},{high:.1f}" title="{self._clock(from_t)}">{text}</a>'


MARGIN_S: Final = 20.0
_PLACE: Final = re.compile(r"\bfault (?P<fault>\d+)\b|(?<=\bat )(?P<at>\d+\.\d) s\b")
