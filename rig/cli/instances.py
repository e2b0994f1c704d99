"""The target's instances and deployments, for commands that have no observer running."""

from __future__ import annotations

import asyncio

from rig.errors import TargetError
from rig.nodes.doctor import Finding
from rig.nodes.judging import judge_instances
from rig.nodes.node import Nodes
from rig.targets.target import Target

ALL = "all"  # in place of a node's name


async def deployed_now(target: Target, nodes: Nodes) -> frozenset[str]:
    """The models that some node lists a deployment of; empty when no node tells."""
    if target.deploys is None:
        return frozenset()
    asked = (target.deploys.deployments(conn.node.api) for conn in nodes.values())
    told = await asyncio.gather(*asked, return_exceptions=True)
    views = [view for view in told if not isinstance(view, BaseException)]
    return frozenset(one["model"] or "?" for view in views for one in view.values())


def judge_deployments(before: frozenset[str], after: frozenset[str]) -> list[Finding]:
    """What a rehearsal of restarts cost. Pure."""
    if not before:
        return []
    if lost := sorted(before - after):
        text = f"the rehearsed restarts lost what was deployed: {', '.join(lost)}"
        return [Finding(ALL, "deployments", "warn", text, "deploy it again; rig soak deploys what its workload names")]
    return [Finding(ALL, "deployments", "ok", f"{len(before)}, as before the restarts")]


async def examine_instances(target: Target, nodes: Nodes) -> list[Finding]:
    """Whether the cluster holds instances that no deployment asks for; empty when the target does not tell."""
    lists, deploys = target.instances, target.deploys
    if lists is None or deploys is None:
        return []
    for name, conn in nodes.items():
        try:
            found = await lists.instances(conn.node.api)
            deployed = {view["model"] or "?" for view in (await deploys.deployments(conn.node.api)).values()}
        except TargetError:
            continue
        return judge_instances(name, {key: instance.model or "?" for key, instance in found.items()}, deployed)
    return []
