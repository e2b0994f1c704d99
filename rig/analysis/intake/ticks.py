"""Records that are written all the time and rarely matter: the rig's own health, and the length of each node's log.

A run may have hundreds of thousands of both, so they are handled many at a time: as a table, and as plain tuples.
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
"""Node, when its log was last seen to be shorter, when it was seen to be this long, its length."""


class Beside(Protocol):
    """Receives health and indices many at a time, all other records one by one. The order of health among other records
    does not matter."""

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
    """Pass a single record of this sort to what handles many at a time. False if it is another record."""
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
    """None where the view is of another facet, or its value is no number."""
    if record.facet != "event_index" or not isinstance(record.value, int):
        return None
    return record.node, record.since_t, record.t, record.value
