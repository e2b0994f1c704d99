"""How figures are written, and the lines that every report carries at its top."""

from __future__ import annotations

import math
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.recovery.figures import Distribution, Figure
from rig.journal.run import RunInfo

NOTHING: Final = "–"  # noqa: RUF001 (an en dash stands for no value)


def seconds(value_s: float | None) -> str:
    """Three digits that mean something: `0.24 s`, `3.1 s`, `48 s`; `∞` for what never ended."""
    if value_s is None:
        return NOTHING
    if math.isinf(value_s):
        return "∞"
    digits = 2 if abs(value_s) < 1 else 1 if abs(value_s) < 100 else 0
    return f"{value_s:.{digits}f} s"


def milliseconds(value_s: float | None) -> str:
    if value_s is None or math.isinf(value_s):
        return seconds(value_s)
    return f"{value_s * 1000:.0f} ms" if value_s < 10 else seconds(value_s)


def figure(value: Figure | None) -> str:
    if value is None:
        return NOTHING
    return f"> {seconds(value.value_s)}" if value.above else seconds(value.value_s)


def spread(values: Distribution) -> str:
    """`median / p90 / worst`."""
    if not values.count:
        return NOTHING
    return " / ".join(figure(value) for value in (values.median, values.p90, values.worst))


def length(total_s: float) -> str:
    """`3 h 0 min`, `4 min 10 s`, `12 s`."""
    whole = round(total_s)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0 %"


def stamp(analysis: Analysis) -> str | None:
    return stamp_of(analysis.info)


def stamp_of(info: RunInfo) -> str | None:
    """What stands over every report of a run that was not on the real target."""
    if not info.embedded:
        return None
    return f"EMBEDDED CLUSTER ({info.behaviour or 'unknown'}, pace {info.pace:g}): not a measurement of exo"


def pace_line(analysis: Analysis) -> str | None:
    pace = analysis.info.pace
    if pace <= 1:
        return None
    return f"Durations are as measured at pace {pace:g}: 1 s here stands for {pace:g} s at pace 1."


def unfinished_line(analysis: Analysis) -> str | None:
    """Said at the top of every report of a run that did not come to its own end."""
    ended = analysis.ended
    if ended is None:
        return (
            f"THIS RUN DID NOT FINISH: its journal stops after {length(analysis.end_t)}. What follows is what is there."
        )
    if ended.reason == "finished":
        return None
    detail = f" ({ended.detail})" if ended.detail else ""
    how = "it failed" if ended.reason == "failed" else f"it was {ended.reason}"
    return f"THIS RUN DID NOT FINISH: {how} after {length(ended.t)}{detail}."
