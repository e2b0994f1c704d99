"""A history as one HTML page that opens offline: bars for each figure, run by run, and the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rig.compare.history import Night
from rig.compare.trend import FIGURES, Shown, by_series, table
from rig.report.html import markup
from rig.report.html.markup import escape
from rig.report.html.page import whole_page

HEIGHT: Final = 90
LEFT: Final = 90
BELOW: Final = 20
DATE: Final = 84
"""Width of a date on the axis."""
MAX_BARS: Final = 400


def history_html(nights: Sequence[Night], where: str) -> str:
    """`where` is the folder, as the user called it."""
    charts = "".join(
        f"<section><h2>{escape(series)}</h2>{''.join(_chart(some, figure) for figure in FIGURES)}</section>"
        for series, some in by_series(nights).items()
    )
    body = (
        f"<header><h1>Runs in {escape(where)}</h1>"
        '<p class="note">A bar a run, oldest first; green passed, red failed, amber unknown. Point at one for its '
        "figures.</p></header>"
        f"<main>{charts}{markup.table(table(nights), {})}</main>"
    )
    return whole_page(f"Runs in {where}", body, {}, ())


def _chart(nights: Sequence[Night], figure: Shown) -> str:
    shown = nights[-MAX_BARS:]
    known = [value for night in shown if (value := figure.of(night)) is not None]
    if not known:
        return ""
    highest = max(known) or 1.0
    wide = max(4, min(28, math.floor(1100 / len(shown))))
    marks = "".join(_bar(night, figure, LEFT + index * wide, wide, highest) for index, night in enumerate(shown))
    said = f"{figure.name} of {len(shown)} runs: {figure.write(min(known))} to {figure.write(max(known))}"
    return (
        f"<h3>{escape(figure.name)}</h3>"
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(figure.name)}">'
        f'<svg role="img" aria-label="{escape(said)}" width="{LEFT + max(wide * len(shown), DATE)}" '
        f'height="{HEIGHT + BELOW + 8}">{_value_axis(figure, highest)}{marks}{_dates(shown, wide)}</svg></div>'
    )


def _value_axis(figure: Shown, highest: float) -> str:
    """From nothing to the highest, with the middle between them."""
    return "".join(
        f'<line class="grid" x1="{LEFT - 4}" x2="100%" y1="{_y(share):.1f}" y2="{_y(share):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{_y(share) + 4:.1f}" text-anchor="end">{escape(figure.write(share * highest))}</text>'
        for share in (0.0, 0.5, 1.0)
    )


def _y(share: float) -> float:
    return 6 + HEIGHT * (1 - share)


def _dates(shown: Sequence[Night], wide: int) -> str:
    """The date of a run, wherever there is room for one."""
    every = math.ceil(DATE / wide)
    return "".join(
        f'<text x="{LEFT + index * wide}" y="{HEIGHT + BELOW}">{escape(shown[index].started[:10])}</text>'
        for index in range(0, len(shown), every)
    )


def _bar(night: Night, figure: Shown, left: int, wide: int, highest: float) -> str:
    value = figure.of(night)
    if value is None:
        return ""
    tall = max(HEIGHT * value / highest, 1.5)
    colour = {"pass": "good", "fail": "bad"}.get(night.verdict, "slow")
    title = f"{night.run}, {night.started}: {figure.write(value)}, {night.verdict}"
    return (
        f'<rect x="{left}" y="{_y(0) - tall:.1f}" width="{wide - 2}" height="{tall:.1f}" '
        f'fill="var(--{colour})"><title>{escape(title)}</title></rect>'
    )
