"""exo's JSON → canonical facets. Pure and lenient: both spellings of keys, tagged unions, missing keys, nulls.

Facts: captures of exo 0.3.70 and of its later deployments keeper. `/state` and `GET /deployments` are camelCase, events
and the answers of POST and DELETE snake_case. What is no mapping or list where one must be raises ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from rig.targets.exo.views import InstanceView, InstanceViews
from rig.targets.views import Deployments, DeploymentView, rounded_memory

Json: TypeAlias = Mapping[str, Any]


def mapping(value: Any, what: str) -> Json:
    """The value as a mapping; null is an empty one. Raises ValueError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {_shown(value)}, not an object")
    return cast("Json", value)


def pick(value: Json, camel: str) -> Any:
    """The value under this key, in camelCase or in snake_case; `None` without it."""
    if camel in value:
        return value[camel]
    return value.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel))


def untagged(value: Any, what: str) -> tuple[str, Json]:
    """A tagged union `{"Tag": {…}}`, also as `"Tag"` or `{"type": "Tag", …}` → (tag, fields). Raises ValueError."""
    if isinstance(value, str):
        return value, {}
    fields = mapping(value, what)
    if isinstance(kind := fields.get("type"), str):
        return kind, fields
    if len(fields) != 1:
        raise ValueError(f"{what} is {_shown(value)}, not a tagged value")
    [(tag, inner)] = fields.items()
    return tag, cast("Json", inner) if isinstance(inner, dict) else {}


def node_id(raw: Any) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError(f"the node id is {_shown(raw)}, not a text")
    return raw


def event_index(raw: Any) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError(f"the event index is {_shown(raw)}, not a number")
    return raw


def nodes_and_links(raw: Any) -> tuple[list[str], list[list[str]]]:
    """`/state/topology` → live nodes, and links that have at least one connection; both sorted."""
    topology = mapping(raw, "topology")
    nodes = sorted(_ids(topology.get("nodes"), "topology.nodes"))
    links: set[tuple[str, str]] = set()
    for source, sinks in mapping(topology.get("connections"), "topology.connections").items():
        for sink, connections in mapping(sinks, f"connections of {source}").items():
            if connections:
                links.add((source, sink))
    return nodes, [list(link) for link in sorted(links)]


def instance(raw: Any) -> tuple[str | None, InstanceView]:
    """One instance, tagged by its kind (`MlxRingInstance`, `MlxJacclInstance`) → (id, view)."""
    _, fields = untagged(raw, "an instance")
    shards = mapping(pick(fields, "shardAssignments"), "shardAssignments")
    runners = mapping(pick(shards, "nodeToRunner"), "nodeToRunner")
    view = InstanceView(
        model=_text(pick(shards, "modelId")),
        runners={node: str(runner) for node, runner in sorted(runners.items())},
        port=_number(pick(fields, "ephemeralPort")),
    )
    return _text(pick(fields, "instanceId")), view


def instances(raw: Any) -> InstanceViews:
    return {key: instance(value)[1] for key, value in mapping(raw, "instances").items()}


def runners(raw: Any) -> dict[str, str]:
    """Runner id → status such as `RunnerReady`."""
    return {key: untagged(value, f"runner {key}")[0] for key, value in mapping(raw, "runners").items()}


def loading(raw: Any) -> dict[str, str]:
    """Runner id → how far it has loaded its model, such as `3 of 12 layers`; of those that are loading and tell."""
    found: dict[str, str] = {}
    for key, value in mapping(raw, "runners").items():
        _, fields = untagged(value, f"runner {key}")
        done, total = _number(pick(fields, "layersLoaded")), _number(pick(fields, "totalLayers"))
        if done is not None and total is not None:
            found[key] = f"{done} of {total} layers"
    return found


def deployment(raw: Any) -> tuple[str | None, DeploymentView]:
    """One deployment, flat or wrapped as `{"deployment": {…}, "status"}` → (id, view)."""
    outer = mapping(raw, "a deployment")
    inner = mapping(outer.get("deployment"), "deployment") or outer
    card = mapping(pick(inner, "modelCard"), "modelCard")
    view = DeploymentView(
        model=_text(pick(inner, "modelId")) or _text(pick(card, "modelId")),
        status=_text(outer.get("status")) or _text(inner.get("status")),
        instance=_text(pick(inner, "instanceId")),
        error=_text(pick(inner, "placementError")) or _text(pick(outer, "placementError")),
        min_nodes=_number(pick(inner, "minNodes")),
    )
    return _text(pick(inner, "deploymentId")), view


def deployments(raw: Any) -> Deployments:
    """`GET /deployments` (flat list, or upstream's `{"deployments": […]}`) or `/state/deployments` (by id)."""
    items = raw
    if isinstance(raw, dict) and isinstance(wrapped := cast("Json", raw).get("deployments"), list):
        items = cast("list[Any]", wrapped)
    if isinstance(items, list):
        found: Deployments = {}
        for item in cast("list[Any]", items):
            key, view = deployment(item)
            if key is None:
                raise ValueError(f"a deployment without an id: {_shown(item)}")
            found[key] = view
        return found
    return {key: deployment(value)[1] for key, value in mapping(cast("Any", raw), "deployments").items()}


def memory(raw: Any) -> dict[str, int]:
    """`/state/nodeMemory` → available bytes by node id, rounded; nodes that tell nothing are left out."""
    found: dict[str, int] = {}
    for node, value in mapping(raw, "nodeMemory").items():
        fields = mapping(value, f"memory of {node}")
        available = _bytes(pick(fields, "ramAvailable"))
        if available is not None:
            found[node] = rounded_memory(available, _bytes(pick(fields, "ramTotal")))
    return found


def tasks(raw: Any) -> Iterator[tuple[str, str]]:
    """`/state/tasks` → (id, instance) of every request, by its command's id (the response id) and by its task's."""
    for key, value in mapping(raw, "tasks").items():
        name, fields = untagged(value, f"task {key}")
        if is_request(name):
            yield from request_ids(key, fields)


def request_ids(task_id: str | None, fields: Json) -> Iterator[tuple[str, str]]:
    """The ids under which a client may know the request of this task, each with the instance it went to."""
    where = _text(pick(fields, "instanceId"))
    if where is not None:
        for name in (_text(pick(fields, "commandId")), task_id or _text(pick(fields, "taskId"))):
            if name is not None:
                yield name, where


def is_request(task_name: str) -> bool:
    """Whether a task of this kind is a client's request (others create, connect, load and warm up runners)."""
    return "Generation" in task_name or "Completion" in task_name


def _ids(raw: Any, what: str) -> list[str]:
    """Ids from a list of texts or of objects with `nodeId`, or from the keys of an object."""
    if raw is None or isinstance(raw, dict):
        return list(mapping(raw, what))
    if not isinstance(raw, list):
        raise ValueError(f"{what} is {_shown(raw)}, not a list")
    found: list[str] = []
    for item in cast("list[Any]", raw):
        name = item if isinstance(item, str) else _text(pick(mapping(item, f"an item of {what}"), "nodeId"))
        if name is None:
            raise ValueError(f"an item of {what} has no id: {_shown(item)}")
        found.append(name)
    return found


def _bytes(raw: Any) -> int | None:
    """A size: `{"inBytes": n}` or a plain number."""
    return _number(pick(cast("Json", raw), "inBytes")) if isinstance(raw, dict) else _number(raw)


def _number(raw: Any) -> int | None:
    return int(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None


def _text(raw: Any) -> str | None:
    return raw if isinstance(raw, str) and raw else None


def _shown(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."
