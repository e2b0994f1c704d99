"""A history as one HTML page that opens offline: bars for each figure, run by run, and the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from rig.compare.history import Night
from rig.compare.trend import FIGURES, by_series, table
from rig.report.html import markup
from rig.report.html.markup import escape
from rig.report.html.page import whole_page

HEIGHT: Final = 90
MAX_BARS: Final = 400


def history_html(nights: Sequence[Night], where: str) -> str:
    """`where` is the folder, as the user called it."""
    charts = "".join(
        f"<section><h2>{escape(series)}</h2>{''.join(_figure(some, *figure) for figure in FIGURES)}</section>"
        for series, some in by_series(nights).items()
    )
    body = (
        f"<header><h1>Runs in {escape(where)}</h1>"
        '<p class="note">A bar a run, oldest first; green passed, red failed, amber unknown. Point at one for its '
        "figures.</p></header>"
        f"<main>{charts}{markup.table(table(nights))}</main>"
    )
    return whole_page(f"Runs in {where}", body, {}, ())


def _figure(
    nights: Sequence[Night],
    name: str,
    of: Callable[[Night], float | None],
    write: Callable[[float | None], str],
) -> str:
    shown = nights[-MAX_BARS:]
    known = [value for night in shown if (value := of(night)) is not None]
    if not known:
        return ""
    highest = max(known) or 1.0
    wide = max(4, min(28, math.floor(1100 / len(shown))))
    marks = "".join(_mark(night, of(night), write, index, wide, highest) for index, night in enumerate(shown))
    said = f"{name} of {len(shown)} runs: {write(min(known))} to {write(max(known))}"
    return (
        f"<h3>{escape(name)} <small>up to {escape(write(max(known)))}</small></h3>"
        f'<div class="wide"><svg role="img" aria-label="{escape(said)}" width="{wide * len(shown)}" '
        f'height="{HEIGHT + 2}">{marks}</svg></div>'
    )


def _mark(
    night: Night,
    value: float | None,
    write: Callable[[float | None], str],
    index: int,
    wide: int,
    highest: float,
) -> str:
    if value is None:
        return ""
    tall = max(HEIGHT * value / highest, 1.5)
    colour = {"pass": "good", "fail": "bad"}.get(night.verdict, "slow")
    title = f"{night.run}, {night.started}: {write(value)}, {night.verdict}"
    return (
        f'<rect x="{index * wide}" y="{HEIGHT - tall + 1:.1f}" width="{wide - 2}" height="{tall:.1f}" '
        f'fill="var(--{colour})"><title>{escape(title)}</title></rect>'
    )
