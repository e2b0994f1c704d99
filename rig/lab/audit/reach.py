"""Whether a node could take a request at a moment: named evidence from its processes, or none."""

from __future__ import annotations

from rig.lab.audit.cluster import ClusterAccount
from rig.lab.audit.lives import BUSY_S, Life


def not_serving(cluster: ClusterAccount, node: str, from_t: float, to_t: float) -> str | None:
    """Why no main process may have taken a connection at some moment in [from, to]; None: one surely did all along."""
    covered_to = from_t
    before: Life | None = None
    for main in cluster.mains(node):
        if main.serving_t is None:
            continue
        until = serving_until(cluster, main)
        if main.serving_t <= covered_to < until:
            covered_to, before = until, main
    if covered_to > to_t:
        return None
    if before is not None:
        return f"{before.name} ended"
    return "no main process was serving"


def serving_until(cluster: ClusterAccount, main: Life) -> float:
    """Until when it surely served."""
    ends = [main.stopping_t] if main.stopping_t is not None else []
    death = main.death(cluster.looks)
    if death is not None:
        ends.append(death[0])
    return min(ends, default=float("inf"))


def died_within(cluster: ClusterAccount, pid: int, from_t: float, to_t: float) -> Life | None:
    """The main with that pid, if it ended (or began to shut down) in [from, to], as exactly as is known."""
    main = cluster.lives.latest(pid, from_t)
    if main is None or main.role != "main":
        return None
    death = main.death(cluster.looks)
    latest = None if death is None else death[1]
    if latest is None or latest < from_t - BUSY_S or serving_until(cluster, main) > to_t + BUSY_S:
        return None
    return main


def stopped_within(cluster: ClusterAccount, node: str, from_t: float, to_t: float) -> Life | None:
    """A main of the node that the sampler saw in state T at some moment in [from, to], give or take its resolution."""
    for main in cluster.mains(node):
        for since_t, until_t in main.stops():
            slack_s = cluster.resolution_s(since_t) + BUSY_S
            if since_t - slack_s <= to_t and (until_t is None or until_t >= from_t):
                return main
    return None


def never_woke(cluster: ClusterAccount, pid: int, t: float) -> bool:
    """Whether the main with that pid was in state T at `t` and stayed so until it ended."""
    main = cluster.lives.latest(pid, t)
    death = None if main is None else main.death(cluster.looks)
    if main is None or death is None:
        return False
    return any(
        since_t - cluster.resolution_s(since_t) - BUSY_S <= t <= death[1] and (until_t is None or until_t >= death[0])
        for since_t, until_t in main.stops()
    )
