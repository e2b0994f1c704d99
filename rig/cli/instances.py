"""The target's instances and deployments, for commands that have no observer running."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rig.errors import TargetError
from rig.injection.aim import InstanceView
from rig.nodes.doctor import Finding
from rig.nodes.judging import judge_instances
from rig.nodes.node import Nodes
from rig.targets.exo.api import Exo

ALL = "all"  # in place of a node's name


async def instances_now(target: Exo, nodes: Nodes) -> Sequence[InstanceView]:
    """The instances by the first node's view, node ids mapped to the inventory's names by asking each node."""
    urls = {name: conn.node.api for name, conn in nodes.items()}
    ids = await asyncio.gather(*(target.node_id(url) for url in urls.values()), return_exceptions=True)
    names = {found: name for name, found in zip(urls, ids, strict=True) if isinstance(found, str)}
    first = next(iter(names.values()), next(iter(urls)))
    return [
        InstanceView(
            instance_id=identity,
            model=view["model"] or "",
            runners={names[node]: runner for node, runner in view["runners"].items() if node in names},
            port=view["port"],
        )
        for identity, view in (await target.instances(urls[first])).items()
    ]


async def deployed_now(nodes: Nodes) -> frozenset[str]:
    """The models that some node lists a deployment of; empty when no node tells."""
    target = Exo()
    try:
        asked = (target.deployments(conn.node.api) for conn in nodes.values())
        told = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await target.close()
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


async def examine_instances(nodes: Nodes) -> list[Finding]:
    """Whether the cluster holds instances that no deployment asks for; empty when the target does not tell."""
    target = Exo()
    try:
        for name, conn in nodes.items():
            try:
                found = await target.instances(conn.node.api)
                deployed = {view["model"] or "?" for view in (await target.deployments(conn.node.api)).values()}
            except TargetError:
                continue
            return judge_instances(name, {key: view["model"] or "?" for key, view in found.items()}, deployed)
    finally:
        await target.close()
    return []
