"""What became of each process of the cluster, from two witnesses: the ledger and the sampler.

All times are on the run's clock, in seconds. The sampler tells of a change at its next look, so a change happened at
some time in (seen - resolution, seen]; the ledger tells of an end when it was waited for, a moment after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from rig.lab.embedded.reap import SAME_START_S

BUSY_S = 0.05  # what a process may take to write down what it has seen
GONE = ("-", "Z")


def moment(t: float | None) -> str:
    return "never" if t is None else f"{t:.3f}"


@dataclass(frozen=True)
class Looks:
    """The sampler's resolution: the longest time between two looks, for each second."""

    beat_ts: list[float]
    gaps_s: list[float]

    def resolution_s(self, t: float) -> float:
        """Around `t`: the worst of its second and of those beside it. Infinite where nobody looked."""
        at = bisect_left(self.beat_ts, t)
        near = self.gaps_s[max(0, at - 1) : at + 2]
        if not near or t > self.beat_ts[-1] + 2.0:
            return float("inf")
        return max(near)


@dataclass
class Life:
    """One process, told from a later one of the same pid by its start. `parent` is the main that made it, 0 if none."""

    node: str
    pid: int
    start: float  # Unix seconds
    role: str = "other"
    parent: int = 0
    detail: str = ""
    born_t: float | None = None  # by the ledger
    ended_t: float | None = None  # by the ledger
    status: int | None = None
    serving_t: float | None = None  # a main's API
    stopping_t: float | None = None
    signals: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])  # of the cluster's own
    seen: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])  # by the sampler: changes

    @property
    def name(self) -> str:
        return f"{self.role} {self.pid} of {self.node}"

    @property
    def gone_seen_t(self) -> float | None:
        return next((t for t, state in self.seen if state in GONE), None)

    def stops(self) -> Iterator[tuple[float, float | None]]:
        """Times in state T by the sampler: (first look at it, first look that showed another, None while it lasts)."""
        since: float | None = None
        for t, state in self.seen:
            if state == "T" and since is None:
                since = t
            elif state != "T" and since is not None:
                yield since, t
                since = None
        if since is not None:
            yield since, None

    def death(self, looks: Looks) -> tuple[float, float] | None:
        """Earliest and latest time of its end; None while it lives (or nobody saw the end)."""
        known = [t for t in (self.ended_t, self.gone_seen_t) if t is not None]
        if not known:
            return None
        latest = min(known)
        seen_t = self.gone_seen_t
        if seen_t is None:
            return latest - BUSY_S, latest
        return min(latest, seen_t - looks.resolution_s(seen_t) - BUSY_S), latest

    def lived_at(self, t: float, looks: Looks) -> bool:
        """Surely alive at `t`, by both witnesses."""
        death = self.death(looks)
        return self.first_t <= t and (death is None or t < death[0])

    @property
    def first_t(self) -> float:
        """When somebody first knew of it."""
        known = [t for t in (self.born_t, self.seen[0][0] if self.seen else None) if t is not None]
        return min(known, default=float("inf"))


@dataclass
class Lives:
    """All processes, by pid."""

    by_pid: dict[int, list[Life]] = field(default_factory=dict[int, list[Life]])

    def meet(self, node: str, pid: int, start: float) -> Life:
        """The life with that pid and start, made if it is new."""
        lives = self.by_pid.setdefault(pid, [])
        for life in lives:
            if abs(life.start - start) < SAME_START_S:
                return life
        lives.append(Life(node=node, pid=pid, start=start))
        return lives[-1]

    def latest(self, pid: int, t: float) -> Life | None:
        """Who had that pid last, at `t`."""
        known = [life for life in self.by_pid.get(pid, []) if life.first_t <= t]
        return max(known, key=lambda life: life.first_t, default=None)

    def all(self) -> Iterator[Life]:
        for lives in self.by_pid.values():
            yield from lives

    def of_node(self, node: str, *roles: str) -> list[Life]:
        """In order of their beginning."""
        found = [life for life in self.all() if life.node == node and (not roles or life.role in roles)]
        return sorted(found, key=lambda life: life.first_t)
