"""Entries of exo's event log (`GET /events`, snake_case) → canonical events. Pure.

Kept: instances, deployments, runner status, nodes and links coming and going. Of tasks only which instance a request
went to; of the nodes' reports, which each node makes once a second, that there was one. Names are exo's; `data` is:

- `InstanceCreated` `{instance, model, runners, port}`, `InstanceDeleted` `{instance}`
- `DeploymentCreated` `{deployment, model, status, instance, error, min_nodes}`; other `Deployment…` `{deployment, …}`
- `RunnerStatusUpdated` `{runner, status}`, `RunnerDeleted` `{runner}`
- `TopologyEdgeCreated`, `TopologyEdgeDeleted` `{source, sink}`
- `StateCarried` `{nodes, instances, deployments, runners}`: what a new master begins with, if with anything
- `NodeReported` `{node}` (made in `rig.observe.events`): the first report of a node, or the first since its time-out
- anything else: its plain fields (texts, numbers) as they are, without `event_id`
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from rig.targets.exo import doubts, shapes
from rig.targets.target import NotUnderstood, Reported, ServedBy, TargetEvent

_KEPT: Final = re.compile(
    rb'\s*\{\s*"(Instance|Deployment|Runner|NodeTimedOut|NodeCreated|NodeDeleted|Topology|Master|StateCarried)'
)
_REPORT: Final = re.compile(rb'\s*\{\s*"NodeGatheredInfo"')
_REPORTER: Final = re.compile(rb'"node_id"\s*:\s*"([^"\\]{1,200})"')
_TASK: Final = re.compile(rb'\s*\{\s*"TaskCreated"')
_RENAMED: Final = {"instance_id": "instance", "deployment_id": "deployment", "runner_id": "runner", "node_id": "node"}
MAX_TEXT: Final = 500


def parse(entry: bytes) -> TargetEvent | ServedBy | Reported | NotUnderstood | None:
    """One entry; `None` when it does not matter or is no event. Never raises: an event log is foreign matter."""
    if _REPORT.match(entry) is not None:
        return _reported(entry)
    task = _TASK.match(entry) is not None
    if not task and _KEPT.match(entry) is None:
        return None
    try:
        name, fields = shapes.untagged(msgspec.json.decode(entry), "an event")
        if task:
            return _served(fields)
        data = _data(name, fields)
    except (ValueError, msgspec.DecodeError) as error:
        return NotUnderstood(f"{error}: {entry[:MAX_TEXT].decode('utf-8', 'replace')}")
    for doubt in doubts.event(name, data):
        return NotUnderstood(doubt)
    return TargetEvent(name, data)


def _reported(entry: bytes) -> Reported | None:
    """A report of memory; those of interfaces and downloads come at other times."""
    reporter = _REPORTER.search(entry) if b'"ram_available"' in entry else None
    return None if reporter is None else Reported(reporter[1].decode("utf-8", "replace"))


def _served(fields: shapes.Json) -> ServedBy | None:
    kind, task = shapes.untagged(fields.get("task"), "a task")
    if not shapes.is_request(kind):
        return None
    for response_id, instance in shapes.request_ids(None, task):
        return ServedBy(response_id, instance)
    return None


def _data(name: str, fields: shapes.Json) -> dict[str, Any]:
    if name == "InstanceCreated" and "instance" in fields:
        instance, instance_view = shapes.instance(fields["instance"])
        return {"instance": instance, **instance_view}
    if name == "DeploymentCreated" and "deployment" in fields:
        deployment, deployment_view = shapes.deployment(fields["deployment"])
        return {"deployment": deployment, **deployment_view}
    if name == "RunnerStatusUpdated":
        status, _ = shapes.untagged(fields.get("runner_status"), "a runner's status")
        return {"runner": fields.get("runner_id"), "status": status}
    if name in ("TopologyEdgeCreated", "TopologyEdgeDeleted"):
        link = shapes.mapping(fields.get("conn"), "a link") or fields
        return {"source": link.get("source"), "sink": link.get("sink")}
    if name == "StateCarried":
        return _carried(fields)
    return _plain(fields)


def _carried(fields: shapes.Json) -> dict[str, Any]:
    instances = dict(shapes.instance(one) for one in _list(fields.get("instances")))
    deployments = dict(shapes.deployment(one) for one in _list(fields.get("deployments")))
    return {
        "nodes": [str(node) for node in _list(fields.get("nodes"))],
        "instances": instances,
        "deployments": deployments,
        "runners": shapes.runners(fields.get("runners")),
    }


def _list(raw: Any) -> list[Any]:
    return cast("list[Any]", raw) if isinstance(raw, list) else []


def _plain(fields: shapes.Json) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "event_id" or not isinstance(value, str | int | float | bool | None):
            continue
        data[_RENAMED.get(key, key)] = value[:MAX_TEXT] if isinstance(value, str) else value
    return data
