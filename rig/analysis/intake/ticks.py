"""What is written all the time and matters only now and then: the rig's own health, and how far each node's log is.

Both come by the hundred thousand, so they are taken in many at a time: as a table, and as plain tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rig.journal.records import AnyRecord, Own, ViewChanged

HEALTH: Final = np.dtype(
    [
        ("t", np.float64),
        ("interval_s", np.float64),
        ("lag_max_s", np.float64),
        ("cpu_percent", np.float64),
        ("rss_bytes", np.int64),
        ("open_files", np.int64),
        ("wall_drift_s", np.float64),
    ]
)
Health: TypeAlias = NDArray[np.void]
HealthRow: TypeAlias = tuple[float, float, float, float, int, int, float]
Index: TypeAlias = tuple[str, float | None, float, int]
"""Node, the time since which its log was not yet so long, the time at which it was, how long."""


class Beside(Protocol):
    """What takes in records one by one, and these many at a time. Of health the order beside other records is no
    matter."""

    def feed(self, record: AnyRecord) -> None: ...

    def health(self, rows: Health) -> None: ...

    def indices(self, run: Sequence[Index]) -> None: ...


def health_row(record: Own) -> HealthRow:
    return (
        record.t,
        record.interval_s,
        record.lag_max_s,
        record.cpu_percent,
        record.rss_bytes,
        record.open_files,
        record.wall_drift_s,
    )


def healths(rows: Iterable[HealthRow]) -> Health:
    return np.array(list(rows), dtype=HEALTH)


def handed_over(
    record: AnyRecord, health: Callable[[Health], None], indices: Callable[[Sequence[Index]], None]
) -> bool:
    """A record that comes alone, to what takes in many at a time; whether it was one of these."""
    match record:
        case Own():
            health(healths([health_row(record)]))
        case ViewChanged(facet="event_index"):
            index = index_of(record)
            indices([] if index is None else [index])
        case _:
            return False
    return True


def index_of(record: ViewChanged) -> Index | None:
    """None where it is a view of something else, or no number."""
    if record.facet != "event_index" or not isinstance(record.value, int):
        return None
    return record.node, record.since_t, record.t, record.value
