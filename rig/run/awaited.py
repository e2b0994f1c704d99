"""What a model that does not serve yet is waiting for, as far as the views tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from rig.observe.cluster_view import ClusterView, InstanceOn


def awaited(view: ClusterView, models: Iterable[str]) -> list[str]:
    """A line for each model: the state of its deployment, and of each runner of its instances."""
    return [f"{model}: {_deployment(view, model)}; {runners_of(view, model) or 'no instance'}" for model in models]


def runners_of(view: ClusterView, model: str) -> str:
    """Of each of its instances where its runners are and what they do; empty without any."""
    return "; ".join(_instance(view, one) for one in view.instances().values() if one.model == model)


def _deployment(view: ClusterView, model: str) -> str:
    if (best := view.best()) is None:
        return "no node's API answers"
    if view.facet(best, "deployments") is None:
        return f"{best} tells of no deployments"
    found = [one for one in view.deployments().values() if one["model"] == model]
    if not found:
        return f"no deployment listed by {best}"
    return ", ".join(
        f"deployment {one['status'] or 'without a status'}{f' ({error})' if (error := one['error']) else ''}"
        for one in found
    )


def _instance(view: ClusterView, instance: InstanceOn) -> str:
    best = view.best() or ""
    statuses = cast("dict[str, str]", view.facet(best, "runners") or {})
    loading = cast("dict[str, str]", view.facet(best, "loading") or {})
    runners = [
        f"{node} {statuses.get(runner, 'no runner yet')}{f' {loading[runner]}' if runner in loading else ''}"
        for node, runner in instance.runners.items()
    ]
    strangers = [f"{node[:8]} (of no known node)" for node in instance.strangers]
    return f"instance {instance.id[:8]} on {', '.join(runners + strangers) or 'nodes that are not told'}"
