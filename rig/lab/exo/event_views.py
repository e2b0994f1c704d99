"""`GET /events`: the log of a node as one JSON array, in exo's names and shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rig.lab.exo import events as ev
from rig.lab.exo.models import Model
from rig.lab.exo.replica import Replica
from rig.lab.exo.shapes import (
    Json,
    deployment_json,
    instance_json,
    memory_json,
    network_json,
    runner_json,
    task_json,
)
from rig.lab.exo.state import ClusterState

BATCH = 512
"""Entries that are taken out of the log at once."""


def event_json(event: ev.Event, state: ClusterState, models: Mapping[str, Model], event_id: str) -> Json:
    """One event as `/events` shows it: {"Name": {"event_id", …}}."""
    name = type(event).__name__
    match event:
        case ev.InstanceCreated(instance):
            body: Json = {"instance": instance_json(instance, models)}
        case ev.DeploymentCreated(deployment):
            body = {"deployment": deployment_json(deployment, models)}
        case ev.TaskCreated(task):
            body = {"task_id": task.task_id, "task": task_json(task, state, models)}
        case ev.RunnerStatusUpdated(runner_id, status):
            body = {"runner_id": runner_id, "runner_status": runner_json(status)}
        case ev.NodeGatheredInfo(node_id, info, what):
            body = {"node_id": node_id, "info": _gathered_json(info, what)}
        case ev.TopologyEdgeCreated(source, sink, address) | ev.TopologyEdgeDeleted(source, sink, address):
            body = {"conn": {"source": source, "sink": sink, "edge": {"sink_multiaddr": address}}}
        case ev.ChunkGenerated():
            body = _chunk_json(event)
        case ev.StateCarried():
            body = {
                "nodes": [n for n, _ in event.nodes],
                "instances": [instance_json(i, models) for i in event.instances],
                "runners": {i: runner_json(s) for i, s in event.runners},
                "deployments": [deployment_json(d, models) for d in event.deployments],
            }
        case _:
            body = {f: getattr(event, f) for f in event.__struct_fields__}
    return {name: {"event_id": event_id, **body}}


def _gathered_json(info: ev.NodeInfo, what: str) -> Json:
    match what:
        case "memory":
            return memory_json(info)
        case "backends":
            return {"NodeBackends": {"backends": list(info.backends)}}
        case _:
            return {"NodeNetworkInterfaces": network_json(info)}


def _chunk_json(chunk: ev.ChunkGenerated) -> Json:
    match chunk.kind:
        case "prefill":
            inner: Json = {"PrefillProgressChunk": {"processed_tokens": chunk.n, "total_tokens": chunk.total}}
        case "error":
            inner = {"ErrorChunk": {"error_message": chunk.text}}
        case _:
            inner = {"TokenChunk": {"text": chunk.text, "finish_reason": chunk.finish_reason or None}}
    return {"command_id": chunk.command_id, "chunk": inner}


def events_json(replica: Replica, models: Mapping[str, Model]) -> Iterator[bytes]:
    """`GET /events` as pieces of one JSON array: the position is the index."""
    yield b"["
    for index, body in enumerate(events_from(replica, models, 0)):
        piece = json.dumps(body, separators=(",", ":")).encode()
        yield b"," + piece if index else piece
    yield b"]"


def events_from(replica: Replica, models: Mapping[str, Model], start: int) -> Iterator[Json | None]:
    """The log from this index on. Event ids are the same on every node. None for what was dropped to bound the log."""
    session = f"{replica.session.master[:8]}-{replica.session.clock:04x}"[-13:]
    log = replica.log
    yield from [None] * (log.first - start)
    index = max(start, log.first)
    while entries := log.read(index, BATCH) if index < log.next_index else []:
        for entry in entries:
            yield event_json(entry.event, replica.state, models, f"{session}-4000-8000-{index:012x}")
            index += 1
