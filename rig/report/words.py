"""How the figures of a recovery are written, and the lines at the top of every report."""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.recovery.figures import Distribution, Figure
from rig.journal.run import RunInfo
from rig.written import NOTHING, duration


def figure(value: Figure | None) -> str:
    if value is None:
        return NOTHING
    return f"> {duration(value.value_s)}" if value.above else duration(value.value_s)


def spread(values: Distribution) -> str:
    """`median / p90 / worst`, and one value where they are alike."""
    texts = [figure(value) for value in (values.median, values.p90, values.worst)]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


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
    """Stands at the top of every report of a run that did not come to its planned end."""
    ended = analysis.ended
    if ended is None:
        return f"THIS RUN DID NOT FINISH: its journal stops after {duration(analysis.end_t)}."
    if ended.reason == "finished":
        return None
    detail = f" ({ended.detail})" if ended.detail else ""
    how = "it failed" if ended.reason == "failed" else f"it was {ended.reason}"
    return f"THIS RUN DID NOT FINISH: {how} after {duration(ended.t)}{detail}."
