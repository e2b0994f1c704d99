"""A history in words: a table, and for each figure a line of bars as high as it was, night after night."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from rig.compare.history import Night
from rig.report.tables import Table
from rig.report.words import NOTHING, length, milliseconds, seconds

BARS: Final = "▁▂▃▄▅▆▇█"
MAX_BARS: Final = 100

FIGURES: Final[tuple[tuple[str, Callable[[Night], float | None], Callable[[float | None], str]], ...]] = (
    ("lost", lambda night: night.lost, lambda value: f"{value or 0:.0f}"),
    ("errors", lambda night: night.errors, lambda value: f"{value or 0:.0f}"),
    ("not recovered", lambda night: night.not_recovered, lambda value: f"{value or 0:.0f}"),
    ("time to serve, median", lambda night: night.serve_median_s, seconds),
    ("time to serve, worst", lambda night: night.serve_worst_s, seconds),
    ("TTFT, median", lambda night: night.ttft_p50_s, milliseconds),
)


def table(nights: Sequence[Night]) -> Table:
    columns = (
        "run", "started", "verdict", "duration", "requests", "faults", "exposed", "errors", "lost", "not recovered",
        "time to serve: median", "worst", "TTFT p50",
    )  # fmt: skip
    return Table("Runs, oldest first", columns, tuple(_row(night) for night in nights))


def _row(night: Night) -> tuple[str, ...]:
    name = f"{night.run} (embedded)" if night.embedded else night.run
    if night.problem is not None:
        return (name, night.started, "unreadable", night.problem, *([NOTHING] * 9))
    above = "> " if night.serve_above else ""
    return (
        name,
        night.started,
        night.verdict if night.finished else f"{night.verdict}, did not finish",
        length(night.duration_s),
        f"{night.requests}",
        f"{night.faults}",
        f"{night.exposed}",
        f"{night.errors}",
        f"{night.lost}",
        f"{night.not_recovered}",
        f"{above}{seconds(night.serve_median_s)}",
        seconds(night.serve_worst_s),
        milliseconds(night.ttft_p50_s),
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
        lines.append(f"{series}: {len(some)} runs" + (f", the last {len(shown)}" if len(shown) < len(some) else ""))
        lines.append(f"  {'verdict':<24}{''.join(_verdict_mark(night) for night in shown)}")
        for name, of, write in FIGURES:
            values = [of(night) for night in shown]
            known = [value for value in values if value is not None]
            if known:
                last = write(values[-1])
                lines.append(f"  {name:<24}{bars(values)}  {write(min(known))} … {write(max(known))}, last {last}")
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
