"""What a model that does not serve yet is waiting for, as far as the views tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rig.observe.cluster_view import ClusterView
from rig.targets.views import Instance


def awaited(view: ClusterView, models: Iterable[str]) -> list[str]:
    """A line for each model: the state of its deployment, and of each worker of its instances."""
    return [f"{model}: {_deployment(view, model)}; {workers_of(view, model) or 'no instance'}" for model in models]


def workers_of(view: ClusterView, model: str) -> str:
    """Of each of its instances where its workers are and what they do; empty without any."""
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


def _instance(view: ClusterView, instance: Instance) -> str:
    best = view.best() or ""
    doing = view.doing(best)
    workers = [f"{node} {doing.get(worker, 'not told')}" for node, worker in instance.workers.items()]
    strangers = [f"{node[:8]} (of no known node)" for node in instance.strangers]
    return f"instance {instance.id[:8]} on {', '.join(workers + strangers) or 'nodes that are not told'}"
