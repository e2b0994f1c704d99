"""exo's instances and runners as its facets have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict, cast

from rig.targets.views import Instance

SERVING_STATUSES: Final = frozenset({"RunnerReady", "RunnerRunning"})  # a runner changes between them at each request


class InstanceView(TypedDict):
    """`runners` maps node id to runner id; `port` is the ring's, by which a runner is found."""

    model: str | None
    runners: dict[str, str]
    port: int | None


InstanceViews = dict[str, InstanceView]


def listed(facets: Mapping[str, Any]) -> dict[str, Instance]:
    """The instances in the facets of one node's view."""
    views = cast("InstanceViews", facets.get("instances") or {})
    statuses = cast("dict[str, str]", facets.get("runners") or {})
    return {
        name: Instance(
            id=name,
            model=view["model"],
            workers=view["runners"],
            port=view["port"],
            ready=all(statuses.get(runner) in SERVING_STATUSES for runner in view["runners"].values()),
        )
        for name, view in views.items()
    }


def doing(facets: Mapping[str, Any]) -> dict[str, str]:
    """What each runner does: its status, and how far it has loaded; every runner of an instance is told of."""
    statuses = cast("dict[str, str]", facets.get("runners") or {})
    loading = cast("dict[str, str]", facets.get("loading") or {})
    runners = {runner for instance in listed(facets).values() for runner in instance.workers.values()}
    return {
        runner: f"{statuses.get(runner, 'no runner yet')}{f' {loading[runner]}' if runner in loading else ''}"
        for runner in runners
    }
