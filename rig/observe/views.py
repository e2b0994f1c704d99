"""Canonical facets of one node's view, and the detection of changes. Pure.

A target's answers are brought into these shapes behind its seam (`rig.targets.exo.shapes` for exo); everything above
knows these alone. All ids are the target's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypedDict

from rig.journal.records import Facet

SERVING_STATUSES: Final = frozenset({"RunnerReady", "RunnerRunning"})  # a runner changes between them at each request
MEMORY_STEPS: Final = 100  # memory is told to 1 % of what the node has


class InstanceView(TypedDict):
    """An instance of a model. `runners` maps node id to runner id; `port` is the ring's, by which a runner is found."""

    model: str | None
    runners: dict[str, str]
    port: int | None


class DeploymentView(TypedDict):
    """`status`: serving | starting | placing | cant_place, `None` where only the state and no status is told."""

    model: str | None
    status: str | None
    instance: str | None
    error: str | None
    min_nodes: int | None


Instances = dict[str, InstanceView]
Deployments = dict[str, DeploymentView]


@dataclass(frozen=True)
class Change:
    facet: Facet
    since_t: float | None
    value: Any


class FacetTracker:
    """The last value of each facet of one node, and when the poll that last showed it was sent."""

    def __init__(self) -> None:
        self._seen: dict[Facet, tuple[float, Any]] = {}

    def take(self, facet: Facet, value: Any, asked_t: float) -> Change | None:
        """What an answered poll, sent at `asked_t`, showed: a change, or `None` when it showed the same as before.

        An answer tells of some moment after it was asked for: the change lies after the *asking* of the previous one.
        """
        previous = self._seen.get(facet)
        self._seen[facet] = (asked_t, value)
        if previous is None:
            return Change(facet, None, value)
        since_t, old = previous
        return None if old == value else Change(facet, since_t, value)

    def value(self, facet: Facet) -> Any:
        """The last value, `None` when there was none yet."""
        seen = self._seen.get(facet)
        return None if seen is None else seen[1]


def rounded_memory(available_bytes: int, total_bytes: int | None) -> int:
    """Rounded to 1 % of the node's memory, so that jitter is no change; to two digits where the total is not told."""
    if total_bytes is not None and total_bytes > 0:
        step = max(1, total_bytes // MEMORY_STEPS)
    else:
        step = 10 ** max(0, len(str(abs(available_bytes))) - 2)
    return round(available_bytes / step) * step
