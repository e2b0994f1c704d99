"""A history in words: a table, and for each figure a line of bars as high as it was, night after night."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rig.compare.history import Night
from rig.report.table import Table, plain
from rig.written import NOTHING, duration

BARS: Final = "▁▂▃▄▅▆▇█"
MAX_BARS: Final = 100


@dataclass(frozen=True)
class Shown:
    """A figure of a night whose trend is shown."""

    name: str
    of: Callable[[Night], float | None]
    write: Callable[[float | None], str] = lambda value: f"{value or 0:.0f}"


FIGURES: Final = (
    Shown("errors", lambda night: night.errors),
    Shown("lost", lambda night: night.lost),
    Shown("not recovered", lambda night: night.not_recovered),
    Shown("time to serve, median", lambda night: night.serve_median_s, duration),
    Shown("time to serve, worst", lambda night: night.serve_worst_s, duration),
    Shown("TTFT p50", lambda night: night.ttft_p50_s, duration),
)


def table(nights: Sequence[Night]) -> Table:
    columns = plain(
        "run", "verdict", "started", "duration", "requests", "faults", "exposed", "errors", "lost", "not recovered",
        "time to serve: median", "worst", "TTFT p50",
    )  # fmt: skip
    return Table("Runs, oldest first", columns, tuple(_row(night) for night in nights))


def _row(night: Night) -> tuple[str, ...]:
    name = f"{night.run} (embedded)" if night.embedded else night.run
    if night.problem is not None:
        return (name, f"unreadable: {night.problem}", night.started, *([NOTHING] * 10))
    above = "> " if night.serve_above else ""
    counts = (night.requests, night.faults, night.exposed, night.errors, night.lost, night.not_recovered)
    return (
        name,
        night.verdict if night.finished else f"{night.verdict}, did not finish",
        night.started,
        duration(night.duration_s),
        *map(str, counts),
        f"{above}{duration(night.serve_median_s)}",
        duration(night.serve_worst_s),
        duration(night.ttft_p50_s),
    )


def by_series(nights: Sequence[Night]) -> dict[str, list[Night]]:
    """Only runs of one kind make a trend."""
    found: dict[str, list[Night]] = {}
    for night in nights:
        if night.problem is None:
            found.setdefault(night.series, []).append(night)
    return found


def trends(nights: Sequence[Night]) -> list[str]:
    """Lines for a terminal: for each kind of run, each figure as bars from nothing to its highest."""
    lines: list[str] = []
    for series, some in by_series(nights).items():
        shown = some[-MAX_BARS:]
        lines.append(
            f"{series}: {len(some)} run{'s' if len(some) > 1 else ''}"
            + (f", the last {len(shown)}" if len(shown) < len(some) else "")
        )
        lines.append(f"  {'verdict':<24}{''.join(_verdict_mark(night) for night in shown)}")
        for figure in FIGURES:
            values = [figure.of(night) for night in shown]
            known = [value for value in values if value is not None]
            if known:
                low, high, last = map(figure.write, (min(known), max(known), values[-1]))
                lines.append(f"  {figure.name:<24}{bars(values)}  {low} … {high}, last {last}")
        lines.append(f"  {'':<24}{shown[0].started[:10]} … {shown[-1].started[:10]}")
    return lines


def bars(values: Sequence[float | None]) -> str:
    """One character a value, from nothing to the highest; a space where it is not known."""
    highest = max((value for value in values if value is not None), default=0.0)
    return "".join(_bar(value, highest) for value in values)


def _bar(value: float | None, highest: float) -> str:
    if value is None:
        return " "
    share = value / highest if highest > 0 else 0.0
    return BARS[min(round(share * (len(BARS) - 1)), len(BARS) - 1)]


def _verdict_mark(night: Night) -> str:
    return {"pass": "✓", "fail": "✗"}.get(night.verdict, "?")


def as_json(nights: Sequence[Night]) -> dict[str, Any]:
    return {"schema": 1, "runs": [msgspec.to_builtins(night) for night in nights]}
