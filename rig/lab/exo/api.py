"""The API of a node: its open requests, and the commands it sends to the master.

A request is *accepted* once the master has it. What ends it: its last token, an error from a runner, the end of its
instance, a change of master, or (sound) a command that no master takes, and a minute without progress.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from rig.lab.exo.api_types import Accepted as ChatAccepted
from rig.lab.exo.api_types import ChatRequest, Reply, failure
from rig.lab.exo.context import Context
from rig.lab.exo.effects import EndStream, StreamPrefill, StreamToken
from rig.lab.exo.election import Election
from rig.lab.exo.events import ChunkGenerated, Event, InstanceDeleted, TaskCreated
from rig.lab.exo.messages import Accepted, Command, CommandKind
from rig.lab.exo.replica import Replica

_NO_SESSION_MEMORY = 4096  # commands kept for sending again


@dataclass(slots=True)
class _Request:
    command: Command
    streamed: bool
    progress_at: float
    instance_id: str | None = None
    tokens: int = 0
    prefilled: int = -1
    forgotten: bool = False


@dataclass(slots=True)
class _Outstanding:
    """A command the master has not accepted yet. `sent_at` None: it waits for an election to end."""

    command: Command
    sent_at: float | None = None
    sent: int = 0


class Api:
    def __init__(self, ctx: Context, replica: Replica, election: Election) -> None:
        self._ctx = ctx
        self._replica = replica
        self._election = election
        self.requests: dict[str, _Request] = {}
        self._outstanding: dict[str, _Outstanding] = {}
        self._check_at = math.inf
        self._now = 0.0

    def next_deadline(self) -> float:
        return self._check_at

    # clients

    def chat(self, now: float, request: ChatRequest) -> ChatAccepted | Reply:
        if not self._replica.state.instances_of(request.model):
            return failure(404, f"No instance found for model {request.model}")
        command = self._command(
            now,
            "TextGeneration",
            model_id=request.model,
            prompt_tokens=request.prompt_tokens,
            max_tokens=request.max_tokens,
            prompt_hash=request.prompt_hash,
        )
        self.requests[command.command_id] = _Request(command, request.streamed, now)
        return ChatAccepted(command.command_id)

    def client_gone(self, now: float, command_id: str) -> None:
        if self.requests.pop(command_id, None) is None:
            return
        outstanding = self._outstanding.pop(command_id, None)
        if outstanding is None or outstanding.sent:
            self._command(now, "TaskCancelled", target=command_id)

    def create_deployment(self, now: float, model_id: str, sharding: str, instance_meta: str, min_nodes: int) -> Reply:
        if model_id not in self._ctx.models:
            return failure(404, f"Model {model_id} not found")
        existing = next((d for d in self._replica.state.deployments.values() if d.model_id == model_id), None)
        if existing is not None and self._ctx.behaviour.duplicates_refused:
            return failure(409, f"{model_id} is already kept running by deployment {existing.deployment_id}")
        command = self._command(
            now,
            "CreateDeployment",
            model_id=model_id,
            target=self._ctx.new_id(),
            sharding=sharding,
            instance_meta=instance_meta,
            min_nodes=min_nodes,
        )
        return self._received(command, deployment_id=command.target)

    def delete_deployment(self, now: float, deployment_id: str) -> Reply:
        if deployment_id not in self._replica.state.deployments and self._ctx.behaviour.unknown_is_404:
            return failure(404, "Deployment not found")
        return self._received(self._command(now, "DeleteDeployment", target=deployment_id), deployment_id=deployment_id)

    def place_instance(self, now: float, model_id: str, sharding: str, instance_meta: str, min_nodes: int) -> Reply:
        model = self._ctx.models.get(model_id)
        if model is None:
            return failure(404, f"Model {model_id} not found")
        command = self._command(
            now,
            "PlaceInstance",
            model_id=model_id,
            sharding=sharding,
            instance_meta=instance_meta,
            min_nodes=min_nodes,
        )
        return self._received(command, model_card=model.card())

    def create_instance(self, now: float, instance: object) -> Reply:
        try:
            wanted = _parse_instance(instance)
        except (KeyError, TypeError, ValueError) as error:
            detail = {"type": "value_error", "loc": ["body", "instance"], "msg": f"not an instance: {error}"}
            return Reply(422, {"detail": [detail]})
        if wanted["model_id"] not in self._ctx.models:
            return failure(404, f"Model {wanted['model_id']} not found")
        command = self._command(now, "CreateInstance", **wanted)
        return self._received(command, model_card=self._ctx.models[command.model_id].card())

    def delete_instance(self, now: float, instance_id: str) -> Reply:
        if instance_id not in self._replica.state.instances:
            return failure(404, "Instance not found")
        return self._received(self._command(now, "DeleteInstance", target=instance_id), instance_id=instance_id)

    # commands

    def _received(self, command: Command, **more: object) -> Reply:
        return Reply(200, {"message": "Command received.", "command_id": command.command_id, **more})

    def _command(self, now: float, kind: CommandKind, **fields: Any) -> Command:
        command = Command(self._replica.session, self._ctx.new_id(), kind, **fields)
        self._outstanding[command.command_id] = _Outstanding(command)
        if len(self._outstanding) > _NO_SESSION_MEMORY:
            del self._outstanding[next(iter(self._outstanding))]
        self._now = now
        self._check_at = min(self._check_at, now + self._ctx.timers.resend_s / 4)
        return command

    def take_commands(self) -> list[Command]:
        """What is to be sent now. Nothing during an election."""
        if self._election.campaigning or not self._outstanding:
            return []
        taken: list[Command] = []
        for outstanding in self._outstanding.values():
            if outstanding.sent_at is None:
                outstanding.sent_at, outstanding.sent = self._now, outstanding.sent + 1
                taken.append(msgspec.structs.replace(outstanding.command, session=self._election.session))
        return taken

    def accepted(self, now: float, message: Accepted) -> None:
        if message.session == self._replica.session:
            self._outstanding.pop(message.command_id, None)

    def election_over(self, now: float) -> None:
        self._now = now

    def tick(self, now: float) -> None:
        self._now = now
        if now < self._check_at:
            return
        for outstanding in list(self._outstanding.values()):
            if outstanding.sent_at is not None and now - outstanding.sent_at >= self._ctx.timers.resend_s:
                self._send_again(outstanding)
        if self._ctx.behaviour.progress_watch:
            limit = now - self._ctx.timers.progress_s
            for command_id in [c for c, r in self.requests.items() if r.progress_at <= limit and not r.forgotten]:
                self._fail(command_id, "No progress: giving up")
                self._outstanding.pop(command_id, None)
                self._command(now, "TaskCancelled", target=command_id)
        busy = self.requests or self._outstanding
        self._check_at = now + self._ctx.timers.resend_s / 4 if busy else math.inf

    def _send_again(self, outstanding: _Outstanding) -> None:
        command_id = outstanding.command.command_id
        if outstanding.sent <= self._ctx.behaviour.resends:
            outstanding.sent_at = None
            return
        del self._outstanding[command_id]
        if self._ctx.behaviour.resends > 0 and command_id in self.requests:
            self._fail(command_id, "The master did not accept the request")

    # what the cluster says

    def session_changed(self, now: float) -> None:
        """Accepted requests are lost with their master; the others go to the new one."""
        for command_id, request in list(self.requests.items()):
            if self._ctx.behaviour.on_master_change == "forget":
                request.forgotten = True
            elif command_id not in self._outstanding:
                self._fail(command_id, "The master changed before the request was finished")
        if self._ctx.behaviour.resends > 0:
            for outstanding in self._outstanding.values():
                outstanding.sent_at = None
        else:
            self._outstanding.clear()
        self._now = now

    def snapshot_installed(self, now: float) -> None:
        """Events were skipped, and with them what they said of the requests that were accepted."""
        for command_id in [c for c in self.requests if c not in self._outstanding]:
            self._fail(command_id, "The node fell behind before the request was finished")
        self._now = now

    def on_event(self, now: float, event: Event) -> None:
        match event:
            case ChunkGenerated(command_id):
                request = self.requests.get(command_id)
                if request is not None and not request.forgotten:
                    self._chunk(now, request, event)
            case TaskCreated(task):
                request = self.requests.get(task.command_id)
                if request is not None:
                    request.instance_id = task.instance_id
                    self._outstanding.pop(task.command_id, None)
            case InstanceDeleted(instance_id):
                for command_id, request in list(self.requests.items()):
                    if request.instance_id == instance_id and not request.forgotten:
                        self._instance_gone(command_id, request)
            case _:
                pass

    def _chunk(self, now: float, request: _Request, chunk: ChunkGenerated) -> None:
        command_id, model, out = chunk.command_id, request.command.model_id, self._ctx.out
        self._outstanding.pop(command_id, None)
        if chunk.kind == "error":
            self._fail(command_id, chunk.text)
        elif chunk.kind == "prefill":
            if chunk.n > request.prefilled:
                request.prefilled, request.progress_at = chunk.n, now
            out.add(StreamPrefill(command_id, model, chunk.n, chunk.total))
        elif chunk.finish_reason:
            del self.requests[command_id]
            out.add(
                EndStream(
                    command_id,
                    model,
                    "finish",
                    text=chunk.text,
                    finish_reason=chunk.finish_reason,
                    prompt_tokens=chunk.total,
                    completion_tokens=chunk.n,
                )
            )
        else:
            request.tokens += 1
            request.progress_at = now
            out.add(StreamToken(command_id, model, chunk.text))
            behaviour = self._ctx.behaviour
            if behaviour.streams_cut and request.tokens == 3 and self._ctx.rng.random() < behaviour.cut_chance:
                self._end_cleanly(command_id)

    def _instance_gone(self, command_id: str, request: _Request) -> None:
        if self._ctx.behaviour.on_instance_gone == "clean_end":
            self._end_cleanly(command_id)
        else:
            self._fail(command_id, "The instance was deleted before the request was finished")

    def _end_cleanly(self, command_id: str) -> None:
        request = self.requests.pop(command_id)
        how = "clean_end" if request.streamed else ("cut_json" if request.tokens else "empty_body")
        self._ctx.out.add(EndStream(command_id, request.command.model_id, how))

    def _fail(self, command_id: str, text: str) -> None:
        request = self.requests.pop(command_id)
        how = "error_event" if request.streamed else self._ctx.behaviour.plain_error
        self._ctx.out.add(EndStream(command_id, request.command.model_id, how, message=text))


def _parse_instance(instance: Any) -> dict[str, Any]:
    """From exo's JSON of an instance, the fields of a command. Raises KeyError, TypeError or ValueError."""
    ((tag, body),) = instance.items()
    assignments = body["shardAssignments"]
    runners: dict[str, str] = assignments["nodeToRunner"]
    shards: dict[str, Any] = assignments["runnerToShard"]
    ranks: dict[str, int] = {r: int(next(iter(s.values()))["deviceRank"]) for r, s in shards.items()}
    nodes = sorted(runners, key=lambda n: ranks[runners[n]])
    return {
        "model_id": str(assignments["modelId"]),
        "target": str(body["instanceId"]),
        "instance_meta": {"MlxRingInstance": "MlxRing", "MlxJacclInstance": "MlxJaccl"}[tag],
        "sharding": "Tensor" if any("TensorShardMetadata" in s for s in shards.values()) else "Pipeline",
        "nodes": tuple(nodes),
        "runners": tuple(runners[n] for n in nodes),
        "port": int(body.get("ephemeralPort") or 0),
    }
