"""How durations, moments, shares and sizes are written, wherever a person reads them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

NOTHING: Final = "–"  # noqa: RUF001 (an en dash stands for no value)


def duration(value_s: float | None) -> str:
    """`24 ms`, `3.1 s`, `48 s`, `4 min 10 s`, `3 h 0 min`; `∞` for what never ended, a dash for what is not known."""
    if value_s is None or math.isnan(value_s):
        return NOTHING
    if math.isinf(value_s):
        return "∞"
    size_s = abs(value_s)
    if size_s < 0.9995:
        return f"{value_s * 1000:.{1 if 0 < size_s < 0.00995 else 0}f} ms" if size_s else "0 s"
    if size_s < 119.5:
        return f"{value_s:.{1 if size_s < 99.95 else 0}f} s"
    sign, whole = "-" if value_s < 0 else "", round(size_s)
    if whole < 3600:
        return f"{sign}{whole // 60} min {whole % 60} s"
    minutes = round(size_s / 60)
    return f"{sign}{minutes // 60} h {minutes % 60} min"


def moment(at_t: float | None) -> str:
    """Seconds since the start of the run, as the journal has them: `283.3 s`."""
    return NOTHING if at_t is None or not math.isfinite(at_t) else f"{at_t:.1f} s"


def percent(share: float | None) -> str:
    if share is None or not math.isfinite(share):
        return NOTHING
    return f"{100 * share:.1f} %" if share else "0 %"


def size(value_bytes: float | None) -> str:
    """Of memory: `1.5 GiB`, `212 MiB`."""
    if value_bytes is None:
        return NOTHING
    gib = value_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{value_bytes / 2**20:.0f} MiB"


def clock(start_iso: str, at_t: float) -> str:
    """The wall clock at a moment of a run that started then, in the zone of its start: `14:35:10`."""
    return (datetime.fromisoformat(start_iso) + timedelta(seconds=at_t)).strftime("%H:%M:%S")
