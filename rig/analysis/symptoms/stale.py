"""A restarted node that answers with an old state: how long that takes, and whether it takes ever longer."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from rig.analysis.recovery.faults import Window
from rig.written import duration

LONGEST_S: Final = 60.0
"""At pace 1: from a restart to having caught up."""
LEAST_S: Final = 6.0
"""At any pace: a process has to start."""
GROWN: Final = 2.0


def too_long(rejoins: Mapping[str, Sequence[Window]], pace: float, end_t: float) -> list[str]:
    """Rejoins that took longer than they may. One that met the settle time is as long as that at least."""
    most_s = max(LONGEST_S / pace, LEAST_S)
    return [
        f"{node} restarted at {window.from_t:.1f} s had caught up after {duration(took_s)}"
        for node, windows in rejoins.items()
        for window in windows
        if (took_s := min(window.to_t, end_t) - window.from_t) > most_s
    ]


def growing(rejoins: Mapping[str, Sequence[Window]], pace: float, end_t: float) -> str | None:
    """The later half of all rejoins takes twice as long as the earlier, and noticeably so."""
    ended = sorted((w.from_t, w.to_t - w.from_t) for ws in rejoins.values() for w in ws if w.to_t <= end_t)
    if len(ended) < 6:
        return None
    half = len(ended) // 2
    early = statistics.median(took for _, took in ended[:half])
    late = statistics.median(took for _, took in ended[-half:])
    if late > GROWN * early and late - early > max(5.0 / pace, 1.0):
        halves = f"{duration(early)} in the first half of the run, {duration(late)} in the second"
        return f"catching up after a restart took {halves}"
    return None
