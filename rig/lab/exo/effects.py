"""What a node's logic asks of its host. The host carries effects out in order and tells the logic what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rig.lab.exo.messages import AnyMessage
from rig.lab.exo.runner import RunnerTimes

CommandKind: TypeAlias = Literal["connect", "load", "warmup", "generate", "cancel", "pause", "resume", "hang"]
EndHow: TypeAlias = Literal["finish", "error_event", "abort", "clean_end", "cut_json", "empty_body"]


@dataclass(frozen=True, slots=True)
class Send:
    """Send over the link to `peer` (its name), in order; dropped when there is no link."""

    peer: str
    message: AnyMessage


@dataclass(frozen=True, slots=True)
class DropLink:
    """Close the connection to `peer` at once, with all that is queued on it. Answer with `link_down`, and dial anew."""

    peer: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartRunner:
    """Start a runner process. It reports `idle` after `times.spawn_s`; its ring listens on `port`."""

    runner_id: str
    instance_id: str
    model_id: str
    rank: int
    world_size: int
    port: int
    times: RunnerTimes


@dataclass(frozen=True, slots=True)
class StopRunner:
    """End a runner: SIGTERM, then SIGKILL after a second; with `kill` SIGKILL at once. Answer with `runner_exited`."""

    runner_id: str
    kill: bool = False


@dataclass(frozen=True, slots=True)
class RunnerCommand:
    """To a runner's pipe. `pause`, `resume` and `hang` concern the whole runner; `generate` and `cancel` a task."""

    runner_id: str
    kind: CommandKind
    task_id: str = ""
    prompt_tokens: int = 0
    max_tokens: int = 0
    answer: int = 0  # of `generate`: the text follows from this number alone


@dataclass(frozen=True, slots=True)
class StreamPrefill:
    """A `: prefill_progress` comment for a streamed request; nothing for one that is not streamed."""

    command_id: str
    model: str
    processed: int
    total: int


@dataclass(frozen=True, slots=True)
class StreamToken:
    """One content-bearing chunk (kept for the body when the request is not streamed)."""

    command_id: str
    model: str
    text: str


@dataclass(frozen=True, slots=True)
class EndStream:
    """The request is over. What the client must see, by `how`:

    - finish: streamed: a last chunk with `text`, `finish_reason` and usage, `: generation_stats`, `[DONE]`; else the
      whole JSON
    - error_event: streamed only: `data: {"error": …}` with `message`, then `data: [DONE]`, then a clean end
    - abort: the connection breaks inside the body
    - clean_end: streamed only: the body ends cleanly, without finish reason or `[DONE]`
    - cut_json: not streamed only: valid JSON with the text so far and without finish reason
    - empty_body: not streamed only: 200 and no body
    """

    command_id: str
    model: str
    how: EndHow
    message: str = ""
    text: str = ""
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A line for exo's log."""

    text: str


@dataclass(frozen=True, slots=True)
class MasterLog:
    """Open or close `event_log/master/events.bin`: the master alone holds it open."""

    open: bool


@dataclass(frozen=True, slots=True)
class Exit:
    """The main process must end by itself, with status 1."""

    reason: str


Effect: TypeAlias = (
    Send
    | DropLink
    | StartRunner
    | StopRunner
    | RunnerCommand
    | StreamPrefill
    | StreamToken
    | EndStream
    | Log
    | MasterLog
    | Exit
)


@dataclass(slots=True)
class Outbox:
    """Collects the effects of one call."""

    effects: list[Effect] = field(default_factory=list[Effect])

    def add(self, effect: Effect) -> None:
        self.effects.append(effect)

    def log(self, text: str) -> None:
        self.effects.append(Log(text))

    def drain(self) -> list[Effect]:
        drained, self.effects = self.effects, []
        return drained
